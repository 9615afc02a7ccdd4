"""A step whose state is two tensors that begin as zeros, as recognisers keep it for networks of LSTM layers."""

import math
from typing import final

import torch
from torch import Tensor, nn

from elman.export.step import Step


@final
class Packed(nn.Module):
    """The step of a model in the form that sherpa-onnx reads for shallow fusion.

    Inputs are symbols [N, 1] and two tensors [1, N, S] that begin as zeros; outputs are log-probabilities [N, 1, V] and
    both tensors after the symbols. The first holds the S numbers of the state less those at the beginning, the second
    stays zero.
    """

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step
        self.shapes = [tensor.shape[1:] for tensor in step.beginning]
        self.size = sum(math.prod(shape) for shape in self.shapes)
        self.register_buffer("begun", torch.cat([tensor.flatten(1).float() for tensor in step.beginning], 1))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One step."""
        assert isinstance(self.begun, Tensor)
        parts = (h.squeeze(0) + self.begun).split([math.prod(shape) for shape in self.shapes], 1)
        state = [
            part.unflatten(1, shape).to(before.dtype) if len(shape) != 1 else part.to(before.dtype)
            for part, shape, before in zip(parts, self.shapes, self.step.beginning, strict=True)
        ]
        log_probs, *after = self.step(x.squeeze(1), *state)
        flat = torch.cat([tensor.flatten(1).to(h.dtype) for tensor in after], 1)
        return log_probs.unsqueeze(1), (flat - self.begun).unsqueeze(0), c.clone()
