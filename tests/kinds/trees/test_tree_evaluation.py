"""Labels of constituents: probabilities given that they are some, accuracy by hand, and the baselines."""

import math

import numpy as np
import pytest
import torch

from elman.data.trees.shape import NONE
from elman.errors import UserError
from elman.evaluation.labelling import Labelling
from elman.kinds.trees import evaluation as trees
from elman.kinds.trees.baselines import _Bags, _regression, bag_of_words, majority
from elman.kinds.trees.corpus import open_trees
from elman.kinds.trees.evaluation import (
    choose,
    label_accuracy,
    label_constituents,
    linear_trees,
    parse,
    require_short,
    training_loss,
)
from elman.kinds.trees.record import TreeOptions
from support import treebank
from support.tree_networks import tree_model


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = treebank.write(tmp_path_factory.mktemp("bank") / "bank")
    return open_trees(path, TreeOptions(valid=10, test=10, min_count=1, min_label=1))


@pytest.fixture(scope="module")
def model(corpus):
    symbols = corpus.symbols
    return tree_model(words=len(symbols.words), labels=len(symbols), dtype=torch.float32)


def test_labels_are_chosen_among_those_of_constituents(corpus):
    symbols = corpus.symbols
    log_probs = torch.full((1, len(symbols)), -9.0)
    log_probs[0, symbols.none], log_probs[0, symbols.unknown_label], log_probs[0, 1] = (
        math.log(0.8),
        -0.5,
        math.log(0.05),
    )
    found, given = choose(log_probs.log_softmax(-1), symbols)
    assert found.tolist() == [1]
    assert float(given.exp().sum()) == pytest.approx(1)
    assert float(given[0, symbols.none]) == -math.inf
    assert float(given[0, 1] - given[0, 0]) == pytest.approx(math.log(0.05) + 9)


def test_accuracy_and_loss_by_hand():
    found = Labelling(np.log([0.5, 0.25, 1.0]), np.array([1, 2, 3]), np.array([1, 0, 3]), np.array([0, 0, 2]))
    measured = label_accuracy(found, 3)
    assert measured.value == pytest.approx(100 * 2 / 3)
    assert measured.statistics.tolist() == [[1, 2], [0, 0], [1, 1]]
    assert found.score.nll == pytest.approx((math.log(2) + math.log(4)) / 3)


def test_every_constituent_is_labelled_once(corpus, model):
    split = corpus.split("test")
    found = label_constituents(model, corpus, split, batch_size=3)
    others = label_constituents(model, corpus, split, batch_size=10)
    assert (
        len(found.right) == split.facts["tokens"] == sum(label != NONE for one in split.shapes for label in one.labels)
    )
    order, again = np.argsort(found.sentence, kind="stable"), np.argsort(others.sentence, kind="stable")
    counts = np.bincount(found.sentence, minlength=len(split))
    assert counts.tolist() == [sum(shape.is_constituent) for shape in split.shapes]
    assert found.score.nll == pytest.approx(others.score.nll, rel=1e-5)
    assert sorted(found.right[order].tolist()) == sorted(others.right[again].tolist())


def test_the_majority_is_the_most_frequent_label_of_training(corpus):
    found = majority(corpus, corpus.split("test"))
    assert set(found.found.tolist()) == {corpus.symbols.labels.ids["NP"]}
    assert found.score.count == corpus.split("test").facts["tokens"]


def test_bags_hold_the_words_of_their_constituents(corpus):
    split, symbols = corpus.split("test"), corpus.symbols
    bags = _Bags(split, symbols)
    wanted = [
        split.ids[number][start:end].tolist()
        for number, shape in enumerate(split.shapes)
        for label, (start, end) in zip(shape.labels, shape.spans, strict=True)
        if label != NONE
    ]
    words, begins = bags.some(torch.arange(len(bags)).flip(0))
    ends = [*begins[1:].tolist(), len(words)]
    assert [words[a:b].tolist() for a, b in zip(begins.tolist(), ends, strict=True)] == wanted[::-1]


def test_a_bag_of_words_is_better_than_the_majority_and_always_the_same(corpus):
    split = corpus.split("test")
    (bag,) = bag_of_words(corpus, [split])
    _regression.cache_clear()
    (again,) = bag_of_words(corpus, [split])
    np.testing.assert_array_equal(bag.log_prob, again.log_prob)
    assert label_accuracy(bag, len(split)).value > label_accuracy(majority(corpus, split), len(split)).value


