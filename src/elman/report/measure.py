"""What a loss is told as: perplexity a token for text, nats a step for music."""

import dataclasses
import math
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Measure:
    """A way to tell losses.

    Attributes:
        name: what it is called.
        quantity: the same, as `elman.report.plots` knows it.
        unit: what is counted, in the singular.
        definition: what it is, in a sentence.

    """

    name: str
    quantity: Literal["perplexity", "nll"]
    unit: str
    definition: str

    def of(self, perplexity: float) -> float:
        """The loss of which runs write the perplexity.

        Example:
            >>> NLL.of(math.exp(3.5)), PERPLEXITY.of(81.0)
            (3.5, 81.0)

        """
        if self.quantity == "perplexity":
            return perplexity
        return math.log(perplexity) if perplexity > 0 else math.nan


PERPLEXITY = Measure(
    "perplexity", "perplexity", "token", "Perplexity is exp of the mean negative log-likelihood a token."
)
NLL = Measure("NLL", "nll", "step", "NLL is the mean negative log-likelihood a time step over whole pieces, in nats.")
