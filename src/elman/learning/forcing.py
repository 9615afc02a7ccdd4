"""Scheduled sampling (Bengio, Vinyals, Jaitly & Shazeer 2015), between teacher forcing and free running.

Each true symbol is read with probability epsilon_i, otherwise one drawn from the model's own distribution; epsilon
falls during training. No gradient passes the draw.
"""

import math

import torch
from torch import Tensor

from elman import config
from elman.data.batches import Batch
from elman.network.model import LanguageModel
from elman.network.output.choice import Drawn
from elman.network.state import State


def forcing_probability(forcing: config.Forcing, epoch: float) -> float:
    """Epsilon at time i in epochs, never below the floor (section 2.4 of the paper).

    "linear": 1 - k i; "exponential": k^i, k < 1; "sigmoid" (inverse): k / (k + exp(i / k)); "constant": k.
    """
    k = forcing.scale
    match forcing.schedule:
        case "constant":
            epsilon = k
        case "linear":
            epsilon = 1 - k * epoch
        case "exponential":
            epsilon = k**epoch
        case "sigmoid":
            epsilon = k / (k + math.exp(min(epoch / k, 700.0)))
    return min(1.0, max(forcing.floor, epsilon))


@torch.no_grad()
def listen_to_itself(model: LanguageModel, batch: Batch, state: State, probability: float) -> Batch:
    """The window with each input but the first kept with `probability`, else drawn by the model from the state before.

    The model's input at a step must be the target of the step before. Whether to keep the truth is drawn for each
    column and step from torch's global random state. Nothing in particular is drawn from outputs that are not finite,
    since the loss of the window, which is not finite either, is reported.
    """
    if probability >= 1:
        return batch
    read = [batch.inputs[0]]
    for truth in batch.inputs[1:]:
        own, state = _draw(model, read[-1], state)
        kept = torch.rand(truth.shape[:1], device=truth.device) < probability
        read.append(torch.where(kept.view(-1, *[1] * (truth.ndim - 1)), truth, own.to(truth.dtype)))
    return batch._replace(inputs=torch.stack(read))


def _draw(model: LanguageModel, symbols: Tensor, state: State) -> tuple[Tensor, State]:
    if isinstance(model.output.choice, Drawn):
        trace, state = model.trace(symbols.unsqueeze(0), state)
        finite = all(bool(tensor.isfinite().all()) for tensor in (trace.top, *model.output.parameters()))
        return model.output.sample(trace).squeeze(0) if finite else symbols, state
    log_probs, state = model.step(symbols, state)
    p = log_probs.exp()
    p = p.masked_fill(~p.isfinite().all(-1, keepdim=True), 1.0)
    return torch.multinomial(p, 1).squeeze(1), state
