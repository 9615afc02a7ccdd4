"""TensorBoard: event files in RUN/tensorboard, read with `tensorboard --logdir RUN`."""

from pathlib import Path
from typing import Any, ClassVar

from elman.tasks.tracking.tracker import Status, Tracker

FOLDER = "tensorboard"


class TensorBoard(Tracker):
    """Scalars, events and the recipe as text. Steps that a resumed run trains again replace those of before."""

    name: ClassVar[str] = "tensorboard"
    package: ClassVar[str] = "tensorboard"

    def _open(self, known: dict[str, str], step: int) -> dict[str, str]:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(self.run.folder / FOLDER), purge_step=step + 1 if step else None)
        if not known or step:
            self._writer.add_text("recipe", f"```toml\n{self.run.recipe_text}\n```", step)
        return {"folder": FOLDER}

    def _send(self, values: dict[str, float], step: int) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)

    def _tell(self, message: str, step: int) -> None:
        self._writer.add_text("event", message, step)

    def _summarise(self, figures: dict[str, float]) -> None:
        self._send(figures, self._step)

    def _keep(self, path: Path) -> None:
        self._writer.add_text("files", path.name, self._step)

    def _close(self, status: Status) -> None:  # noqa: ARG002 - it has no place for one
        self._writer.close()
