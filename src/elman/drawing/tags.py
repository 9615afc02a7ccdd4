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
        """A paragraph of words above their tags; a wrong tag has a star, a colour and the right one below it.

        `title` is for screen readers.
        """
        cells = []
        for word, found, given in zip(self.words, self.tags, self.right, strict=True):
            tag = f"<small>{escape(found)}</small>"
            if found != given:
                tag = f'<small class="wrong" title="right: {escape(given)}">{escape(found)}*</small>'
                tag += f"<small>{escape(given)}</small>"
            cells.append(f"<span>{escape(word)}{tag}</span>")
        return Markup(f'<p class="tags" aria-label="{escape(title)}">{" ".join(cells)}</p>')
