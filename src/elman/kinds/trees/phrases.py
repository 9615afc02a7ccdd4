"""Phrases as vectors: those nearest to a phrase, and pages of drawn trees."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from elman.data.trees.brackets import Node
from elman.data.trees.shape import NONE
from elman.drawing.page import Section, part_of, write_page
from elman.kinds.trees.drawing import drawing_of

if TYPE_CHECKING:
    from elman.kinds.trees.corpus import Treebank
    from elman.kinds.trees.run import Parse, TreeRun

SHOWN = 50
"""Trees that a page shows one by one."""


class Phrase(NamedTuple):
    """A phrase, its label in the treebank, and the cosine of its vector with another one's."""

    text: str
    label: str
    cosine: float


class Phrases:
    """The constituents of some trees that have more than one word, and their vectors of length one."""

    def __init__(self, run: "TreeRun", trees: "Treebank") -> None:
        self.run = run
        texts, labels, rows = list[str](), list[str](), []
        for words, shape, vectors in zip(
            trees.sentences, trees.shapes, run.vectors(trees.sentences, trees.shapes), strict=True
        ):
            for label, (start, end), vector in zip(shape.labels, shape.spans, vectors, strict=True):
                if label != NONE and end - start > 1:
                    texts.append(" ".join(words[start:end]))
                    labels.append(label)
                    rows.append(vector)
        self.texts, self.labels = texts, labels
        self.vectors = _of_length_one(np.stack(rows)) if rows else np.zeros((0, 1), np.float32)

    def nearest(self, parse: "Parse", words: Sequence[str], count: int) -> list[Phrase]:
        """The phrases whose vectors have the greatest cosine with a whole tree's; each text once, not its own."""
        if not self.texts:
            return []
        (vectors,) = self.run.vectors([words], [parse.shape])
        cosines = self.vectors @ _of_length_one(vectors[-1:])[0]
        own, found = " ".join(words).lower(), dict[str, Phrase]()
        for place in np.argsort(-cosines, kind="stable").tolist():
            text = self.texts[place].lower()
            if text != own and text not in found:
                found[text] = Phrase(self.texts[place], self.labels[place], float(cosines[place]))
            if len(found) == count:
                break
        return list(found.values())


def _of_length_one(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def write_tree_page(out: Path, title: str, trees: Sequence[tuple[Sequence[str], Node]], shown: int = SHOWN) -> Path:
    """Write a page with trees over their words drawn, the first of many."""
    figures = Markup("\n").join(
        Markup('<figure class="sample">{}<figcaption>{}</figcaption></figure>').format(
            drawing_of(tree, tree, words).draw(f"tree-{number}", " ".join(words)), " ".join(words)
        )
        for number, (words, tree) in enumerate(trees[:shown], start=1)
    )
    text = f"The trees of {part_of(shown, len(trees), 'sentences')}, words at the bottom."
    verdict = f"{len(trees):,} sentences, {sum(len(words) for words, _ in trees):,} words."
    return write_page(
        out, kind="Trees", title=title, verdict=verdict, sections=[Section("Trees", [text], body=figures)]
    )
