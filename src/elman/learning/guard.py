"""What must hold before a run is written: finite losses and weights, and the folder that it was begun in."""

import os
from pathlib import Path

from elman.errors import Diverged, UserError
from elman.learning.update import Update


class Guard:
    """Refuses to write over what is good: the last checkpoint, or another run in the same place."""

    def __init__(self, folder: Path, update: Update) -> None:
        self.folder, self.update = folder, update
        self._place: os.stat_result | None = None

    def losses(self, diverged: str | None, step: int) -> None:
        """Raise Diverged where a loss was not finite, given its figures."""
        if diverged is not None:
            raise Diverged(
                f"the loss is not finite at step {step} ({diverged}, weight norm {self.update.weight_norm():.3g});"
                f" {self._kept}"
            )

    def weights(self, step: int) -> None:
        """Raise Diverged where the last steps made a weight infinite or NaN."""
        if not self.update.is_finite():
            raise Diverged(f"the weights are not finite after step {step}; {self._kept}")

    def place(self) -> None:
        """Raise UserError where the run folder has been removed, so that it is not made again without its recipe."""
        try:
            found = self.folder.stat()
            self._place = self._place or found
            same = os.path.samestat(found, self._place)
        except OSError:
            same = False
        if not same:
            raise UserError(f"{self.folder}: removed while the run was trained in it; training has stopped")

    @property
    def _kept(self) -> str:
        return (
            f"the last good checkpoint is kept in {self.folder}; try a lower training.optimiser.lr or a smaller"
            " training.clip"
        )
