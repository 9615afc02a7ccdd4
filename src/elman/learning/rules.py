"""The learning rules of recipes: how the gradient of a window is computed."""

import msgspec

from elman import config
from elman.config import training as families
from elman.config.plugins import built
from elman.config.record import Fraction, Positive, PositiveFloat
from elman.errors import UserError
from elman.learning import rtrl
from elman.learning.bptt import Attenuated, Learner, Lookback, WholeWindow
from elman.learning.gradient_norm import GradientNorm
from elman.learning.sentences import Tagging
from elman.learning.trees import ThroughStructure
from elman.network.cores.jordan import Jordan
from elman.network.cores.recursive import Recursive
from elman.network.cores.sentence import Sentence


class BPTT(families.Rule, frozen=True, tag="bptt"):
    """Back-propagation through time (`learning/bptt.py`).

    `steps`: the furthest that a gradient goes back. `attenuation`: the factor on it at every step back.
    """

    steps: Positive | None = None
    attenuation: Fraction = 1.0

    @property
    def stepwise(self) -> bool:
        """Whether it is cut off or attenuated."""
        return self != BPTT()

    def build(self) -> Learner:
        """By whole windows, or step by step."""
        if self.steps is not None:
            return Lookback(self.steps, self.attenuation)
        return WholeWindow() if self.attenuation == 1 else Attenuated(self.attenuation)


class RTRL(families.Rule, frozen=True, tag="rtrl"):
    """Real-time recurrent learning (`learning/rtrl.py`), for networks whose influence matrix fits into `max_gb`."""

    max_gb: PositiveFloat = 2.0

    def build(self) -> Learner:
        """Forward in time."""
        return rtrl.RTRL(self.max_gb)


def build_learner(training: config.Training, model: config.Model) -> Learner:
    """The learning rule of a recipe; raises UserError where it takes single steps and the model needs whole windows."""
    if isinstance(model.core, Recursive):
        return ThroughStructure(training.margin)
    if isinstance(model.core, Sentence):
        return Tagging()
    weight = training.penalties.gradient_norm
    if weight or training.rule.stepwise:
        _require_single_steps(model)
    rule: Learner = built(training.rule, Learner)
    return GradientNorm(rule, weight) if weight else rule


def _require_single_steps(model: config.Model) -> None:
    """Refuse what needs whole windows: a source, dropout masks held over time."""
    stepwise = "training.rule and training.penalties.gradient_norm process a window step by step"
    if model.source is not None:
        raise UserError(
            f"{stepwise}, but a source is read as a whole: with model.source use the rule bptt without steps or"
            " attenuation, and gradient_norm = 0"
        )
    parts: list[tuple[str, msgspec.Struct]] = [("encoder", model.encoder), ("core", model.core)]
    if isinstance(model.core, Jordan) and model.core.feedback == "output":
        parts.append(("output.contexts", model.output.contexts))  # what is fed back
    for part, record in parts:
        for name in record.__struct_fields__:
            if "drop" in name and getattr(record, name):
                raise UserError(
                    f"{stepwise}, which model.{part}.{name} does not allow: set it to 0, or use the rule bptt without"
                    " steps or attenuation, and gradient_norm = 0"
                )
