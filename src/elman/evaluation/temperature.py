"""The temperature at which the probabilities of a trained model fit a text best (Guo et al. 2017).

With the log-probabilities z of all symbols and b = 1 / T, a token y costs logsumexp(b z) - b z_y nats. The sum over a
text is convex in b; its derivatives are the sums of E[z] - z_y and Var[z] under the distribution at b, with which
Newton's method takes three or four passes.
"""

import math

import torch

from elman.data.windows import PositionedWindows
from elman.evaluation.perplexity import traces
from elman.jobs import Advance, advancing
from elman.network.model import LanguageModel

PASSES, TOLERANCE = 12, 1e-4  # at most this many passes; a step of a smaller part of b is the last

LEAST, GREATEST = 0.05, 20.0  # temperatures that are considered

FLOOR = -1e4  # what stands for the logarithm of a probability of 0, in nats


def best_temperature(model: LanguageModel, windows: PositionedWindows, advance: Advance = None) -> float:
    """The temperature T that minimises the loss of a stream under p^(1/T); the model itself is not changed.

    `advance` is called with (windows done, windows in all) in every pass.
    """
    inverse = 1.0
    for _ in range(PASSES):
        slope, curvature = _derivatives(model, windows, inverse, advance)
        step = slope / curvature if curvature > 0 else math.copysign(inverse, slope)
        after = min(max(inverse - step, inverse / 2, 1 / GREATEST), inverse * 2, 1 / LEAST)
        if abs(after - inverse) <= TOLERANCE * inverse:
            return 1 / after
        inverse = after
    return 1 / inverse


@torch.inference_mode()
def _derivatives(
    model: LanguageModel, windows: PositionedWindows, inverse: float, advance: Advance
) -> tuple[float, float]:
    """The first and second derivative of the loss of a stream (nats) by 1/T at `inverse`."""
    first = second = 0.0
    for batch, _, trace in advancing(traces(model, windows), windows.num_windows, advance):
        z = model.output.untempered(trace)[batch.mask].clamp(min=FLOOR)
        p = torch.softmax(inverse * z, dim=-1)
        mean = (p * z).sum(-1)
        first += (mean - z.gather(-1, batch.targets[batch.mask].unsqueeze(-1)).squeeze(-1)).double().sum().item()
        second += (p * (z - mean.unsqueeze(-1)) ** 2).sum(-1).double().sum().item()
    return first, second
