"""The answers of the JSON interface; their records are its schema. Bits are logarithms to base two."""

import msgspec


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is served.

    Attributes:
        name: its folder's, made unique.
        panels: the names of the operations that it answers; `letters` where tokens are characters.
        size: of the vocabulary; for music the number of pitches.
        spelt: tokens are written without spaces between them.
        lowest: for music the lowest MIDI pitch.
        step_seconds: how long a step of music is played.
    """

    name: str
    title: str
    kind: str
    panels: list[str]
    size: int
    parameters: int
    layers: int
    tokenisation: str = ""
    spelt: bool = False
    lowercase: bool = False
    lowest: int = 0
    step_seconds: float = 0.25
    prompt: str = ""


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that are served, and what a request may hold."""

    runs: list[RunFacts]
    longest_text: int
    most_steps: int
    most_drawn: int


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a text in one piece: a token, or the bytes of a character together.

    Attributes:
        at: the position of its first token; None where it is not read.
        tokens: how many it has.
        begins: whether it begins a word.
        bits: its surprisal; None where it is not read.
        entropy: of the distribution before it, in bits.
        rank: of its first token, 1 the most probable.
        ends: it is the end of a line.
    """

    text: str
    at: int | None
    tokens: int
    begins: bool
    bits: float | None
    entropy: float | None
    rank: int | None
    unknown: bool = False
    ends: bool = False


class TextScore(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """A text as the model predicted it: `tokens` in all, of `bits`; `computed` were read for this answer."""

    marks: list[Mark]
    tokens: int
    bits: float
    perplexity: float | None
    computed: int
    adapted: bool
    notes: list[str]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of music and its surprisal."""

    notes: list[int]
    bits: float


class MusicScore(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="music"):
    """A piece as the model predicted it."""

    steps: list[Step]
    bits: float
    computed: int


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A token, its probability, and the probability of drawing it with the requested settings."""

    token: str
    id: int
    probability: float
    drawn: float


class NextWords(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """What may follow; `actual` is the token of the text that does, `left` the probability of all that is not shown."""

    words: list[Candidate]
    entropy: float
    position: int
    actual: Candidate | None
    left: float


class NextNotes(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="music"):
    """How often each pitch sounds among `draws` next steps, where that is above 0."""

    pitches: list[int]
    shares: list[float]
    draws: int


class Begun(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="begin"):
    """The first event of a sample."""

    seed: int


class Drawn(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="token"):
    """A token that was drawn, the text that it adds, and its surprisal without the settings of draws."""

    id: int
    token: str
    text: str
    bits: float


class DrawnStep(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="step"):
    """A step of music that was drawn."""

    notes: list[int]


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="end"):
    """The last event: `length`, or `stopped` where the server ends."""

    reason: str


class Broken(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="error"):
    """The last event of a sample that failed."""

    error: str


class Likely(msgspec.Struct, frozen=True, kw_only=True):
    """A token and its probability."""

    token: str
    probability: float


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A component of a mixture: its layer, weight, entropy in bits and most probable words."""

    name: str
    layer: int
    weight: float
    entropy: float
    words: list[Likely]


class LayerShare(msgspec.Struct, frozen=True, kw_only=True):
    """The components of a layer together: their weight, and what they predict."""

    layer: int
    weight: float
    words: list[Likely]


class Mixed(msgspec.Struct, frozen=True, kw_only=True):
    """The components after a text; `in_use` is exp of the entropy of their weights, between 1 and their number."""

    components: list[Component]
    layers: list[LayerShare]
    in_use: float
    position: int


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """The states of a layer after each mark of a text, as principal components; `points` [n + 1, 3] begin before it.

    Attributes:
        labels: of the points.
        shares: of the variance along each component, among states of a text that the model drew.
        norms: of the states.
        radii: the spectral radius of J of each layer, where it is defined.
    """

    labels: list[str]
    points: list[list[float]]
    shares: list[float]
    norms: list[float]
    radii: list[float]
    layer: int
    layers: int


class ComparedWord(msgspec.Struct, frozen=True, kw_only=True):
    """A word under two runs, in bits; `difference` is the second less the first, None where it is `unknown` to one."""

    word: str
    first: float | None
    second: float | None
    difference: float | None
    unknown: bool


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A text under two runs; `same_words` where both read it as the same words, so that their bits can be compared.

    `unknown`: how many words each does not know; sums are comparable only where both know all.
    """

    words: list[ComparedWord]
    first: float
    second: float
    same_words: bool
    unknown: list[int]


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """A word and the cosine similarity of its vector with the vector of the given word."""

    word: str
    cosine: float


class Nearest(msgspec.Struct, frozen=True, kw_only=True):
    """The nearest words of a word, and whether the vocabulary has it."""

    word: str
    known: bool
    neighbours: list[Near]


class JudgedPair(msgspec.Struct, frozen=True, kw_only=True):
    """A minimal pair: bits of both sentences with their ends; None where the model cannot distinguish them."""

    good: float | None
    bad: float | None
    correct: bool | None
    unknown: list[str]


class JudgedPairs(msgspec.Struct, frozen=True, kw_only=True):
    """Minimal pairs as they were judged; `accuracy` of those that can be distinguished."""

    pairs: list[JudgedPair]
    accuracy: float | None


class Adapting(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a tab adapts."""

    on: bool


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A target of a source: its words, the bits of all of them, and the weights [T + 1, S] of attention."""

    text: str
    words: list[str]
    bits: float
    attention: list[list[float]]


class Translated(msgspec.Struct, frozen=True, kw_only=True):
    """The targets of a source, best first; `note` has the reason where there are none."""

    source: list[str]
    targets: list[Target]
    note: str = ""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The tab is forgotten."""

    ok: bool = True


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused, in one line."""

    error: str
