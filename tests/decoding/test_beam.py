"""Greedy and beam search: against plain ones, the score of each hypothesis, and nothing depends on the company."""

import itertools
import math

import numpy as np
import pytest
import torch

from elman.config.inference import Beam
from elman.data.batches import Source
from elman.decoding.beam import beam_search
from elman.errors import UserError
from support import pair_networks
from support.pairwise import every_value

SOURCES = pair_networks.sequences(9, 10, 7)
OUTPUTS = {
    "softmax": {},
    "doc": {"contexts": {"kind": "mixture", "heads": {"1": 2, "2": 2}, "size": 8}},
    "moss": {"contexts": {"kind": "mixture", "heads": {"2": 2}, "size": 8}, "activation": "sigsoftmax"},
    "adaptive": {"choice": {"kind": "adaptive", "cutoffs": [3, 6]}},
    "tree": {"choice": {"kind": "tree"}},
}


def trained(seed=0, steps=30, **options):
    """A model that has begun to learn the reversal, so that its targets end."""
    torch.manual_seed(seed)
    model = pair_networks.model(**options)
    sources = pair_networks.sequences(200, 10, 7, seed)
    batch = pair_networks.batch(sources, pair_networks.reversal(sources))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        loss = -model.log_prob_given(batch.source, batch.inputs, batch.targets)[batch.mask].mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


@pytest.fixture(scope="module")
def model():
    return trained(feed="output")


def search(model, sources, constraint=None, **beam):
    return beam_search(
        model, Source(*pair_networks.padded(sources)), Beam(**beam), pair_networks.EOS, constraint=constraint
    )


def log_prob_of(model, source, target):
    batch = pair_networks.batch([source], [target])
    return model.log_prob_given(batch.source, batch.inputs, batch.targets).sum().item()


@torch.inference_mode()
def greedy(model, source, limit):
    state, symbols = model.read(Source(*pair_networks.padded([source]))), [pair_networks.EOS]
    while len(symbols) <= limit:
        log_probs, state = model.step(torch.tensor(symbols[-1:]), state)
        symbols.append(int(log_probs.argmax()))
        if symbols[-1] == pair_networks.EOS:
            return symbols[1:-1]
    return symbols[1:]


@pytest.mark.slow
def test_a_beam_of_one_is_greedy(model):
    for source, (found,) in zip(SOURCES, search(model, SOURCES, size=1), strict=True):
        assert found.symbols == greedy(model, source, 2 * len(source) + 10)


FEEDS = ("nothing", "output", "context")
SIZES = (1, 3, 5)


@pytest.mark.slow
@every_value(size=SIZES, name=OUTPUTS)
def test_beam_targets_of_any_output_do_not_depend_on_the_batch(name, size):
    """Every output with every size and every feed."""
    seed = (list(OUTPUTS).index(name) + SIZES.index(size)) % 3
    require_no_company(trained(seed, steps=5, feed=FEEDS[seed], output=OUTPUTS[name]), size)


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("score", ["dot", "additive"])
def test_beam_targets_with_any_attention_do_not_depend_on_the_batch(feed, score):
    """Both readers with each feed and each score."""
    bidirectional = (FEEDS.index(feed) + (score == "dot")) % 2 == 0
    source = {"bidirectional": bidirectional, "stack": {"sizes": [4 if bidirectional else 8]}}
    require_no_company(trained(steps=5, feed=feed, score=score, source=source), size=3)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("max_length", [None, 8])
def test_beam_targets_that_are_trees_do_not_depend_on_the_batch(size, max_length):
    """Each length and each feed with every size."""
    seed = (SIZES.index(size) + (max_length is None)) % 3
    require_no_company(trained(seed, steps=5, feed=FEEDS[seed]), size, pair_networks.trees(), max_length)


