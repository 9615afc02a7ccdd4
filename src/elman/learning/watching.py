"""How training is watched, and why it ended."""

import enum
from typing import Any, Protocol

from elman.learning.progress import Progress


class Outcome(enum.Enum):
    """Why training returned."""

    FINISHED = "finished"
    OUT_OF_TIME = "out of time"
    INTERRUPTED = "interrupted"


class Watcher(Protocol):
    """Told what happens; a progress bar, TensorBoard."""

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:
        """Training begins, or goes on, at `progress`; an epoch has about `windows` windows."""

    def step(self, progress: Progress, tokens: int, loss: float) -> None:
        """Windows are done, `tokens` counted in them; `loss` is their NLL a token."""

    def record(self, record: dict[str, Any]) -> None:
        """A line of metrics was written."""

    def end(self) -> None:
        """Training returned."""
