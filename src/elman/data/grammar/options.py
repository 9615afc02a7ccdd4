"""Which sentences of which grammar: the record that recipes, `elman grammar generate` and caches share."""

from typing import Annotated

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Limit = Annotated[int, Meta(ge=0)]


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stage of starting small: so many epochs on sentences of which a share is complex.

    Attributes:
        epochs: passes over its sentences; the last stage goes on until training ends.
        complex: share of sentences with a clause embedded in them.
        sentences: how many there are (None: as many as the options say).

    """

    epochs: Count = 1
    complex: Share
    sentences: Count | None = None


class GrammarOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text that a grammar makes.

    Attributes:
        rules: the name of a grammar that comes with elman, or a file.
        sentences, valid, test: sentences of each split.
        seed: of the draw, another one for every split.
        max_depth: clauses within each other at most; rules that go deeper are left out and the others scaled up.
        max_length: words of a sentence at most; longer ones are drawn again.
        complex: share of sentences with a clause embedded in them (None: as the rules give them).
        stages: starting small: the training text in stages (empty: all at once).

    """

    rules: str = "elman-1991"
    sentences: Count = 10_000
    valid: Count = 1_000
    test: Count = 1_000
    seed: Annotated[int, Meta(ge=0)] = 0
    max_depth: Limit | None = None
    max_length: Count | None = None
    complex: Share | None = None
    stages: tuple[Stage, ...] = ()