def require_no_company(model, size, constraint=None, max_length=None):
    """Alone, in twos, in fives, all at once, in another order: the same symbols and scores."""
    rules = {"constraint": constraint, "size": size, "nbest": size, "coverage": 0.2, "max_length": max_length}
    together = search(model, SOURCES, **rules)
    for count in (1, 2, 5):
        apart = [
            found for at in range(0, len(SOURCES), count) for found in search(model, SOURCES[at : at + count], **rules)
        ]
        assert [[h.symbols for h in found] for found in apart] == [[h.symbols for h in found] for found in together]
        scores = [[h.score for found in part for h in found] for part in (apart, together)]
        np.testing.assert_allclose(*scores, atol=2e-5)
    backwards = search(model, SOURCES[::-1], **rules)[::-1]
    assert [[h.symbols for h in found] for found in backwards] == [[h.symbols for h in found] for found in together]


def test_the_probability_of_a_hypothesis_is_that_of_the_model(model):
    for source, found in zip(SOURCES, search(model, SOURCES, size=4, nbest=4), strict=True):
        assert len({tuple(one.symbols) for one in found}) == len(found)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        for one in found:
            assert one.log_prob == pytest.approx(log_prob_of(model, source, one.symbols), abs=1e-4)
            assert one.attention.shape == (len(one.symbols) + 1, len(source))
            np.testing.assert_allclose(one.attention.sum(1), 1, rtol=1e-5)


def test_the_score_is_that_of_wu():
    attention = np.array([[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]], dtype=np.float32)
    plain = -3.0 / ((5 + 2) / 6) ** 0.7
    assert Beam(length_penalty=0.7).score(-3.0, attention) == pytest.approx(plain)
    covered = plain + 0.2 * (math.log(0.75) + math.log(0.5) + math.log(0.75))
    assert Beam(length_penalty=0.7, coverage=0.2).score(-3.0, attention) == pytest.approx(covered)
    assert Beam(length_penalty=0.0).score(-3.0, attention) == -3.0


@pytest.mark.parametrize("feed", ["nothing", "output", "context"])
@pytest.mark.parametrize(("length_penalty", "coverage"), [(0.0, 0.0), (0.6, 0.0), (0.0, 0.4), (1.0, 0.4)])
def test_a_beam_of_all_prefixes_gives_what_brute_force_does(feed, length_penalty, coverage):
    """Four symbols, targets of three at most: 40 targets, in the order of Wu et al. 2016, eq. 14."""
    torch.manual_seed(3)
    model = pair_networks.model(symbols=4, feed=feed).eval()
    source = [1, 2, 3]
    wanted = brute_force(model, source, 3, length_penalty, coverage)
    rules = {"length_penalty": length_penalty, "coverage": coverage, "max_length": 3}
    (found,) = search(model, [source], size=64, nbest=64, **rules)
    assert [tuple(one.symbols) for one in found] == sorted(wanted, key=lambda target: -wanted[target])
    np.testing.assert_allclose([one.score for one in found], sorted(wanted.values(), reverse=True), atol=1e-5)


@torch.inference_mode()
def brute_force(model, source, longest, length_penalty, coverage):
    """The score of every target, by the equation, from the probabilities and the attention of a forced decoding."""
    targets = [one for length in range(longest + 1) for one in itertools.product((1, 2, 3), repeat=length)]
    batch = pair_networks.batch([source] * len(targets), targets)
    log_probs = model.log_prob_given(batch.source, batch.inputs, batch.targets).double().numpy()
    trace, _ = model.trace(batch.inputs, model.read(batch.source))
    scores = {}
    for column, target in enumerate(targets):
        steps = len(target) + 1
        looks = trace.attention[:steps, column].double().sum(0).tolist()
        covered = sum(math.log(min(look, 1.0)) for look in looks)
        log_prob = log_probs[:steps, column].sum()
        scores[target] = log_prob * 6**length_penalty / (5 + steps) ** length_penalty + coverage * covered
    return scores


