"""One experiment, completely."""

from typing import Any

from elman.config.data import Data
from elman.config.network import Model
from elman.config.pairs import PairData
from elman.config.parts import OneOf, tag_of
from elman.config.record import Count, Record
from elman.config.text import TextData
from elman.config.training import BPTT, Penalties, Training
from elman.config.trees import TreeData


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
    data: OneOf[Data] = TextData()
    model: Model
    training: Training
    citation: str | None = None
    notes: str | None = None
    expected: Expected | None = None
    seed: Count = 0

    def __post_init__(self) -> None:
        encoder = tag_of(self.model.encoder)
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
        core, own, training = self.model.core, self.data.own_core, self.training
        if own is not None and tag_of(core) != own:
            raise ValueError(f'data.kind = "{self.kind}" needs model.core.kind = "{own}"')
        if own is None and core.reads is not None:
            raise ValueError(f'model.core.kind = "{tag_of(core)}" with data.kind = "{self.kind}"; write "{core.reads}"')
        if training.margin is not None and not isinstance(self.data, TreeData):
            raise ValueError('training.margin is for parsers, with data.kind = "trees"; remove it')
        if own is None:
            return
        if tag_of(self.model.output.contexts) != "single":
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
        core: Any = self.model.core  # of the kind "recursive"
        if core.parser != (self.training.margin is not None):
            raise ValueError("model.core.parser = true and the table training.margin belong together; set both or none")
        if data.binary == "none" and (core.parser or tag_of(core.composition) != "child-sum-lstm"):
            raise ValueError(
                'data.binary = "none": constituents of any number of children need the composition child-sum-lstm and'
                ' a network that is no parser; set data.binary = "right"'
            )

    @property
    def kind(self) -> str:
        """The kind of data."""
        return tag_of(self.data)
