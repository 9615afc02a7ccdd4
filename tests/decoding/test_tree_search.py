"""Searches for trees against plain ones, over all sentences of a batch at once."""

import copy

import numpy as np
import pytest
import torch

from elman.data.trees.shape import side_by_side
from elman.decoding.parsing import Augmentation, chart_search, divided, greedy_search
from elman.objective.trees import tree_scores
from reference import trees as reference
from support.tree_networks import COMPOSITIONS, nested, random_trees, tree_model

LENGTHS = [6, 1, 4, 2, 6]


@pytest.fixture(scope="module", params=sorted(COMPOSITIONS))
def prepared(request):
    """A model, its leaves of five sentences, and a plain composition of single nodes."""
    model, lengths = tree_model(request.param), torch.tensor(LENGTHS)
    words = torch.randint(9, (max(LENGTHS), len(LENGTHS)), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        leaves = model.leaves(words, lengths)

    @torch.no_grad()
    def compose(left, right):
        pair = tuple(torch.stack(both).unsqueeze(0) for both in zip(left, right, strict=True))
        return tuple(part.squeeze(0) for part in model.core.composition.compose(pair))

    return model, leaves, lengths, compose


def own(leaves, row, length):
    return [tuple(part[word, row] for part in leaves) for word in range(length)]


@pytest.mark.parametrize("kappa", [0.0, 0.7])
def test_the_chart_is_a_plain_one(prepared, kappa):
    model, leaves, lengths, compose = prepared
    _, right, _ = random_trees(LENGTHS, seed=1)
    labels = torch.randint(5, (len(right.sentence),), generator=torch.Generator().manual_seed(5))
    augmentation = Augmentation.of(right, labels, kappa)
    found = chart_search(model, leaves, lengths, augmentation=augmentation, forbidden=(4,))
    for row, (length, one) in enumerate(zip(LENGTHS, found, strict=True)):
        truth = {
            (int(start), int(end)): int(label)
            for sentence, start, end, label in zip(right.sentence, right.start, right.end, labels, strict=True)
            if sentence == row
        }

        def label_score(vector, start, end, truth=truth):
            scores = model.label_log_probs(vector.unsqueeze(0))[0].detach()[:4]
            wrong = torch.tensor([float(truth.get((start, end)) != label) for label in range(4)])
            return float((scores + kappa * wrong).max())

        score, tree = reference.chart(
            length, own(leaves, row, length), compose, lambda vector: float(model.scores(vector).detach()), label_score
        )
        assert nested(one.shape) == tree
        trees, rows = side_by_side([one.shape])
        vectors = model.nodes(tuple(part[:, row : row + 1] for part in leaves), trees)[0].detach()
        named = torch.empty(len(one.labels), dtype=torch.int64)
        named[rows[0]] = torch.tensor(one.labels)
        log_prob = model.label_log_probs(vectors).gather(1, named.unsqueeze(1)).squeeze(1)
        wrong = sum(truth.get(span) != label for span, label in zip(one.shape.spans, one.labels, strict=True))
        assert tree_scores(model, vectors, log_prob, trees).item() + kappa * wrong == pytest.approx(score)
        assert 4 not in one.labels


def test_greedy_search_is_a_plain_one(prepared):
    model, leaves, lengths, compose = prepared
    for row, (length, one) in enumerate(zip(LENGTHS, greedy_search(model, leaves, lengths), strict=True)):
        score = lambda vector: float(model.scores(vector).detach())  # noqa: E731
        assert nested(one.shape) == reference.greedy(length, own(leaves, row, length), compose, score)
        trees, rows = side_by_side([one.shape])
        vectors = model.nodes(tuple(part[:, row : row + 1] for part in leaves), trees)[0]
        assert one.labels == model.label_log_probs(vectors)[rows[0]].argmax(1).tolist()
    assert all(4 not in one.labels for one in greedy_search(model, leaves, lengths, forbidden=(4,)))


def test_the_chart_is_exact_for_three_words(prepared):
    """Labels apart: of three words every tree has one part of two words, so that one vector per span loses nothing."""
    model, leaves, _, compose = prepared
    model, leaves = copy.deepcopy(model), tuple(part[:3] for part in leaves)
    for parameter in model.output.parameters():
        torch.nn.init.zeros_(parameter)
    for row, one in enumerate(chart_search(model, leaves, torch.tensor([3] * 5))):
        scores = {}
        for tree in reference.binary_trees(0, 3):
            states, _ = reference.states(tree, own(leaves, row, 3), compose)
            above = [state[0] for (start, end), state in states.items() if end - start > 1]
            scores[tree] = sum(float(model.scores(vector).detach()) for vector in above)
        assert nested(one.shape) == max(scores, key=scores.get)


def test_a_tree_from_splits():
    shape = divided(4, {(0, 4): 1, (1, 4): 3, (1, 3): 2}.__getitem__)
    assert nested(shape) == (0, ((1, 2), 3))
    assert shape.heights == (1, 2, 3)
    assert shape.spans == ((0, 1), (1, 2), (2, 3), (3, 4), (1, 3), (1, 4), (0, 4))


def test_wrong_nodes_are_spans_or_labels_of_no_right_tree():
    _, right, _ = random_trees([3], seed=0)
    labels = torch.tensor([0, 1, 2, 3, 4])
    augmentation = Augmentation.of(right, labels, 0.5)
    assert not augmentation.wrong(right, labels).any()
    assert augmentation.wrong(right, labels.roll(1)).all()
    added = augmentation.added(torch.zeros(1, 2, 5), 2)
    assert sorted(added.flatten().tolist()) == [0.0] + [0.5] * 9  # one right span of two words, with one right label


def test_scores_of_labels_are_left_alone_where_nothing_is_forbidden(prepared):
    model, leaves, lengths, _ = prepared
    found = chart_search(model, leaves, lengths)
    assert [one.shape.num_words for one in found] == LENGTHS
    assert np.unique(np.concatenate([one.labels for one in found])).max() < 5
