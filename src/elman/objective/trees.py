"""The objective of trees: the labels of their nodes, and, of a parser, a structured margin.

The score of a tree is the sum of u'p over its nodes with children and of the log-probabilities of all its labels. A
parser is trained so that the right tree beats every other one by `kappa` for each node of the other that is not in it,
span and label (Socher et al. 2013, eqs 1, 2 and 6; Taskar et al. 2004):

    hinge = max_y [ s(y) + kappa * wrong(y) ] - s(right), never below 0

The chart finds the maximum, and its tree is held constant while the gradient is computed, which is a
subgradient of the hinge.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elman import config
from elman.data.batches import Batch
from elman.data.trees.shape import Trees, side_by_side
from elman.decoding.parsing import Augmentation, chart_search
from elman.network.tree_model import TreeModel
from elman.network.trees.composition import NodeState
from elman.objective.loss import Loss


class TreeLoss(NamedTuple):
    """Sums over a batch: NLL of the labels that count (nats), how many they are, and hinges of the sentences."""

    nll: Tensor
    num_counted: Tensor
    hinge: Tensor

    def reduced(self, margin: config.Margin | None) -> Loss:
        """Per label that counts, 0 where none does; the reported NLL includes the hinge by its weight."""
        total = self.nll if margin is None else self.nll + margin.weight * self.hinge
        mean = total / self.num_counted.clamp(min=1)
        return Loss(mean, total.detach(), self.num_counted, self.num_counted.new_zeros(()))


def tree_loss(model: TreeModel, batch: Batch, margin: config.Margin | None) -> TreeLoss:
    """The loss of trees, with hinges where there is a margin; raises ValueError where sentences have no trees."""
    if batch.trees is None or batch.mask is None:
        raise ValueError("a batch without trees")
    leaves = model.leaves(batch.inputs, batch.trees.lengths)
    vectors = model.dropped(model.nodes(leaves, batch.trees)[0])
    counted = batch.mask.to(vectors.dtype)
    if margin is None:
        nll, _ = model.output.nll(model.output.contexts(model.trace_of(vectors)), batch.targets, counted)
        return TreeLoss(nll, counted.sum(), nll.new_zeros(()))
    labels = batch.targets.squeeze(1)
    log_prob = model.output.log_prob(model.trace_of(vectors), batch.targets).squeeze(1)
    right = tree_scores(model, vectors, log_prob, batch.trees)
    augmentation = Augmentation.of(batch.trees, labels, margin.kappa)
    best = _best_scores(model, leaves, batch.trees, augmentation)
    return TreeLoss(-(log_prob * counted.squeeze(1)).sum(), counted.sum(), (best - right).relu().sum())


def tree_scores(model: TreeModel, vectors: Tensor, log_prob: Tensor, trees: Trees) -> Tensor:
    """The scores [B] of trees, from the vectors of their nodes [N, H] and the log-probabilities of their labels [N]."""
    num_leaves = len(trees.places)
    scores = log_prob.new_zeros(len(trees.lengths)).index_add(0, trees.sentence, log_prob)
    return scores.index_add(0, trees.sentence[num_leaves:], model.scores(vectors[num_leaves:]))


def _best_scores(model: TreeModel, leaves: NodeState, right: Trees, augmentation: Augmentation) -> Tensor:
    """The augmented scores [B] of the trees that a chart finds, differentiable."""
    found = chart_search(model, leaves, right.lengths, augmentation=augmentation)
    trees, rows = side_by_side([one.shape for one in found])
    labels = torch.empty_like(trees.sentence)
    for one, places in zip(found, rows, strict=True):
        labels[torch.tensor(places)] = torch.tensor(one.labels)
    trees, labels = trees.to(right.lengths.device), labels.to(right.lengths.device)
    vectors = model.dropped(model.nodes(leaves, trees)[0])
    log_prob = model.output.log_prob(model.trace_of(vectors), labels.unsqueeze(1)).squeeze(1)
    wrong = augmentation.wrong(trees, labels).to(log_prob.dtype)
    added = log_prob.new_zeros(len(trees.lengths)).index_add(0, trees.sentence, wrong)
    return tree_scores(model, vectors, log_prob, trees) + augmentation.kappa * added
