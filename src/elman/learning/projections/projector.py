"""What is done to one matrix after each step, and what it remembers from one step to the next."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from torch import Tensor


class Projector(ABC):
    """Brings one matrix back into a set, in place.

    Attributes:
        computed: how many singular values the last call computed (s of the thesis).

    """

    computed: int = 0

    @abstractmethod
    def project_(self, matrix: Tensor) -> None:
        """Change `matrix` [n, m], which may be a view of stacked weights, as little as the set demands."""

    def tensors(self) -> dict[str, Tensor]:
        """What must be saved so that a resumed run goes on bit for bit."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor], device: Any) -> None:  # noqa: ARG002
        """Take back what `tensors` gave, onto `device`."""
        assert not tensors

    def counts(self) -> dict[str, int]:
        """What the last call counted, by name."""
        return {"s": self.computed}
