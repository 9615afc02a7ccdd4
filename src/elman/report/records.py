"""The files of a run folder as records: what of them the report reads."""

import msgspec

from elman.evaluation.resampling import Figure


class Output(msgspec.Struct, frozen=True):
    """What a model of pairs wrote, measured, and a baseline that needs no model; `constrained` is told of trees."""

    beam: int
    measures: list[Figure]
    baseline: list[Figure]
    baseline_name: str
    constrained: bool | None = None


class Result(msgspec.Struct, frozen=True):
    """A row of results.json or, with a name, of baselines.json; perplexity a token, `nll` in nats."""

    split: str
    perplexity: float
    name: str | None = None
    nll: float | None = None
    bits_per_token: float | None = None
    bits_per_character: float | None = None
    tokens: int | None = None
    unknown: int | None = None
    method: str = "static"
    context: str | None = None
    model: str = "best"
    accuracy: float | None = None
    pieces: int | None = None
    output: Output | None = None


class Looks(msgspec.Struct, frozen=True):
    """What a decoder looked at: the weight of each word of the source at each word of the target, [T, S]."""

    source: list[str]
    target: list[str]
    weights: list[list[float]]


class Sample(msgspec.Struct, frozen=True):
    """A row of samples.json; `roll` is music, the MIDI pitches that sound at each step, and `text` then its file.

    Of pairs the prompt is the source, the text what was found, and the reference what the data has.
    """

    text: str
    prompt: str = ""
    temperature: float | None = None
    seed: int | None = None
    roll: list[list[int]] | None = None
    reference: str | None = None
    attention: Looks | None = None


class Word(msgspec.Struct, frozen=True):
    """A word of surprisal.json and its surprisal in bits, None where it was not scored."""

    word: str
    surprisal: float | None


class Passage(msgspec.Struct, frozen=True):
    """surprisal.json."""

    sentence: list[Word] = []


class SplitFacts(msgspec.Struct, frozen=True):
    """A split in data.json; of music its steps are the tokens."""

    tokens: int
    unknown: int | None = None
    characters: int | None = None
    lines: int | None = None
    sha256: str | None = None
    pieces: int | None = None


class DataFacts(msgspec.Struct, frozen=True):
    """data.json."""

    name: str
    source: str | None = None
    tokenisation: str | None = None
    lowercase: bool | None = None
    eos: str | None = None
    min_count: int | None = None
    splits: dict[str, SplitFacts] = {}
    digest: str | None = None


class TrainingFacts(msgspec.Struct, frozen=True):
    """What of [training] is drawn."""

    clip: float | None = None
    clip_by: str = "global"


class Expected(msgspec.Struct, frozen=True):
    """[expected] of the recipe: published perplexities and parameters."""

    source: str = "source not given"
    valid: float | None = None
    test: float | None = None
    fine_tuned_valid: float | None = None
    fine_tuned_test: float | None = None
    parameters: int | None = None


class RecipeFacts(msgspec.Struct, frozen=True):
    """What of a recipe the report speaks of; recipes of other versions may hold other keys."""

    title: str | None = None
    notes: str | None = None
    citation: str | None = None
    seed: int | None = None
    training: TrainingFacts = TrainingFacts()
    expected: Expected | None = None
