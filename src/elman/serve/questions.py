"""The questions of the JSON interface; their records are its schema, ranges included.

Positions are counted in tokens of the run (of music: steps); position p asks what follows the first p of them, and none
given what follows all.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from elman.config.inference import Sampling, Temperature, TopK, TopP

TabName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{8,64}$(?!\n)", description="a random name, for what is kept")]
Chord = list[Annotated[int, Meta(ge=0, le=127)]]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of every question.

    Attributes:
        run: the name of a run, as `/api/runs` lists it; empty: the first.
        tab: the state of the text is kept under this name, so that the next question computes new words only.
    """

    run: Annotated[str, Meta(max_length=500)] = ""
    tab: TabName | None = None


class Score(Question, frozen=True, kw_only=True):
    """A text, or the MIDI pitches of the steps of a piece."""

    text: str = ""
    roll: list[Chord] = []


class Placed(Score, frozen=True, kw_only=True):
    """A text and a position in it."""

    position: Annotated[int, Meta(ge=0)] | None = None


class Weighed(Placed, frozen=True, kw_only=True):
    """A position and the settings of draws: from the `top_k` likeliest tokens, or those that make up `top_p`."""

    temperature: Annotated[Temperature, Meta(le=100)] = Sampling().temperature
    top_k: TopK | None = None
    top_p: TopP | None = None
    unk: bool = False


class Next(Weighed, frozen=True, kw_only=True):
    """The most probable tokens after a text; `count` of them."""

    count: Annotated[int, Meta(ge=1, le=200)] = 20


class Generate(Weighed, frozen=True, kw_only=True):
    """A continuation of the first `position` tokens and of the tokens `after` them, which were drawn before.

    Attributes:
        drawn: tokens at most (of music: steps).
        seed: of the draws; none: a fresh one, which the first event names.
        after: numbers of tokens; of music: the pitches of steps.
    """

    drawn: Annotated[int, Meta(ge=1, le=100_000)] = 60
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    after: list[Annotated[int, Meta(ge=0)]] = []
    after_roll: list[Chord] = []


class Components(Placed, frozen=True, kw_only=True):
    """The components of a mixture after a text; `count` words of each."""

    count: Annotated[int, Meta(ge=1, le=50)] = 6


class States(Score, frozen=True, kw_only=True):
    """The hidden states along a text; `layer` 0 is the encoder, none the last."""

    layer: Annotated[int, Meta(ge=0)] | None = None


class Compare(Question, frozen=True, kw_only=True):
    """A text under two runs, word by word: `run` and `other`."""

    text: str = ""
    other: Annotated[str, Meta(max_length=500)] = ""


class Neighbours(Question, frozen=True, kw_only=True):
    """The words whose vectors are nearest to a word's."""

    word: Annotated[str, Meta(min_length=1, max_length=200)]
    count: Annotated[int, Meta(ge=1, le=100)] = 12


class Sentences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A minimal pair."""

    good: str
    bad: str


class Pairs(Question, frozen=True, kw_only=True):
    """Minimal pairs; the answer names the more probable sentence of each."""

    pairs: Annotated[list[Sentences], Meta(min_length=1, max_length=100)]


class Adapt(Question, frozen=True, kw_only=True):
    """Switch adaptation (dynamic evaluation) to the text of a tab on or off; `rate` is its learning rate."""

    on: bool
    rate: Annotated[float, Meta(ge=0, le=10)] = 0.1


class Translate(Question, frozen=True, kw_only=True):
    """The best targets of a source, with the attention of each."""

    text: str = ""
    beam: Annotated[int, Meta(ge=1, le=20)] = 5
    targets: Annotated[int, Meta(ge=1, le=5)] = 3


class Leave(Question, frozen=True, kw_only=True):
    """A tab was left: forget what is kept for it."""
