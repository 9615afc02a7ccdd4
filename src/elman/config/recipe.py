"""One experiment, completely."""

from typing import TypeAlias, get_args

from elman.config.music import MusicData
from elman.config.network import Model, Recursive, Sentence
from elman.config.pairs import PairData
from elman.config.record import Count, Record
from elman.config.series import SeriesData
from elman.config.tags import TagData
from elman.config.text import TextData
from elman.config.training import BPTT, Penalties, Training
from elman.config.trees import TreeData

Data: TypeAlias = TextData | MusicData | PairData | SeriesData | TreeData | TagData
"""A recipe's data; the key `kind` chooses the record, and `elman.tasks.open` the task."""
KINDS: dict[str, type[Data]] = {record.__struct_config__.tag: record for record in get_args(Data)}

OWN_CORES: dict[str, type[Recursive] | type[Sentence]] = {"trees": Recursive, "tags": Sentence}
"""By kind of data: the core that reads it and nothing else."""


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
        if self.training.order == "file" and not has_source:
            raise ValueError(f'training.order = "file" with data.kind = "{self.kind}"; it is for "pairs": remove it')
        self._check_core()
        if isinstance(self.data, TreeData):
            self._check_trees(self.data)

    def _check_core(self) -> None:
        """Raise ValueError where sentences lack their own core, it is with other data, or a key is for sequences."""
        core, training = self.model.core, self.training
        for kind, record in OWN_CORES.items():
            name = record.__struct_config__.tag
            if isinstance(core, record) and self.kind != kind:
                raise ValueError(f'model.core.kind = "{name}" with data.kind = "{self.kind}"; write "{kind}"')
            if self.kind == kind and not isinstance(core, record):
                raise ValueError(f'data.kind = "{kind}" needs model.core.kind = "{name}"')
        if training.margin is not None and not isinstance(self.data, TreeData):
            raise ValueError('training.margin is for parsers, with data.kind = "trees"; remove it')
        if self.kind not in OWN_CORES:
            return
        if self.model.output.contexts.__struct_config__.tag != "single":
            raise ValueError(f'model.output.contexts: the data are {self.kind}, with one context; set kind = "single"')
        if getattr(self.model.output.choice, "tied", False):
            raise ValueError(
                "model.output.choice.tied: labels are predicted, not the words that are read; set it to false"
            )
        others = ("rule", BPTT()), ("penalties", Penalties()), ("forcing", None), ("memory", ()), ("constraint", None)
        for key, usual in others:
            if getattr(training, key) != usual:
                raise ValueError(f"training.{key} is for sequences, and the data are {self.kind}; remove it")

    def _check_trees(self, data: TreeData) -> None:
        """Raise ValueError where parts of a network over trees do not belong together."""
        core = self.model.core
        assert isinstance(core, Recursive)
        if core.parser != (self.training.margin is not None):
            raise ValueError("model.core.parser = true and the table training.margin belong together; set both or none")
        if data.binary == "none" and (core.parser or core.composition.__struct_config__.tag != "child-sum-lstm"):
            raise ValueError(
                'data.binary = "none": constituents of any number of children need the composition child-sum-lstm and'
                ' a network that is no parser; set data.binary = "right"'
            )

    @property
    def kind(self) -> str:
        """The kind of data."""
        return str(self.data.__struct_config__.tag)
