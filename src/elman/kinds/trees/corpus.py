"""A treebank: sentences as ids, trees as nodes, and the batches that training reads."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from elman.data.batches import Batch
from elman.data.lines import fields
from elman.data.sentences import LabelledCorpus, LabelledSplit, LabelledSymbols
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.data.trees.brackets import Node, linear, to_tree
from elman.data.trees.shape import NONE, Shape, shape_of, side_by_side
from elman.errors import UserError, counted, notice
from elman.kinds.pairs.files import labelled_splits, read_pairs
from elman.kinds.pairs.table import RawPair
from elman.kinds.trees.record import TreeOptions


@dataclasses.dataclass(frozen=True)
class TreeSymbols(LabelledSymbols):
    """The words that a model of trees reads and the labels that it chooses from, `NONE` and `<unk>` among these."""

    options: TreeOptions

    @property
    def none(self) -> int:
        """The id of the label of nodes that are no constituents."""
        return self.labels.ids[NONE]

    @classmethod
    def load(cls, folder: Path, options: TreeOptions) -> "TreeSymbols":
        """Read what `save` wrote; raises UserError where a file is missing or damaged."""
        return cls(*cls.load_vocabularies(folder, NONE), options)


@dataclasses.dataclass(frozen=True)
class Treebank(LabelledSplit):
    """A split with the tree of every sentence, as nodes and in linear form.

    `facts` holds counts: sentences, constituents (`tokens`), words, unknown words and labels, and trees left out.
    """

    shapes: list[Shape]
    linear: list[str]


class TreeCorpus(LabelledCorpus[TreeOptions, Treebank]):
    def gather(self, trees: Treebank, indices: Sequence[int], *, all_nodes: bool = True) -> Batch:
        """The trees at these places side by side; the labels of constituents count, with `all_nodes` of every node."""
        return gather(self.symbols, [trees.ids[i] for i in indices], [trees.shapes[i] for i in indices], all_nodes)


def gather(
    symbols: TreeSymbols, ids: Sequence[npt.NDArray[np.integer]], shapes: Sequence[Shape], all_nodes: bool = True
) -> Batch:
    """Sentences and their trees side by side: words int64 [S, B], labels [N, 1] and their mask; padding is 0."""
    trees, rows = side_by_side(shapes)
    words = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(one.astype(np.int64)) for one in ids])
    labels = np.empty(len(trees.sentence), np.int64)
    for shape, places in zip(shapes, rows, strict=True):
        labels[places] = symbols.labels.encode(shape.labels)
    targets = torch.from_numpy(labels).unsqueeze(1)
    mask = torch.ones_like(targets, dtype=torch.bool) if all_nodes else targets != symbols.none
    return Batch(words, targets, mask, trees=trees)


def open_trees(source: str | Path, options: TreeOptions, *, symbols: TreeSymbols | None = None) -> TreeCorpus:
    """Read a treebank in brackets: a file, which is cut, or a folder with train, valid and test.

    `symbols`: of a run; None: they are counted in the training split. Notices report the training trees that
    are left out, and the labels that training lacks. Raises UserError where a file cannot be used, or there are too few
    trees, words or labels.
    """
    raw, too_long, digests = labelled_splits(
        source,
        options,
        "trees",
        "trees in brackets, or a folder with train, valid, test",
        lambda paths: read_pairs(paths, options.files)[0],
        lambda pair: len(fields(pair.source)),
        say=symbols is None,
    )
    shapes = {
        name: [shape_of(_tree(pair), options.binary, functions=options.functions) for pair in pairs]
        for name, pairs in raw.items()
    }
    symbols = _count(raw["train"], shapes["train"], options, str(source)) if symbols is None else symbols
    splits = {name: _split(name, pairs, shapes[name], symbols) for name, pairs in raw.items()}
    splits["train"].facts["too_long"] = too_long
    for split in splits.values():
        if not split.facts["tokens"]:
            raise UserError(
                f"{source}: the trees of the {split.name} split are words alone; give it trees with constituents"
            )
        if (unknown := split.facts["unknown_labels"]) and split.name != "train":
            notice(
                f"{source}: {counted(unknown, 'constituent')} of the {split.name} split with a label that training has"
                f" fewer than data.min_label = {options.min_label} times: counted as wrong"
            )
    return TreeCorpus(Path(source).resolve().name, str(source), options, splits, symbols, digests)


def _tree(pair: RawPair) -> Node:
    return to_tree(fields(pair.target), fields(pair.source)).tree


def _count(pairs: list[RawPair], shapes: list[Shape], options: TreeOptions, name: str) -> TreeSymbols:
    words = Counter(
        word for pair in pairs for word in fields(pair.source.lower() if options.lowercase else pair.source)
    )
    labels = Counter(label for shape in shapes for label in shape.labels)
    none = labels.pop(NONE, 0)
    try:
        known = Vocabulary.from_counts(words, options.min_count, options.max_vocabulary, add_eos=False, add_unk=True)
        kept = Vocabulary.from_counts(labels, options.min_label, add_eos=False, add_unk=True)
    except UserError as error:
        raise UserError(f"{name}: words or labels: {error}") from None
    return TreeSymbols(known, Vocabulary((*kept.words, NONE), (*kept.counts, none)), options)


def _split(name: str, pairs: list[RawPair], shapes: list[Shape], symbols: TreeSymbols) -> Treebank:
    sentences = [fields(pair.source) for pair in pairs]
    ids = [symbols.encode(words) for words in sentences]
    facts = {
        "lines": len(pairs),
        "tokens": sum(sum(shape.is_constituent) for shape in shapes),
        "words": sum(map(len, sentences)),
        "unknown": int(sum((one == symbols.words.ids[UNK]).sum() for one in ids)),
        "unknown_labels": int(
            sum((symbols.labels.encode(shape.labels) == symbols.unknown_label).sum() for shape in shapes)
        ),
    }
    return Treebank(name, sentences, ids, facts, shapes, [" ".join(linear(_tree(pair))) for pair in pairs])
