"""Trees that a search writes: those of the repair's rule that need none, over the words of the source, and the best."""

import itertools

import numpy as np
import pytest
import torch

from elman.config.inference import Beam
from elman.data.batches import Source
from elman.data.text.vocabulary import Vocabulary
from elman.data.trees.brackets import to_tree
from elman.decoding.beam import beam_search
from elman.kinds.pairs.constraint import OPENED, TreeConstraint, constraint_of
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.symbols import PairSymbols, learn_tokenisers
from support import pair_networks

SOURCES = pair_networks.sequences(12, 10, 6)
LONGEST = 5
TARGETS = [one for length in range(LONGEST + 1) for one in itertools.product(range(1, 10), repeat=length)]


def is_tree(target, length, opened=OPENED):
    """By the rule of the repair, written for one target."""
    line = pair_networks.TREES.decode(target)
    chains = [len(list(run)) for opening, run in itertools.groupby(line, lambda word: word[0] == "(") if opening]
    return (
        sum(word in "XYZ" for word in line) == length
        and "<unk>" not in line
        and to_tree(line, ["word"] * length).repairs == 0
        and max(chains, default=0) <= opened
    )


def search(model, sources, constraint, **beam):
    return beam_search(
        model, Source(*pair_networks.padded(sources)), Beam(**beam), pair_networks.EOS, constraint=constraint
    )


@pytest.mark.slow
@pytest.mark.parametrize(("length", "limit", "opened"), [(1, 5, 10), (2, 5, 10), (2, 4, 10), (3, 5, 10), (1, 5, 1)])
def test_a_symbol_is_allowed_if_and_only_if_a_tree_can_be_finished(length, limit, opened):
    """Of all sequences of five symbols, those that go on or end as allowed are the trees and what they begin with."""
    trees = [target for target in TARGETS if len(target) <= limit and is_tree(target, length, opened)]
    assert trees
    begun = {target[:end] for target in trees for end in range(len(target) + 1)}
    sequences = torch.tensor([target for target in TARGETS if len(target) == LONGEST])
    constraint = pair_networks.trees(opened=opened)
    state = constraint.begin(*(torch.full((len(sequences),), value) for value in (length, limit)))
    good = torch.ones(len(sequences), dtype=torch.bool)
    for end in range(LONGEST + 1):
        allowed = constraint.allowed(state)
        found = {tuple(one) for one in sequences[good, :end].tolist()}
        assert found == {one for one in begun if len(one) == end}
        ended = {tuple(one) for one in sequences[good & allowed[:, pair_networks.EOS], :end].tolist()}
        assert ended == {one for one in trees if len(one) == end}
        if end < LONGEST:
            good = good & allowed.gather(1, sequences[:, end : end + 1]).squeeze(1)
            state = constraint.advance(state, sequences[:, end])


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("max_length", [None, 6])
def test_every_target_is_a_tree_of_the_words(size, max_length):
    for seed in range(3):
        torch.manual_seed(seed)
        model = pair_networks.model(feed=("nothing", "output", "context")[seed]).eval()
        model.output.choice.bias.data.normal_(std=2.0)
        for source, found in zip(
            SOURCES,
            search(model, SOURCES, pair_networks.trees(), size=size, nbest=size, max_length=max_length),
            strict=True,
        ):
            assert found
            assert all(is_tree(one.symbols, len(source)) for one in found)
            assert all(len(one.symbols) <= (max_length or 2 * len(source) + 10) for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("length_penalty", [0.0, 0.6])
@pytest.mark.parametrize("length", [1, 2])
@torch.inference_mode()
def test_a_wide_beam_gives_what_brute_force_does(length, length_penalty):
    """All trees of five symbols at most, in the order of the model's own probabilities."""
    torch.manual_seed(3)
    model = pair_networks.model().eval()
    model.output.choice.bias.normal_()
    source, trees = [4, 2][:length], [target for target in TARGETS if is_tree(target, length)]
    batch = pair_networks.batch([source] * len(trees), trees)
    log_probs = (model.log_prob_given(batch.source, batch.inputs, batch.targets).double() * batch.mask).sum(0)
    scores = {
        target: one * 6**length_penalty / (6 + len(target)) ** length_penalty
        for target, one in zip(trees, log_probs.tolist(), strict=True)
    }
    wide = 400
    (found,) = search(
        model, [source], pair_networks.trees(), size=wide, nbest=wide, max_length=LONGEST, length_penalty=length_penalty
    )
    assert [tuple(one.symbols) for one in found] == sorted(scores, key=lambda target: -scores[target])
    np.testing.assert_allclose([one.score for one in found], sorted(scores.values(), reverse=True), atol=1e-5)


def test_what_an_eager_model_opens_is_bounded():
    """A model that only wants to open and never to end: ten constituents a place, and every line ends by itself."""
    torch.manual_seed(0)
    model = pair_networks.model().eval()
    model.output.choice.bias.data[pair_networks.TREES.ids["(A"]] = 50.0
    ((found,),) = search(model, [[1, 2]], pair_networks.trees(), size=1, max_length=10**9)
    assert pair_networks.TREES.decode(found.symbols)[:OPENED] == ["(A"] * OPENED
    assert is_tree(found.symbols, 2)
    ((short,),) = search(model, [[1, 2]], pair_networks.trees(), size=1, max_length=7)
    assert pair_networks.TREES.decode(short.symbols)[:2] == ["(A", "(A"]
    assert len(short.symbols) <= 7


def test_a_limit_of_the_words_leaves_words_alone_and_a_shorter_one_is_free():
    torch.manual_seed(0)
    model = pair_networks.model().eval()
    sources = [[1, 2, 3], [1, 2, 3, 4]]
    flat, free = search(model, sources, pair_networks.trees(), size=2, max_length=3)
    assert is_tree(flat[0].symbols, 3)
    assert set(pair_networks.TREES.decode(flat[0].symbols)) <= set("XYZ")
    (wanted,) = search(model, sources[1:], None, size=2, max_length=3)
    assert free[0].symbols == wanted[0].symbols


def test_hidden_parts_of_speech_are_xx_alone():
    vocabulary = Vocabulary(("<eos>", "XX", "(S", ")S", "DT", "(", "<unk>"), (1,) * 7)
    one = torch.ones(1, dtype=torch.int64)
    for hide_tags, words in ((True, {"XX"}), (False, {"XX", "DT", "("})):
        constraint = TreeConstraint(vocabulary, hide_tags=hide_tags)
        allowed = constraint.allowed(constraint.begin(one, 9 * one))[0]
        assert set(vocabulary.decode(allowed.nonzero().flatten().tolist())) == words | {"(S"}


def test_only_trees_are_constrained_and_only_if_a_symbol_stands_for_a_word():
    for form, hidden, constrained in (("trees", "keep", True), ("trees", "XX", False), ("tsv", "keep", False)):
        options = PairOptions(form=form, tags=hidden)
        symbols = PairSymbols(pair_networks.TREES, pair_networks.TREES, options, learn_tokenisers([], options))
        assert (constraint_of(symbols, "cpu") is not None) == constrained
