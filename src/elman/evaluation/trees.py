"""A model of trees on a split: the labels of constituents whose trees are given, and the trees that a parser finds."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.config.training import Margin
from elman.data.pairs.trees import linear
from elman.data.trees.corpus import Treebank, TreeCorpus, TreeSymbols, gather, in_batches
from elman.data.trees.shape import tree_of
from elman.decoding.bracketing import Bracketing
from elman.decoding.chart import chart_search
from elman.decoding.merging import greedy_search
from elman.evaluation.perplexity import Score
from elman.evaluation.statistics import Floats, Measure
from elman.jobs import Advance
from elman.network.encoders.characters import Characters
from elman.network.tree_model import TreeModel
from elman.objective.trees import tree_loss

Ids = npt.NDArray[np.integer]
Search = Literal["chart", "greedy"]

BATCH = 32
"""Sentences side by side; it changes nothing but the speed."""

CELLS = 50_000
"""Spans, twice counted, of the charts that are filled side by side at most, which bounds their memory."""

ACCURACY = "constituents labelled right, their trees given, chains of single children as one label"


class Labelling(NamedTuple):
    """The constituents of a split in order of sentence: the log-probability of the right label and the label found.

    Arrays [n]: log-probabilities (nats) among labels of constituents, ids of labels that were found and that are right,
    and the number of the sentence.
    """

    log_prob: Floats
    found: Ids
    right: Ids
    sentence: Ids

    @property
    def score(self) -> Score:
        """The NLL of the right labels."""
        return Score(-float(self.log_prob.sum()), len(self.log_prob))

    def accuracy(self, sentences: int) -> Measure:
        """The share of labels that are right (percent), by sentence."""
        right = np.bincount(self.sentence, self.found == self.right, minlength=sentences)
        counts = np.bincount(self.sentence, minlength=sentences)
        return Measure("label accuracy", np.stack([right, counts], 1).astype(np.float64), _percent, ACCURACY)


def _percent(sums: Floats) -> float:
    return float(100 * sums[0] / sums[1]) if sums[1] else 0.0


def reading(model: TreeModel, symbols: TreeSymbols, sentences: Sequence[Sequence[str]]) -> tuple[TreeModel, list[Ids]]:
    """The ids of sentences, and a model that reads them: one of spelling knows the words that the vocabulary lacks."""
    if not isinstance(model.encoder, Characters):
        return model, [symbols.encode(words) for words in sentences]
    unknown = dict.fromkeys(
        word for words in sentences for word in symbols.folded(words) if word not in symbols.words.ids
    )
    more = {word: len(symbols.words) + number for number, word in enumerate(unknown)}
    wider = model.knowing(list(more))
    assert isinstance(wider, TreeModel)
    return wider, [symbols.encode(words, more) for words in sentences]


@torch.inference_mode()
def label_constituents(
    model: TreeModel, corpus: TreeCorpus, trees: Treebank, *, batch_size: int = BATCH, advance: Advance = None
) -> Labelling:
    """The labels of all constituents of a split; the model is in evaluation mode."""
    symbols = corpus.symbols
    reader, ids = reading(model, symbols, trees.sentences)
    parts = []
    for indices in _progress(in_batches(trees.lengths, batch_size), len(trees), advance):
        batch = gather(symbols, [ids[i] for i in indices], [trees.shapes[i] for i in indices], False).to(model.device)
        assert batch.trees is not None
        assert batch.mask is not None
        counted = batch.mask.squeeze(1)
        vectors = reader.nodes(reader.leaves(batch.inputs, batch.trees.lengths), batch.trees)[0][counted]
        found, log_probs = choose(reader.label_log_probs(vectors), symbols)
        right, sentence = batch.targets[counted].squeeze(1), batch.trees.sentence[counted]
        log_prob = log_probs.gather(1, right.unsqueeze(1)).squeeze(1).double()
        numbers = np.array(indices)[sentence.cpu().numpy()]
        parts.append((log_prob.cpu().numpy(), found.cpu().numpy(), right.cpu().numpy(), numbers))
    return Labelling(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def choose(log_probs: Tensor, symbols: TreeSymbols) -> tuple[Tensor, Tensor]:
    """The best labels [N] of constituents, and log-probabilities [N, L] given that they are some."""
    given = log_probs.index_fill(-1, torch.tensor(symbols.none, device=log_probs.device), -torch.inf).log_softmax(-1)
    return given.index_fill(-1, torch.tensor(symbols.unknown_label, device=given.device), -torch.inf).argmax(-1), given


@torch.inference_mode()
def parse(
    model: TreeModel,
    symbols: TreeSymbols,
    sentences: Sequence[Sequence[str]],
    search: Search = "chart",
    *,
    batch_size: int = BATCH,
    advance: Advance = None,
) -> list[Bracketing]:
    """The trees that a parser in evaluation mode finds over sentences of one word or more."""
    reader, ids = reading(model, symbols, sentences)
    lengths = np.array([len(words) for words in sentences], np.int64)
    found: list[Bracketing | None] = [None] * len(sentences)
    for indices in _progress(_small(in_batches(lengths, batch_size), lengths), len(sentences), advance):
        words = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(ids[index].astype(np.int64)) for index in indices])
        words, own = words.to(model.device), torch.from_numpy(lengths[indices]).to(model.device)
        leaves = reader.leaves(words, own)
        best = (chart_search if search == "chart" else greedy_search)(
            reader, leaves, own, forbidden=(symbols.unknown_label,)
        )
        for index, one in zip(indices, best, strict=True):
            found[index] = one
    return [one for one in found if one is not None]


def linear_trees(found: Sequence[Bracketing], sentences: Sequence[Sequence[str]], symbols: TreeSymbols) -> list[str]:
    """Trees in linear form, as `elman.evaluation.brackets.tree_measures` compares them."""
    return [
        " ".join(linear(tree_of(one.shape, words, symbols.labels.decode(one.labels))))
        for one, words in zip(found, sentences, strict=True)
    ]


@torch.inference_mode()
def training_loss(
    model: TreeModel, corpus: TreeCorpus, trees: Treebank, margin: Margin | None, *, batch_size: int = BATCH
) -> float:
    """The loss by which a model is trained, on a split without dropout: nats per label, with the margin of a parser."""
    training, total, count = model.training, 0.0, 0
    model.eval()
    reader, ids = reading(model, corpus.symbols, trees.sentences)
    try:
        batches = in_batches(trees.lengths, batch_size)
        for indices in batches if margin is None else _small(batches, trees.lengths):
            shapes = [trees.shapes[index] for index in indices]
            batch = gather(corpus.symbols, [ids[index] for index in indices], shapes, margin is not None)
            loss = tree_loss(reader, batch.to(model.device), margin).reduced(margin)
            total += float(loss.nll_sum)
            count += int(loss.num_counted)
    finally:
        model.train(training)
    return total / max(1, count)


def _small(batches: list[list[int]], lengths: Ids) -> list[list[int]]:
    """Batches cut so that the charts over their sentences are not too large together; a sentence is never cut."""
    found = []
    for indices in batches:
        size = max(1, CELLS // int(lengths[indices].max()) ** 2)
        found += [indices[at : at + size] for at in range(0, len(indices), size)]
    return found


def _progress(batches: list[list[int]], total: int, advance: Advance) -> Iterator[list[int]]:
    done = 0
    for indices in batches:
        yield indices
        done += len(indices)
        if advance is not None:
            advance(done, total)
