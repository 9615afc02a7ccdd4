"""A constituency tree as SVG: its words at the bottom, what each node was taken for, and where that is wrong."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Annotated

import msgspec
from markupsafe import Markup, escape
from msgspec import Meta

from elman.drawing.heat_map import text_width

Number = Annotated[int, Meta(ge=0)]

_LETTER, _GAP, _ROW, _TEXT = 6.6, 12, 34, 12
"""CSS pixels of a letter, between words, of one height, and of the letters' height."""


class Constituent(msgspec.Struct, frozen=True):
    """A node: its label, first word, the word after its last, and its height, 1 above words.

    `right`: it is in the right tree. `truth`: what the right tree has over the same words where it is not; empty:
    nothing.
    """

    label: str
    start: Number
    end: Number
    height: Annotated[int, Meta(ge=1)]
    right: bool = True
    truth: str = ""


class TreeDrawing(msgspec.Struct, frozen=True, tag_field="kind", tag="tree"):
    """A tree over words, its nodes from the top downwards and from left to right.

    `missed`: constituents of the right tree that it lacks, as text. `given`: the tree was given, and the labels alone
    were found.
    """

    words: list[str]
    nodes: list[Constituent]
    missed: list[str] = []
    given: bool = False

    def __post_init__(self) -> None:
        for node, above in zip(self.nodes, _parents(self.nodes), strict=True):
            inside = above is None or (above.start <= node.start and node.end <= above.end)
            if not inside or not 0 <= node.start < node.end <= len(self.words):
                raise ValueError("the nodes are no tree over the words, from the top downwards")

    @property
    def caption(self) -> str:
        """How many nodes are right, and which are missing."""
        right = sum(node.right for node in self.nodes)
        what = "labels" if self.given else "constituents"
        missed = f"; missed: {', '.join(self.missed)}" if self.missed else ""
        return f": {right} of {len(self.nodes)} {what} right{missed}"

    def draw(self, name: str, title: str) -> Markup:  # noqa: ARG002 - it has no identifiers
        """An `<svg>`; wrong nodes have a colour and a mark of their own, their truth is a tooltip.

        `title` is for screen readers.
        """
        widths = [max(text_width(word, _LETTER), 3 * _LETTER) + _GAP for word in self.words]
        edges = [0, *accumulate(widths)]
        top = max((node.height for node in self.nodes), default=0)
        bottom = (top + 1) * _ROW

        def centre(start: int, end: int) -> float:
            return (edges[start] + edges[end]) / 2

        lowest = {word: node for node in self.nodes for word in range(node.start, node.end)}  # the last one wins
        lines, labels = list[str](), list[str]()
        for word, text in enumerate(self.words):
            x, above = centre(word, word + 1), lowest.get(word)
            labels.append(f'<text x="{x:.1f}" y="{bottom}" class="leaf">{escape(text)}</text>')
            if above is not None:
                lines.append(_line(x, bottom - _TEXT, centre(above.start, above.end), _y(above, top)))
        for node, parent in zip(self.nodes, _parents(self.nodes), strict=True):
            x, y = centre(node.start, node.end), _y(node, top)
            if parent is not None:
                lines.append(_line(x, y - _TEXT, centre(parent.start, parent.end), _y(parent, top)))
            tooltip = (
                "right" if node.right else f"wrong; right: {node.truth}" if node.truth else "wrong: no constituent"
            )
            shown = node.label if node.right else f"{node.label}*"
            labels.append(
                f'<text x="{x:.1f}" y="{y:.1f}" class="{"right" if node.right else "wrong"}">{escape(shown)}'
                f"<title>{escape(node.label)}: {escape(tooltip)}</title></text>"
            )
        width, height = edges[-1] + 2, bottom + 8
        return Markup(
            f'<svg class="tree" role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" font-size="11"'
            f' text-anchor="middle"><title>{escape(title)}{escape(self.caption)}</title>'
            f"{''.join(lines)}{''.join(labels)}</svg>"
        )


def _y(node: Constituent, top: int) -> float:
    return (top - node.height) * _ROW + _TEXT + 2


def _line(x: float, y: float, x_above: float, y_above: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x_above:.1f}" y2="{y_above + 4:.1f}"/>'


def _parents(nodes: Sequence[Constituent]) -> Iterator[Constituent | None]:
    """The node above each node, which stand from the top downwards."""
    open_: list[Constituent] = []
    for node in nodes:
        while open_ and open_[-1].end <= node.start:
            open_.pop()
        yield open_[-1] if open_ else None
        open_.append(node)
