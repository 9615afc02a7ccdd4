"""A model of trees on a split: the labels of constituents whose trees are given, and the trees that a parser finds."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from elman.config.training import Margin
from elman.data.by_length import by_length
from elman.data.sentences import Ids
from elman.data.trees.brackets import linear
from elman.data.trees.shape import tree_of
from elman.decoding.parsing import Bracketing, chart_search, greedy_search
from elman.errors import UserError
from elman.evaluation.labelling import Labelling, progressing, reading
from elman.evaluation.perplexity import Score, evaluating
from elman.evaluation.statistics import Measure
from elman.jobs import Advance
from elman.kinds.trees.corpus import Treebank, TreeCorpus, TreeSymbols, gather
from elman.network.tree_model import TreeModel
from elman.objective.trees import tree_loss

Search = Literal["chart", "greedy"]

BATCH = 32  # sentences side by side; it changes nothing but the speed
CELLS = 50_000  # spans, twice counted, of the charts that are filled side by side at most, which bounds their memory
LONGEST = {"chart": 1_000, "greedy": 10_000}
"""Words of a sentence over which trees are searched for: a chart takes time by the cube of the length."""


def label_accuracy(found: Labelling, sentences: int) -> Measure:
    """The share of constituents whose label is right (percent), by sentence."""
    signature = "constituents labelled right, their trees given, chains of single children as one label"
    return found.accuracy(sentences, "label accuracy", signature)


@torch.inference_mode()
def label_constituents(model: TreeModel, corpus: TreeCorpus, trees: Treebank, *, batch_size: int = BATCH) -> Labelling:
    """The labels of all constituents of a split, probabilities among theirs; the model is in evaluation mode."""
    symbols = corpus.symbols
    reader, ids = reading(model, symbols, trees.sentences)
    parts = []
    for indices in by_length(trees.lengths, batch_size=batch_size):
        batch = gather(symbols, [ids[i] for i in indices], [trees.shapes[i] for i in indices], False).to(model.device)
        assert batch.trees is not None
        assert batch.mask is not None
        counted = batch.mask.squeeze(1)
        vectors = reader.nodes(reader.leaves(batch.inputs, batch.trees.lengths), batch.trees)[0][counted]
        found, log_probs = choose(reader.label_log_probs(vectors), symbols)
        right, sentence = batch.targets[counted].squeeze(1), batch.trees.sentence[counted]
        log_prob = log_probs.gather(1, right.unsqueeze(1)).squeeze(1).cpu().double()
        numbers = np.array(indices)[sentence.cpu().numpy()]
        parts.append((log_prob.numpy(), found.cpu().numpy(), right.cpu().numpy(), numbers))
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
    require_short(lengths, search)
    found: list[Bracketing | None] = [None] * len(sentences)
    for indices in progressing(_small(by_length(lengths, batch_size=batch_size), lengths), len(sentences), advance):
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
    """Trees in linear form, as `elman.evaluation.measures.tree_measures` compares them."""
    return [
        " ".join(linear(tree_of(one.shape, words, symbols.labels.decode(one.labels))))
        for one, words in zip(found, sentences, strict=True)
    ]


@torch.inference_mode()
def training_loss(
    model: TreeModel, corpus: TreeCorpus, trees: Treebank, margin: Margin | None, *, batch_size: int = BATCH
) -> Score:
    """Nats over the labels of a split, as in results; of a parser over those of all nodes, with its margin."""
    total, count = 0.0, 0
    with evaluating(model):
        if margin is None:
            return label_constituents(model, corpus, trees, batch_size=batch_size).score
        reader, ids = reading(model, corpus.symbols, trees.sentences)
        for indices in _small(by_length(trees.lengths, batch_size=batch_size), trees.lengths):
            shapes = [trees.shapes[index] for index in indices]
            batch = gather(corpus.symbols, [ids[index] for index in indices], shapes)
            loss = tree_loss(reader, batch.to(model.device), margin).reduced(margin)
            total += float(loss.nll_sum)
            count += int(loss.num_counted)
    return Score(total, max(1, count))


def require_short(lengths: Ids, search: Search = "chart") -> None:
    """Raise UserError where one of some sentences is too long for a search."""
    if (longest := int(lengths.max(initial=0))) > LONGEST[search]:
        cure = f", or search greedily, which allows {LONGEST['greedy']:,}" if search == "chart" else ""
        raise UserError(
            f"a sentence of {longest:,} words is too long to be parsed: --search {search} allows {LONGEST[search]:,}"
            f" (its time grows with the {'cube' if search == 'chart' else 'square'} of the length); divide it{cure}"
        )


def _small(batches: list[list[int]], lengths: Ids) -> list[list[int]]:
    """Batches cut so that the charts over their sentences are not too large together; a sentence is never cut."""
    found = []
    for indices in batches:
        size = max(1, CELLS // int(lengths[indices].max()) ** 2)
        found += [indices[at : at + size] for at in range(0, len(indices), size)]
    return found
