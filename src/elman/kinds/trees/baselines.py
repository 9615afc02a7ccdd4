"""What models of trees must exceed: the most frequent label, a bag of words, trees that branch to one side."""

import functools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from elman.data.trees.shape import NONE
from elman.evaluation.branching import branching
from elman.evaluation.labelling import Labelling
from elman.evaluation.measures import tree_measures
from elman.evaluation.result import Estimate
from elman.evaluation.statistics import estimates
from elman.kinds.trees.corpus import Treebank, TreeCorpus, TreeSymbols
from elman.kinds.trees.evaluation import choose

CHECKS, UPDATES, RATE, BATCH = 10, 1_000, 0.01, 256
"""Of the bag of words: the best of ten checks on the validation split is taken, each after as many epochs as give a
thousand updates in all, at least one."""


class _Bags:
    """The words of every constituent of some trees, end to end, with the right labels."""

    def __init__(self, trees: Treebank, symbols: TreeSymbols) -> None:
        words, ends, labels, sentence = [], [], list[str](), []
        for number, (ids, shape) in enumerate(zip(trees.ids, trees.shapes, strict=True)):
            for label, (start, end) in zip(shape.labels, shape.spans, strict=True):
                if label != NONE:
                    words.append(ids[start:end])
                    ends.append(end - start)
                    labels.append(label)
                    sentence.append(number)
        self.words = torch.from_numpy(np.concatenate(words).astype(np.int64))
        self.ends = torch.from_numpy(np.cumsum([0, *ends]))
        self.labels = torch.from_numpy(symbols.labels.encode(labels).astype(np.int64))
        self.sentence = np.array(sentence)

    def __len__(self) -> int:
        return len(self.labels)

    def some(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The words of some constituents end to end, and where each begins."""
        lengths = self.ends[rows + 1] - self.ends[rows]
        begins = lengths.cumsum(0) - lengths
        places = torch.arange(int(lengths.sum())) + (self.ends[rows] - begins).repeat_interleave(lengths)
        return self.words[places], begins

    def labelling(self, log_probs: Tensor, symbols: TreeSymbols) -> Labelling:
        found, given = choose(log_probs, symbols)
        right = given.gather(1, self.labels.unsqueeze(1)).squeeze(1).double()
        return Labelling(right.numpy(), found.numpy(), self.labels.numpy(), self.sentence)


def majority(corpus: TreeCorpus, split: Treebank) -> Labelling:
    """Every constituent labelled as most of the training split's, by the relative frequencies there."""
    counts = torch.tensor(corpus.symbols.labels.counts, dtype=torch.float64)
    bags = _Bags(split, corpus.symbols)
    return bags.labelling((counts + 1).log().log_softmax(0).expand(len(bags), -1), corpus.symbols)


def branching_measures(corpus: TreeCorpus, split: Treebank, *, left: bool = False) -> list[Estimate]:
    """The brackets of right- or left-branching trees over the sentences of a split."""
    train = corpus.split("train")
    known, texts = ([" ".join(words) for words in one.sentences] for one in (train, split))
    return estimates(tree_measures(branching(train.linear, known, texts, left=left), split.linear, texts))


def bag_of_words(corpus: TreeCorpus, splits: Sequence[Treebank], seed: int = 0) -> list[Labelling]:
    """Labels of constituents of splits by logistic regression on the counts of their words."""
    bags = [_Bags(split, corpus.symbols) for split in splits]
    return [each.labelling(_log_probs(*_regression(corpus, seed), each), corpus.symbols) for each in bags]


@functools.lru_cache(maxsize=1)
def _regression(corpus: TreeCorpus, seed: int) -> tuple[Tensor, Tensor]:
    """Weights [words, labels] and biases [labels], trained by Adam; once for all splits of a corpus."""
    symbols = corpus.symbols
    train, valid = (_Bags(corpus.split(name), symbols) for name in ("train", "valid"))
    weights, bias = torch.zeros(len(symbols.words), len(symbols)), torch.zeros(len(symbols))
    model = nn.EmbeddingBag.from_pretrained(weights, freeze=False, mode="sum")
    offset = nn.Parameter(bias)
    optimiser = torch.optim.Adam([*model.parameters(), offset], lr=RATE)
    generator = torch.Generator().manual_seed(seed)
    best, kept = -1.0, (weights.clone(), bias.clone())
    epochs = max(1, UPDATES * BATCH // (CHECKS * len(train)))
    for number in range(CHECKS * epochs):
        for rows in torch.randperm(len(train), generator=generator).split(BATCH):
            optimiser.zero_grad()
            cross_entropy(model(*train.some(rows)) + offset, train.labels[rows]).backward()
            optimiser.step()
        if (number + 1) % epochs:
            continue
        found = valid.labelling(_log_probs(model.weight, offset, valid), symbols)
        accuracy = float((found.found == found.right).mean())
        if accuracy > best:
            best, kept = accuracy, (model.weight.detach().clone(), offset.detach().clone())
    return kept


@torch.no_grad()
def _log_probs(weight: Tensor, bias: Tensor, bags: _Bags) -> Tensor:
    sums = nn.functional.embedding_bag(bags.words, weight, bags.ends[:-1], mode="sum")
    return (sums + bias).log_softmax(-1)
