"""Windows: what is covered, by whom, and how often."""

import inspect
import math
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman import config
from elman.data.text.vocabulary import Vocabulary
from elman.data.windows import EvaluationWindows, Span, Spans, TrainingWindows, start_symbol
from elman.errors import UserError

FIRST = 1000


def training_windows(n, batch, length, **options):
    return TrainingWindows(np.arange(n), batch, length, **options)


@given(
    n=st.integers(60, 400),
    batch=st.integers(1, 5),
    length=st.integers(1, 11),
    random=st.booleans(),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
)
def test_an_epoch_covers_every_step_but_the_last_once(n, batch, length, random, seed, epoch):
    windows = training_windows(n, batch, length, random=random, seed=seed)
    steps = n // batch
    inputs, targets = [], []
    for number, span in enumerate(windows.spans(epoch)):
        window = windows.batch(span)
        assert window.inputs.shape == window.targets.shape == (span.length, batch)
        assert window.fresh.tolist() == [number == 0] * batch
        inputs.append(window.inputs)
        targets.append(window.targets)
    columns = torch.arange(steps * batch).view(batch, steps).t()
    assert torch.equal(torch.cat(inputs), columns[:-1])
    assert torch.equal(torch.cat(targets), columns[1:])


def test_fixed_windows_are_all_of_the_base_length():
    spans = training_windows(100, 3, 10).spans(0)
    assert spans == [Span(0, 10), Span(10, 10), Span(20, 10), Span(30, 2)]


def test_spans_are_a_sequence():
    spans, listed = Spans([3, 5, 2]), [Span(0, 3), Span(3, 5), Span(8, 2)]
    assert len(spans) == 3
    assert spans == Spans([3, 5, 2]) == listed
    assert spans != Spans([3, 5]) != listed
    assert spans[1] == listed[1]
    assert spans[-1] == listed[-1]
    assert spans[1:] == listed[1:]
    assert spans[::-1] == listed[::-1]
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            spans[beyond]


@pytest.mark.slow
def test_a_hundred_thousand_windows_take_a_megabyte():
    tracemalloc.start()
    windows = training_windows(100_001, 1, 1).spans(0)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(windows) == 100_000
    assert size < 1.2e6
    assert peak < 2.5e6


def random_lengths(epochs=40, **options):
    windows = training_windows(30_000, 10, 70, random=True, **options)
    return np.array([span.length for epoch in range(epochs) for span in windows.spans(epoch)[:-1]])


def test_random_lengths_are_those_of_awd_lstm():
    """N(70, 5) with probability 0.95, else N(35, 5)."""
    lengths = random_lengths()
    short = lengths < 50
    assert abs(short.mean() - 0.05) < 0.02
    assert abs(lengths[~short].mean() - 69.5) < 0.5
    assert abs(lengths[~short].std() - 5) < 0.4
    assert abs(lengths[short].mean() - 34.5) < 2


def test_random_lengths_may_be_always_or_never_short():
    assert abs(random_lengths(short_probability=1.0).mean() - 34.5) < 0.5
    assert (random_lengths(short_probability=0.0) > 45).all()


def test_random_lengths_have_a_floor_and_a_cap():
    lengths = random_lengths(spread=60.0, max_extra=20)
    assert (lengths.min(), lengths.max()) == (5, 90)
    assert random_lengths(spread=60.0).max() > 90


def test_spans_depend_on_seed_and_epoch_alone():
    """Not on what was asked before, nor on any global state: a resumed run needs only its position."""

    def spans(seed, epoch):
        return training_windows(5000, 10, 20, random=True, seed=seed).spans(epoch)

    windows = training_windows(5000, 10, 20, random=True, seed=1)
    expected = [windows.spans(epoch) for epoch in range(3)]
    torch.manual_seed(9)
    np.random.seed(9)
    assert [spans(1, epoch) for epoch in (2, 0, 1)] == [expected[epoch] for epoch in (2, 0, 1)]
    assert expected[0] != expected[1]
    assert spans(2, 0) != expected[0]


def test_text_too_short_for_one_window():
    with pytest.raises(UserError) as error:
        training_windows(1059, 20, 52)
    assert str(error.value) == (
        "the training text has 1,059 tokens, too few for 20 columns of one window of 52 steps (1,060 tokens);"
        " use more text, or lower training.batch_size or training.window.length (of elman.fit: batch_size or bptt)"
    )
    assert training_windows(1060, 20, 52).spans(0) == [Span(0, 52)]


@given(
    n=st.integers(0, 40),
    streams=st.integers(1, 45),
    length=st.integers(1, 12),
    warm_up=st.integers(0, 50),
    skip_first=st.booleans(),
)
def test_every_token_is_counted_once_after_the_token_before_it(n, streams, length, warm_up, skip_first):
    tokens = np.arange(n) + 1
    before = [FIRST, *tokens[:-1]]
    windows = EvaluationWindows(tokens, FIRST, streams=streams, length=length, warm_up=warm_up, skip_first=skip_first)
    assert windows.streams <= min(streams, n)
    assert windows.streams == math.ceil(n / max(1, math.ceil(n / streams)))
    counted, seen = [], 0
    for seen, (batch, positions) in enumerate(windows, start=1):
        assert batch.inputs.shape == batch.targets.shape == positions.shape
        assert len(positions) <= length
        assert torch.equal(batch.mask, positions >= 0)
        assert batch.fresh.tolist() == [seen == 1] * windows.streams
        for position, symbol, target in zip(
            positions[batch.mask].tolist(),
            batch.inputs[batch.mask].tolist(),
            batch.targets[batch.mask].tolist(),
            strict=True,
        ):
            assert (symbol, target) == (before[position], tokens[position])
            counted.append(position)
    assert sorted(counted) == list(range(int(skip_first), n))
    assert seen == windows.num_windows


@given(n=st.integers(1, 40), streams=st.integers(1, 9), length=st.integers(1, 12), warm_up=st.integers(0, 15))
def test_each_column_reads_a_stretch_of_the_stream_and_warms_up(n, streams, length, warm_up):
    tokens = np.arange(n) + 1
    windows = list(EvaluationWindows(tokens, FIRST, streams=streams, length=length, warm_up=warm_up))
    inputs = torch.cat([batch.inputs for batch, _ in windows]).t()
    positions = torch.cat([where for _, where in windows]).t()
    assert (positions[:, -1] >= 0).any(), "no step beyond the last token"
    stream = [FIRST, *tokens.tolist()]
    for row, where in zip(inputs.tolist(), positions.tolist(), strict=True):
        counted = [step for step, position in enumerate(where) if position >= 0]
        low, last = counted[0], counted[-1]
        assert counted == list(range(low, last + 1))
        assert low == min(warm_up, where[low])
        begin = where[low] - low
        assert row[: last + 1] == stream[begin : begin + last + 1]


@pytest.mark.parametrize(("words", "first"), [(("the", "<eos>", "cat"), 1), (("e", "t", "a"), 0)])
def test_a_text_is_preceded_by_eos_or_the_most_frequent_word(words, first):
    assert start_symbol(Vocabulary(words, (3, 2, 1))) == first


def test_random_windows_have_the_published_values():
    """Merity et al. 2018, section 4.1: 70, half of it with probability 0.05, a deviation of 5; the same where read."""
    window = config.Window()
    assert (window.length, window.short_probability, window.spread) == (70, 0.05, 5.0)
    defaults = inspect.signature(TrainingWindows).parameters
    assert all(defaults[name].default == getattr(window, name) for name in ("random", "short_probability", "spread"))
