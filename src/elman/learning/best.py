"""The best model of a run so far, in model.safetensors: averaged weights where weights are averaged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elman.learning import checkpoint, snapshot
from elman.learning.averaging import Average
from elman.model import LanguageModel


class BestModel:
    """Writes and reads `model.safetensors` of a run folder.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.safetensors"
        self._set_aside = folder / "model.before-stop.safetensors"

    def keep(self, model: LanguageModel, average: Average | None, facts: Mapping[str, Any]) -> None:
        """Write the weights, or their average where there is one, with facts about them."""
        if average is None:
            checkpoint.save(self.path, snapshot.model_tensors(model), facts)
            return
        with average.applied():
            checkpoint.save(self.path, snapshot.model_tensors(model), {**facts, "averaged": True})

    def keep_for_now(self, model: LanguageModel, average: Average | None, facts: Mapping[str, Any]) -> None:
        """Write a model from the middle of an epoch, so that `forget_for_now` brings back the one before it."""
        if self.path.exists():
            self.path.replace(self._set_aside)
        self.keep(model, average, facts)

    def forget_for_now(self) -> None:
        """What a resumed run must not know of: undo `keep_for_now`."""
        if self._set_aside.exists():
            self._set_aside.replace(self.path)

    def load_into(self, model: LanguageModel) -> None:
        """Give a model the best weights."""
        tensors, _ = checkpoint.load(self.path)
        snapshot.load_model(model, tensors)