@torch.inference_mode()
def plain_beam(model, source, size, limit):
    """One source, prefix by prefix: an end counts among the best `size`, and the best that do not end go on."""
    alive, ended = [((), 0.0)], []
    while alive and (len(ended) < size or alive[0][1] > max(total for _, total in ended)):
        ranked = []
        for prefix, total in alive:
            state = model.read(Source(*pair_networks.padded([source])))
            for symbol in (pair_networks.EOS, *prefix):
                log_probs, state = model.step(torch.tensor([symbol]), state)
            ends = [pair_networks.EOS] if len(prefix) == limit else range(log_probs.shape[-1])
            ranked += [(total + log_probs[0, symbol].item(), prefix, symbol) for symbol in ends]
        ranked = sorted(ranked, reverse=True)[: 2 * size]
        ended += [(prefix, total) for total, prefix, symbol in ranked[:size] if symbol == pair_networks.EOS]
        alive = [((*prefix, symbol), total) for total, prefix, symbol in ranked if symbol != pair_networks.EOS][:size]
    return sorted(ended, key=lambda pair: -pair[1])


def test_a_model_that_has_diverged_is_refused():
    diverged = pair_networks.model(symbols=5).eval()
    with torch.no_grad():
        for parameter in diverged.parameters():
            parameter.fill_(math.nan)
    with pytest.raises(UserError, match="not numbers, since its training has diverged"):
        search(diverged, [[1, 2, 3]], size=2, max_length=5)


@pytest.mark.parametrize("end", [0, 1], ids=["plain", "ends are likely"])
@pytest.mark.parametrize("size", [2, 3])
def test_a_beam_is_the_plain_one(size, end):
    """Where ends are among the best, as many hypotheses as ever go on beside them."""
    for seed in range(4):
        torch.manual_seed(seed)
        model = pair_networks.model(symbols=5).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)
            model.output.choice.bias[pair_networks.EOS] += end
        (found,) = search(model, [[1, 2, 3]], size=size, nbest=size, max_length=5, length_penalty=0.0)
        wanted = plain_beam(model, [1, 2, 3], size, 5)[:size]
        assert [tuple(one.symbols) for one in found] == [prefix for prefix, _ in wanted]
        np.testing.assert_allclose([one.log_prob for one in found], [total for _, total in wanted], atol=1e-4)


def test_a_beam_goes_on_while_an_unfinished_target_is_the_most_probable():
    """Of a model that is sure, ends are among the best candidates long before the target is over, each improbable."""
    model = pair_networks.model(symbols=5).eval()
    with torch.no_grad():
        model.output.choice.weight.zero_()
        model.output.choice.bias.copy_(torch.tensor([-8.0 if one == pair_networks.EOS else -20.0 for one in range(5)]))
        model.output.choice.bias[3] = 8.0
    for size in (1, 2, 3):
        (found,) = search(model, [[1, 2, 3]], size=size, max_length=6, length_penalty=0.6)
        assert found[0].symbols == [3] * 6


def test_a_target_ends_at_its_limit_and_has_no_forbidden_symbol(model):
    for found in search(model, SOURCES, size=3, nbest=3, max_length=2):
        assert all(len(one.symbols) <= 2 for one in found)
    free = {symbol for (found,) in search(model, SOURCES) for symbol in found.symbols}
    source = Source(*pair_networks.padded(SOURCES))
    for found in beam_search(model, source, Beam(size=3), pair_networks.EOS, sorted(free)[:2]):
        assert not {symbol for one in found for symbol in one.symbols} & set(sorted(free)[:2])


def test_equal_candidates_are_told_apart_by_their_place():
    """Words that share one output are exactly as likely: the first of them is taken, whatever the batch."""
    torch.manual_seed(0)
    model = pair_networks.model(symbols=10).eval()
    with torch.no_grad():
        model.output.choice.weight.zero_()
        model.output.choice.bias.zero_()
    for found in search(model, SOURCES, size=2, max_length=3):
        assert found[0].symbols in ([], [1, 1, 1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "--beam is 0; it must be 1"),
        ({"size": 3, "nbest": 4}, "--nbest is 4; it must be 1 to 3"),
        ({"length_penalty": 1000.0}, "--length-penalty is 1000; it must be 0 or more and at most 10"),
        ({"coverage": 1e308}, "--coverage is .* at most 1e\\+06"),
        ({"length_penalty": -1.0}, "--length-penalty is -1; it must be 0 or more"),
        ({"coverage": math.nan}, "--coverage is nan"),
        ({"max_length": 0}, "--max-length is 0"),
    ],
)
def test_beam_options_out_of_range_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        Beam(**values).check()
