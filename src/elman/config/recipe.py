"""One experiment, completely."""

from elman.config.data import Data
from elman.config.network import Model
from elman.config.parts import OneOf, tag_of
from elman.config.record import Count, Record
from elman.config.text import TextData
from elman.config.training import Training


class Expected(Record, frozen=True):
    """Published figures to compare with: perplexities, or nats per step; dynamic ones by dynamic evaluation."""

    source: str
    valid: float | None = None
    test: float | None = None
    fine_tuned_valid: float | None = None
    fine_tuned_test: float | None = None
    dynamic_valid: float | None = None
    dynamic_test: float | None = None
    parameters: int | None = None

    def of(self, split: str, *, fine_tuned: bool, method: str = "static") -> float | None:
        """The figure of a split, valid or test: after fine-tuning if that was done, or by dynamic evaluation."""
        plain: float | None = getattr(self, split, None)
        tuned: float | None = getattr(self, f"fine_tuned_{split}", None)
        dynamic: float | None = getattr(self, f"dynamic_{split}", None)
        if method != "static":
            return dynamic
        return tuned if fine_tuned and tuned is not None else plain


class DataOfRecipe(Record, frozen=True):
    """The part of a recipe that describes how data are read."""

    data: OneOf[Data] = TextData()


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
        if self.model.source is not None and not self.data.has_source:
            raise ValueError(f'model.source with data.kind = "{self.kind}"; only "pairs" have sources')
        if self.training.order == "file" and not self.data.has_source:
            raise ValueError(f'training.order = "file" with data.kind = "{self.kind}"; it is for "pairs": remove it')
        self._check_core()
        self.data.check(self)

    def _check_core(self) -> None:
        """Raise ValueError where sentences lack their own core, it is with other data, or a key is for sequences."""
        core, own, training = self.model.core, self.data.own_core, self.training
        if own is not None and tag_of(core) != own:
            raise ValueError(f'data.kind = "{self.kind}" needs model.core.kind = "{own}"')
        if own is None and core.reads is not None:
            raise ValueError(f'model.core.kind = "{tag_of(core)}" with data.kind = "{self.kind}"; write "{core.reads}"')
        if training.margin is not None and own != "recursive":
            raise ValueError('training.margin is for parsers, with data.kind = "trees"; remove it')
        if own is None:
            return
        if tag_of(self.model.output.contexts) != "single":
            raise ValueError(f'model.output.contexts: the data are {self.kind}, with one context; set kind = "single"')
        if getattr(self.model.output.choice, "tied", False):
            raise ValueError(
                "model.output.choice.tied: labels are predicted, not the words that are read; set it to false"
            )
        usual = Training(epochs=1, optimiser=training.optimiser)
        for key in ("rule", "penalties", "forcing", "memory", "constraint"):
            if getattr(training, key) != getattr(usual, key):
                raise ValueError(f"training.{key} is for sequences, and the data are {self.kind}; remove it")

    @property
    def kind(self) -> str:
        return tag_of(self.data)
