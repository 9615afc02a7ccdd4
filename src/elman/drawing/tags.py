"""A sentence with a tag below every word, and where tags are wrong."""

import msgspec
from markupsafe import Markup, escape


class TagDrawing(msgspec.Struct, frozen=True, tag_field="kind", tag="tags"):
    """The words of a sentence, the tags that were found, and the right ones."""

    words: list[str]
    tags: list[str]
    right: list[str]

    def __post_init__(self) -> None:
        if not len(self.words) == len(self.tags) == len(self.right):
            raise ValueError("every word has a tag that was found and a right one")

    @property
    def caption(self) -> str:
        """How many tags are right."""
        right = sum(found == given for found, given in zip(self.tags, self.right, strict=True))
        return f": {right} of {len(self.words)} tags right"

    def draw(self, name: str, title: str) -> Markup:  # noqa: ARG002 - it has no identifiers
        """As `draw_tags`."""
        return draw_tags(self, title)


def draw_tags(drawing: TagDrawing, name: str) -> Markup:
    """A paragraph of words above their tags; a wrong tag has a star, a colour and the right one below it.

    `name` is for screen readers.
    """
    cells = []
    for word, found, given in zip(drawing.words, drawing.tags, drawing.right, strict=True):
        if found == given:
            cells.append(f"<span>{escape(word)}<small>{escape(found)}</small></span>")
        else:
            cells.append(
                f'<span>{escape(word)}<small class="wrong" title="right: {escape(given)}">{escape(found)}*</small>'
                f"<small>{escape(given)}</small></span>"
            )
    return Markup(f'<p class="tags" aria-label="{escape(name)}">{" ".join(cells)}</p>')
