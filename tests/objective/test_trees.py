"""The objective of trees by value: labels that count, and the structured hinge."""

import numpy as np
import pytest
import torch

from elman import config
from elman.data.text.vocabulary import Vocabulary
from elman.decoding.parsing import Augmentation, chart_search
from elman.kinds.trees.corpus import TreeSymbols, gather
from elman.kinds.trees.record import TreeOptions
from elman.objective.trees import tree_loss, tree_scores
from support.tree_networks import random_shape, tree_model

SYMBOLS = TreeSymbols(
    Vocabulary(("v", "w", "<unk>"), (3, 2, 1)),
    Vocabulary(("a", "b", "c", "<unk>", "<none>"), (5, 4, 3, 1, 7)),
    TreeOptions(),
)


def batch_of(lengths, *, all_nodes=True, seed=0):
    draw = np.random.default_rng(seed)
    shapes = [random_shape(length, draw) for length in lengths]
    return gather(SYMBOLS, [draw.integers(0, 9, length) for length in lengths], shapes, all_nodes)


def log_probs(model, batch):
    vectors = model.nodes(model.leaves(batch.inputs, batch.trees.lengths), batch.trees)[0]
    return vectors, model.label_log_probs(vectors).gather(1, batch.targets).squeeze(1)


@pytest.mark.parametrize("all_nodes", [True, False])
def test_labels_of_constituents_or_of_all_nodes_count(all_nodes):
    model, batch = tree_model(parser=False), batch_of([5, 1, 3], all_nodes=all_nodes)
    _, each = log_probs(model, batch)
    counted = [place for place, label in enumerate(batch.targets.flatten().tolist()) if all_nodes or label != 4]
    loss = tree_loss(model, batch, None)
    assert loss.num_counted.item() == len(counted)
    assert loss.nll.item() == pytest.approx(-float(each[counted].sum().detach()))
    assert loss.hinge.item() == 0
    assert loss.reduced(None).objective.item() == pytest.approx(loss.nll.item() / len(counted))


def test_a_batch_without_labels_that_count_has_the_loss_0():
    """Such as single words, which are no constituents."""
    model, batch = tree_model(parser=False), batch_of([3, 1], all_nodes=False)
    loss = tree_loss(model, batch._replace(mask=torch.zeros_like(batch.mask)), None).reduced(None)
    loss.objective.backward()
    assert loss.objective.item() == loss.num_counted.item() == 0
    assert all(one.grad is None or not one.grad.any() for one in model.parameters())


@pytest.mark.parametrize("kappa", [0.0, 0.3, 40.0])
def test_the_hinge_is_the_augmented_score_above_the_right_one(kappa):
    model, batch = tree_model(), batch_of([5, 1, 3, 7])
    margin = config.Margin(kappa=kappa, weight=0.25)
    vectors, each = log_probs(model, batch)
    trees, leaves = batch.trees, model.leaves(batch.inputs, batch.trees.lengths)
    found = chart_search(model, leaves, trees.lengths, augmentation=Augmentation.of(trees, batch.targets[:, 0], kappa))
    hinge = 0.0
    for row, one in enumerate(found):
        ours = [place for place in range(len(trees.sentence)) if trees.sentence[place] == row]
        inner = [place for place in ours if trees.end[place] - trees.start[place] > 1]
        right = each[ours].sum().item() + sum(model.scores(vectors[place]).item() for place in inner)
        truth = {(int(trees.start[n]), int(trees.end[n])): int(batch.targets[n]) for n in ours}
        single = batch._replace(inputs=batch.inputs[: one.shape.num_words, row : row + 1])
        other = gather(SYMBOLS, [single.inputs[:, 0].numpy()], [one.shape])
        theirs = model.nodes(model.leaves(other.inputs, other.trees.lengths), other.trees)[0]
        score = 0.0
        for place, (vector, start, end) in enumerate(zip(theirs, other.trees.start, other.trees.end, strict=True)):
            span = (int(start), int(end))
            label = one.labels[one.shape.spans.index(span)]
            score += model.label_log_probs(vector.unsqueeze(0))[0, label].item() + kappa * (truth.get(span) != label)
            score += model.scores(vector).item() if place >= one.shape.num_words else 0.0
        hinge += max(0.0, score - right)
    loss = tree_loss(model, batch, margin)
    assert loss.hinge.item() == pytest.approx(hinge)
    reported = loss.reduced(margin)
    assert reported.objective.item() == pytest.approx((loss.nll.item() + 0.25 * hinge) / loss.num_counted.item())
    assert reported.nll_sum.item() == pytest.approx(loss.nll.item() + 0.25 * hinge)


@pytest.mark.slow
def test_the_hinge_is_zero_where_the_chart_misses_a_better_tree():
    """The chart keeps one vector per span, so that the right tree may have a higher score than any that it finds."""
    draw, lengths = np.random.default_rng(0), torch.tensor([6])
    missed = 0
    for seed in range(6):
        model = tree_model(seed=seed)
        words = draw.integers(0, 9, 6)
        shapes = [random_shape(6, draw) for _ in range(15)]
        found = chart_search(model, model.leaves(torch.from_numpy(words).unsqueeze(1), lengths), lengths)[0]
        totals = []
        for shape in (found.shape, *shapes):
            batch = gather(SYMBOLS, [words], [shape])
            vectors, _ = log_probs(model, batch)
            labels = model.label_log_probs(vectors).argmax(1, keepdim=True)
            batch = batch._replace(targets=labels)
            totals.append((float(tree_scores(model, vectors, log_probs(model, batch)[1], batch.trees).detach()), batch))
        best, batch = max(totals, key=lambda pair: pair[0])
        missed += best > totals[0][0] + 1e-9
        assert float(tree_loss(model, batch, config.Margin(kappa=0.0)).hinge.detach()) == pytest.approx(0, abs=1e-9)
    assert missed


def test_gradients():
    model, batch = tree_model("affine"), batch_of([3, 2], seed=2)
    names, values = zip(*model.named_parameters(), strict=True)

    def objective(*values):
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(_Called(model, batch), {f"model.{name}": one for name, one in given.items()})

    assert torch.autograd.gradcheck(
        objective, tuple(value.detach().requires_grad_() for value in values), fast_mode=True
    )


class _Called(torch.nn.Module):
    def __init__(self, model, batch):
        super().__init__()
        self.model, self.batch = model, batch

    def forward(self):
        return tree_loss(self.model, self.batch, config.Margin(kappa=0.5)).reduced(config.Margin(kappa=0.5)).objective


def test_sentences_do_not_depend_on_the_others_of_a_batch():
    """A reader of both directions below the leaves included, whose padding has no effect."""
    leaves = config.Stack(sizes=(3,))
    model, batch = tree_model(leaves=leaves), batch_of([5, 1, 3])
    vectors, _ = log_probs(model, batch)
    for row, length in enumerate([5, 1, 3]):
        draw = np.random.default_rng(0)
        shape = [random_shape(size, draw) for size in (5, 1, 3)][row]
        alone = gather(SYMBOLS, [batch.inputs[:length, row].numpy()], [shape])
        own, _ = log_probs(model, alone)
        torch.testing.assert_close(own, vectors[batch.trees.sentence == row])
