"""One experiment, completely."""

from typing import Annotated

from msgspec import Meta

from elman.config.music import MusicOptions
from elman.config.network import Frames, Model
from elman.config.pairs import PairOptions
from elman.config.record import Positive, Record
from elman.config.text import GrammarOptions, TextOptions
from elman.config.training import Training


class Evaluation(Record, frozen=True):
    """How validation is computed while training; reported figures come from one stream.

    `beam`, `copy_unknown`: how the output of a model of pairs is searched for, and whether the symbol of the source
    that is looked at most stands for `<unk>` (`evaluation/targets.py`). `constrained`: trees are searched for among
    those over the words of the source (`decoding/constraint.py`); no other targets are constrained.
    """

    streams: Positive = 10
    length: Positive = 70
    warm_up: Annotated[int, Meta(ge=0)] = 0
    skip_first: bool = False
    beam: Positive = 5
    copy_unknown: bool = False
    constrained: bool = True


class Data(Record, frozen=True):
    """The text, music or pairs: where from unless --data says so, and how it is read.

    `grammar`: the text is made by a grammar (`data/grammar/`).
    """

    corpus: str | None = None
    grammar: GrammarOptions | None = None
    text: TextOptions = TextOptions()
    music: MusicOptions = MusicOptions()
    pairs: PairOptions = PairOptions()

    def __post_init__(self) -> None:
        if self.corpus is not None and self.grammar is not None:
            raise ValueError("both corpus and grammar say where the text is from; keep one of them")


class Expected(Record, frozen=True):
    """Published figures to stand beside ours; perplexities."""

    source: str
    valid: float | None = None
    test: float | None = None
    fine_tuned_valid: float | None = None
    fine_tuned_test: float | None = None
    parameters: int | None = None


class Recipe(Record, frozen=True):
    """One experiment, completely."""

    title: str
    model: Model
    training: Training
    data: Data = Data()
    evaluation: Evaluation = Evaluation()
    citation: str | None = None
    notes: str | None = None
    expected: Expected | None = None
    seed: Annotated[int, Meta(ge=0)] = 0

    @property
    def of_music(self) -> bool:
        """Whether it is about frames of notes rather than symbols."""
        return isinstance(self.model.encoder, Frames)

    @property
    def of_pairs(self) -> bool:
        """Whether it is about targets given sources."""
        return self.model.source is not None
