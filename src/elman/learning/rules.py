"""The learning rules of recipes: how the gradient of a window is computed.

Every recipe has one, so that the modules of the rules are imported where they are built.
"""

from typing import TYPE_CHECKING

from elman.config.record import Fraction, Positive, PositiveFloat
from elman.config.training import Rule

if TYPE_CHECKING:
    from elman.learning.bptt import Learner


class BPTT(Rule, frozen=True, tag="bptt"):
    """Back-propagation through time (`learning/bptt.py`, `learning/lookback.py`).

    `steps`: the furthest that a gradient goes back. `attenuation`: the factor on it at every step back.
    """

    steps: Positive | None = None
    attenuation: Fraction = 1.0

    @property
    def stepwise(self) -> bool:
        """Whether it is cut off or attenuated."""
        return self != BPTT()

    def build(self) -> "Learner":
        if not self.stepwise:
            from elman.learning.bptt import WholeWindow

            return WholeWindow()
        from elman.learning.lookback import Attenuated, Lookback

        return Attenuated(self.attenuation) if self.steps is None else Lookback(self.steps, self.attenuation)


class RTRL(Rule, frozen=True, tag="rtrl"):
    """Real-time recurrent learning (`learning/rtrl.py`), for networks whose influence matrix fits into `max_gb`."""

    max_gb: PositiveFloat = 2.0

    def build(self) -> "Learner":
        from elman.learning import rtrl

        return rtrl.RTRL(self.max_gb)
