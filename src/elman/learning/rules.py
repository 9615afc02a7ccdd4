"""From a recipe to the rule by which it learns."""

from typing import assert_never

from elman import config
from elman.errors import UserError
from elman.learning.bptt import Learner, Lookback, WholeWindow
from elman.learning.gradient_norm import GradientNorm
from elman.learning.rtrl import RTRL


def build_learner(training: config.Training, model: config.Model) -> Learner:
    """The learning rule of a recipe.

    Raises:
        UserError: a rule that goes step by step, and dropout, whose masks it would draw anew at each.

    """
    weight = training.penalties.gradient_norm
    stepwise = weight or training.rule != config.BPTT()
    if stepwise and model.source is not None:
        raise UserError(
            "training.rule and training.penalties.gradient_norm go through a window step by step, and a source is read"
            " as a whole: with model.source the rule is bptt without steps, and gradient_norm = 0"
        )
    if stepwise and (key := _dropout_of(model)):
        raise UserError(
            f"training.rule and training.penalties.gradient_norm go through a window step by step, which {key} does not"
            f" allow: set {key} = 0, or learn by whole windows (the rule bptt without steps, gradient_norm = 0)"
        )
    if stepwise and training.slices > 1:
        raise UserError(f"training.slices is {training.slices}; with this training.rule it must be 1")
    rule = _rule(training)
    return GradientNorm(rule, weight) if weight else rule


def _rule(training: config.Training) -> Learner:
    match training.rule:
        case config.BPTT(steps=steps):
            return WholeWindow(training.slices) if steps is None else Lookback(steps)
        case config.RTRL(max_gb=max_gb):
            return RTRL(max_gb)
        case _:
            assert_never(training.rule)


def _dropout_of(model: config.Model) -> str:
    """The key of the first dropout of encoder or core, or nothing."""
    for part, record in (("encoder", model.encoder), ("core", model.core)):
        for name in record.__struct_fields__:
            if "drop" in name and getattr(record, name):
                return f"model.{part}.{name}"
    return ""
