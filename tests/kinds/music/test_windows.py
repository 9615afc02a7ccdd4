"""Whole pieces in windows: every step once, and nothing of another piece."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.evaluation.perplexity import evaluate, stream
from elman.kinds.music.windows import PieceWindows
from support import networks

PITCHES = 5


def music(lengths, seed=0):
    draw = np.random.default_rng(seed)
    return draw.integers(2, size=(sum(lengths), PITCHES)).astype(np.uint8), np.array(lengths)


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=9),
    st.integers(1, 4),
    st.integers(1, 5),
    st.none() | st.integers(0, 9),
)
def test_every_step_is_a_target_once_after_the_frame_before_it(lengths, columns, length, seed):
    frames, lengths = music(lengths)
    columns = min(columns, len(lengths))
    windows = PieceWindows(frames, lengths, columns, length, seed=seed)
    begins = set((np.cumsum(lengths) - lengths).tolist())
    for epoch in (0, 3):
        seen, before = [], [-1] * columns
        for span in windows.spans(epoch):
            batch, at = windows._window(span)
            assert batch.inputs.shape == (span.length, columns, PITCHES)
            np.testing.assert_array_equal(batch.mask, at >= 0)
            for column in range(columns):
                for step in torch.nonzero(batch.mask[:, column]).flatten().tolist():
                    place = int(at[step, column])
                    np.testing.assert_array_equal(batch.targets[step, column], frames[place])
                    if place in begins:
                        assert step == 0
                        assert batch.fresh[column]
                        assert not batch.inputs[step, column].any()
                    else:
                        assert before[column] == place - 1
                        assert not (step == 0 and batch.fresh[column])
                        np.testing.assert_array_equal(batch.inputs[step, column], frames[place - 1])
                    before[column] = place
                    seen.append(place)
        assert sorted(seen) == list(range(len(frames)))


def test_orders_differ_by_epoch_and_repeat_by_seed():
    frames, lengths = music(range(1, 30))
    one, other = (PieceWindows(frames, lengths, 3, 4, seed=7) for _ in range(2))
    first = [one.batch(span).inputs for span in one.spans(0)]
    later = [one.batch(span).inputs for span in one.spans(1)]
    again = [other.batch(span).inputs for span in other.spans(0)]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, later, strict=False))


def read(windows, epoch):
    """The targets and inputs of an epoch by place in the stream, untouched by the order of reading."""
    inputs, targets = np.zeros_like(windows.frames), np.zeros_like(windows.frames)
    for span in windows.spans(epoch):
        batch, at = windows._window(span)
        for place, before, after in zip(
            at[batch.mask], batch.inputs[batch.mask], batch.targets[batch.mask], strict=True
        ):
            inputs[place], targets[place] = before, after
    return inputs, targets


def test_a_piece_moves_by_one_interval_in_an_epoch_and_never_out_of_the_pitches():
    frames = np.zeros((11, 12), np.uint8)
    lengths = np.array([4, 3, 2, 2])
    frames[0, 5], frames[1, 6], frames[3, [4, 7]] = 1, 1, 1  # may move 4 up or down: asked 3
    frames[4, 0], frames[5, 10] = 1, 1  # may move 1 up; the third piece is silent
    frames[9, 2], frames[10, 11] = 1, 1  # may move 2 down
    windows = PieceWindows(frames, lengths, 2, 3, seed=5, transpose=3)
    found = [set() for _ in lengths]
    for epoch in range(60):
        inputs, targets = read(windows, epoch)
        for piece, rows in enumerate((slice(0, 4), slice(4, 7), slice(7, 9), slice(9, 11))):
            moved = [by for by in range(-3, 4) if (np.roll(frames[rows], by, axis=1) == targets[rows]).all()]
            assert moved
            assert (inputs[rows][1:] == targets[rows][:-1]).all()
            assert not inputs[rows][0].any()
            found[piece].add(tuple(moved))
    assert found[0] == {(by,) for by in range(-3, 4)}
    assert found[1] == {(0,), (1,)}
    assert found[2] == {tuple(range(-3, 4))}
    assert found[3] == {(-2,), (-1,), (0,)}


def test_transposition_belongs_to_training_and_keeps_the_order_of_pieces():
    frames, lengths = music(range(3, 12))
    frames[:, [0, -1]] = 0
    plain, moved = (PieceWindows(frames, lengths, 3, 4, seed=2, transpose=by) for by in (0, 1))
    for epoch in range(2):
        for first, second in zip(plain.spans(epoch), moved.spans(epoch), strict=True):
            assert torch.equal(plain.batch(first).mask, moved.batch(second).mask)
            assert torch.equal(plain.batch(first).targets.sum(-1), moved.batch(second).targets.sum(-1))
    assert not torch.equal(plain.batch(plain.spans(0)[0]).targets, moved.batch(moved.spans(0)[0]).targets)
    assert (read(PieceWindows(frames, lengths, 3, 4, transpose=6), 0)[1] == frames).all()


@pytest.mark.parametrize("choice", ["bernoulli", "nade"])
@pytest.mark.parametrize(("columns", "length"), [(1, 50), (1, 3), (3, 4), (5, 7)])
def test_padding_and_neighbours_never_change_a_pieces_nll(choice, columns, length):
    model = networks.music_model(choice=choice, pitches=PITCHES).eval()
    frames, lengths = music([7, 1, 12, 3, 8])
    found = np.full(len(frames), np.nan)
    for log_prob, at in stream(model, PieceWindows(frames, lengths, columns, length)):
        assert np.isnan(found[at]).all()
        found[at] = log_prob
    for begin, piece in zip(np.cumsum(lengths) - lengths, lengths, strict=True):
        targets = torch.from_numpy(frames[begin : begin + piece]).unsqueeze(1)
        inputs = torch.cat([torch.zeros_like(targets[:1]), targets[:-1]])
        alone, _ = model.log_prob(inputs, targets, model.begin(1))
        np.testing.assert_allclose(found[begin : begin + piece], alone.squeeze(1).detach())
    score = evaluate(model, PieceWindows(frames, lengths, columns, length))
    assert score.count == len(frames)
    assert score.nll == pytest.approx(-found.mean())


def test_fewer_pieces_than_columns():
    frames, lengths = music([3, 4])
    with pytest.raises(UserError, match="pieces to train on: 2, fewer than training"):
        PieceWindows(frames, lengths, 3, 4, seed=0)
    assert PieceWindows(frames, lengths, 3, 4).streams == 2
