"""What is evaluated, and how: the options of an evaluation, and a split that a model may adapt to."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elman.config.inference import Settings
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.windows import PositionedWindows, Windows
    from elman.evaluation.perplexity import Score
    from elman.evaluation.result import Result
    from elman.network.model import LanguageModel


class EvaluationOptions(Settings, frozen=True, kw_only=True):
    """What is evaluated and how; a run refuses the options that its kind of data lacks.

    Raises UserError where a number is out of range.

    Attributes:
        split: `train`, `valid` or `test`, of a text also `all`.
        data: other data, encoded as in training; None: the run's own.
        streams: columns, pieces or pairs read side by side; None: one stream of text, else as many as suit.
        warm_up: tokens that each column of a text reads, uncounted, before its part.
        skip_first: leave out the first token of a text, as published figures do.
        unknown_as_unk: read unknown words as <unk>, also with a model that reads spelling.
        stride: of a model of transformers, tokens by which the windows of a long text advance (default: half a window).
        beam: of pairs, hypotheses kept at every step; 1 is greedy search (default: as the recipe says).
        constrained: of pairs, search among trees alone; None: as the recipe says.
        missing: of series, what becomes of missing values: interpolate, previous, drop (the row) or mask (not counted)
            (default: as the recipe says).
        search: of parsers, chart, or greedy, which is faster and worse (default: as the recipe says).
        skip_unreadable: of music, leave out files that cannot be read, and name them.
    """

    split: str = "test"
    data: str | Path | None = None
    streams: Annotated[int, Meta(ge=1)] | None = None
    warm_up: Annotated[int, Meta(ge=0)] = 0
    skip_first: bool = False
    unknown_as_unk: bool = False
    stride: Annotated[int, Meta(ge=1)] | None = None
    beam: Annotated[int, Meta(ge=1)] | None = None
    constrained: bool | None = None
    missing: Literal["interpolate", "previous", "drop", "mask"] | None = None
    search: Literal["chart", "greedy"] | None = None
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        self.check()

    def require(self, kind: str, *allowed: str, what: str | None = None) -> None:
        """Raise UserError where an option is set that runs on this kind of data lack; `what`: the model, if no run."""
        for field in msgspec.structs.fields(self):
            if field.name not in ("split", "data", *allowed) and getattr(self, field.name) != field.default:
                option = "unconstrained" if field.name == "constrained" else field.name.replace("_", "-")
                raise UserError(f"--{option} does not belong to {what or f'a run on {kind}'}; leave it out")


DEFAULT = EvaluationOptions()


@dataclasses.dataclass(frozen=True)
class AdaptationSource:
    """A split that a model reads in one column, from its beginning to its end, and may adapt to.

    The state of a text is carried throughout; in music it starts afresh with every piece.

    Attributes:
        data, sha256, size: where it is from, its digest, and its tokens or steps.
        beginning: the source cut to its first n tokens or steps (None: all).
        column: the run's model, which knows the words of the text, and windows of at most n steps in one column.
        statistics_windows: the windows over which gradient statistics are computed.
        result: the result of a score.
        discrete: symbols can recur, so that a cache is defined.
        spelled: unknown words are read by their spelling.
    """

    data: str
    sha256: str
    size: int
    beginning: Callable[[int | None], "AdaptationSource"]
    column: "Callable[[int], tuple[LanguageModel, PositionedWindows]]"
    statistics_windows: "Callable[[], Windows]"
    result: "Callable[[Score], Result]"
    discrete: bool = True
    spelled: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        return {"text": self.sha256, "tokens": self.size} | ({"spelled": True} if self.spelled else {})
