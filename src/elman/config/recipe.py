"""One experiment, completely."""

from typing import TypeAlias, get_args

from elman.config.music import MusicData
from elman.config.network import Model
from elman.config.pairs import PairData
from elman.config.record import Count, Record
from elman.config.series import SeriesData
from elman.config.text import TextData
from elman.config.training import Training

Data: TypeAlias = TextData | MusicData | PairData | SeriesData
"""A recipe's data; the key `kind` chooses the record, and `elman.tasks.open` the task."""
KINDS: dict[str, type[Data]] = {record.__struct_config__.tag: record for record in get_args(Data)}


class Expected(Record, frozen=True):
    """Published figures to compare with: perplexities, or nats per step."""

    source: str
    valid: float | None = None
    test: float | None = None
    fine_tuned_valid: float | None = None
    fine_tuned_test: float | None = None
    parameters: int | None = None


class Recipe(Record, frozen=True, kw_only=True):
    """One experiment, completely."""

    title: str
    data: Data = TextData()
    model: Model
    training: Training
    citation: str | None = None
    notes: str | None = None
    expected: Expected | None = None
    seed: Count = 0

    def __post_init__(self) -> None:
        encoder = self.model.encoder.__struct_config__.tag
        if encoder not in self.data.encoders:
            allowed = " or ".join(f'"{one}"' for one in self.data.encoders)
            raise ValueError(f'model.encoder.kind = "{encoder}" with data.kind = "{self.kind}"; write {allowed}')
        has_source = isinstance(self.data, PairData)
        if has_source and self.model.source is None:
            raise ValueError(f'data.kind = "{self.kind}" needs a model that reads a source; add the table model.source')
        if self.model.source is not None and not has_source:
            raise ValueError(f'model.source with data.kind = "{self.kind}"; only "pairs" have sources')
        if isinstance(self.data, PairData) and self.data.evaluation.copy_unknown and not self.model.attends:
            raise ValueError(
                "data.evaluation.copy_unknown writes the source symbol with the largest attention weight, but this"
                ' decoder has no attention; set it to false, or model.core.kind = "attentive"'
            )

    @property
    def kind(self) -> str:
        """The kind of data."""
        return str(self.data.__struct_config__.tag)