def test_the_bag_of_words_is_a_thousand_updates_of_adam(corpus):
    """Of 256 constituents at a time in the order of the seed, at rate .01; the first of the best checks is taken."""
    symbols = corpus.symbols
    counts, right = {}, {}
    for name in ("train", "valid", "test"):
        split = corpus.split(name)
        found = [
            (np.bincount(ids[start:end], minlength=len(symbols.words)), symbols.labels.ids[label])
            for ids, shape in zip(split.ids, split.shapes, strict=True)
            for label, (start, end) in zip(shape.labels, shape.spans, strict=True)
            if label != NONE
        ]
        counts[name] = torch.tensor(np.array([one for one, _ in found]), dtype=torch.float32)
        right[name] = torch.tensor([label for _, label in found])
    assert len(counts["train"]) > 2 * 256
    weight, bias = (
        torch.zeros(shape, requires_grad=True) for shape in ((len(symbols.words), len(symbols)), len(symbols))
    )
    adam, generator, kept = torch.optim.Adam([weight, bias], lr=0.01), torch.Generator().manual_seed(3), []
    epochs = 1000 * 256 // (10 * len(counts["train"]))
    assert epochs > 1
    for number in range(1, 10 * epochs + 1):
        for rows in torch.randperm(len(counts["train"]), generator=generator).split(256):
            adam.zero_grad()
            sums = counts["train"][rows] @ weight + bias
            torch.nn.functional.cross_entropy(sums, right["train"][rows]).backward()
            adam.step()
        with torch.no_grad():
            best, _ = choose((counts["valid"] @ weight + bias).log_softmax(-1), symbols)
            log_probs = (counts["test"] @ weight + bias).log_softmax(-1)
            log_probs = choose(log_probs, symbols)[1].gather(1, right["test"].unsqueeze(1)).squeeze(1)
        if number % epochs == 0:
            kept.append(((best == right["valid"]).sum().item(), log_probs))
    (bag,) = bag_of_words(corpus, [corpus.split("test")], seed=3)
    _, expected = max(kept, key=lambda one: one[0])
    np.testing.assert_allclose(bag.log_prob, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("search", ["chart", "greedy"])
def test_parses_do_not_depend_on_the_batch(corpus, model, search):
    split, symbols = corpus.split("test"), corpus.symbols
    one, several = (parse(model, symbols, split.sentences, search, batch_size=size) for size in (1, 7))
    lines = linear_trees(several, split.sentences, symbols)
    assert linear_trees(one, split.sentences, symbols) == lines
    assert all(symbols.unknown_label not in found.labels for found in several)
    assert [line.count("XX") for line in lines] == split.lengths.tolist()


def test_long_sentences_are_parsed_in_small_batches(corpus, model, monkeypatch):
    split, symbols = corpus.split("test"), corpus.symbols
    whole = parse(model, symbols, split.sentences)
    monkeypatch.setattr(trees, "CELLS", 150)
    assert trees._small([[3, 1, 2], [4]], np.array([0, 7, 8, 7, 90])) == [[3, 1], [2], [4]]
    assert parse(model, symbols, split.sentences) == whole


def test_the_training_loss_leaves_the_model_as_it_was(corpus, model):
    model.train()
    first = training_loss(model, corpus, corpus.split("valid"), None, batch_size=2).nll
    assert model.training
    assert first == pytest.approx(training_loss(model.eval(), corpus, corpus.split("valid"), None).nll, rel=1e-5)
    found = label_constituents(model, corpus, corpus.split("valid"))
    assert first == pytest.approx(found.score.nll, rel=1e-5), "validated as evaluated"


def test_sentences_that_are_too_long_for_a_search_are_refused():
    require_short(np.array([1_000, 3]))
    require_short(np.array([10_000]), "greedy")
    with pytest.raises(UserError, match=r"1,001 words is too long to be parsed: --search chart allows 1,000.*greedily"):
        require_short(np.array([3, 1_001]))
    with pytest.raises(UserError, match=r"10,001 words .* allows 10,000 .its time grows with the square"):
        require_short(np.array([10_001]), "greedy")
