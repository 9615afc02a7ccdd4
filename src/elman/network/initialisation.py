"""Initialisation rules for one tensor; every part of a network applies them to its own parameters, in a fixed order."""

import math
from typing import assert_never

import torch
from torch import Tensor, nn

from elman import config


@torch.no_grad()
def fill(tensor: Tensor, rule: config.Init, fan: int) -> None:
    """Fill `tensor` from torch's global random state; `fan` is the n of rules that scale with the width.

    Rules that are for matrices fill vectors with zeros.
    """
    if tensor.ndim < 2 and isinstance(rule, config.Glorot | config.He | config.Orthogonal | config.Identity):
        rule = config.Zeros()
    match rule:
        case config.Uniform(bound=bound):
            bound = 1 / math.sqrt(fan) if bound is None else bound
            tensor.uniform_(-bound, bound)
        case config.Normal(std=std):
            tensor.normal_(0.0, 1 / math.sqrt(fan) if std is None else std)
        case config.Glorot():
            nn.init.xavier_uniform_(tensor)
        case config.He():
            nn.init.kaiming_normal_(tensor)
        case config.Orthogonal(gain=gain):
            nn.init.orthogonal_(tensor, gain)
        case config.Identity(gain=gain):
            nn.init.eye_(tensor).mul_(gain)
        case config.Zeros():
            tensor.zero_()
        case _:
            assert_never(rule)
