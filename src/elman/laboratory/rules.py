"""The learning rules of the laboratory by name."""

import re

from elman.errors import UserError
from elman.learning.gradient_norm import GradientNorm
from elman.learning.learner import Learner, WholeWindow
from elman.learning.lookback import Lookback
from elman.learning.rtrl import RTRL

RULES = {
    "bptt": "back-propagation through the whole sequence",
    "bptt-H": "back through H steps and no further, such as bptt-1 (Elman's and Jordan's) or bptt-16",
    "rtrl": "real-time recurrent learning: the same gradient forward in time; for small networks",
    "bptt+W": "bptt and Pascanu's regulariser of weight W, such as bptt+0.1",
}


def learning_rule(name: str) -> Learner:
    """The rule of a name.

    Raises:
        UserError: there is none.

    """
    if name == "bptt":
        return WholeWindow()
    if name == "rtrl":
        return RTRL()
    if found := re.fullmatch(r"bptt-([1-9]\d*)", name):
        return Lookback(int(found[1]))
    if (found := re.fullmatch(r"bptt\+(\d*\.?\d+)", name)) and float(found[1]) > 0:
        return GradientNorm(WholeWindow(), float(found[1]))
    raise UserError(f"there is no rule {name}; there are bptt, bptt-H (bptt-1), rtrl and bptt+W (bptt+0.1)")
