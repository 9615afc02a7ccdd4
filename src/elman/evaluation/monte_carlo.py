"""Monte Carlo dropout: probabilities averaged over many masks of dropout (Gal & Ghahramani 2016).

    p(y_t | y_1 .. y_{t-1}) = (1 / K) sum_k p(y_t | y_1 .. y_{t-1}, masks_k)

Each of K passes reads the whole stream with a state and masks of its own. Masks that are held over time (`locked`) are
held for one window, as in training, and the state is carried on.
"""

import math

import numpy as np
import torch

from elman.config.inference import DropoutSampling
from elman.data.windows import PositionedWindows
from elman.evaluation.perplexity import stream
from elman.jobs import Advance
from elman.network.model import LanguageModel


def dropout_log_probs(
    model: LanguageModel, windows: PositionedWindows, sampling: DropoutSampling, advance: Advance = None
) -> np.ndarray:
    """The logarithm (nats) of the mean probability of every token that is counted, in the order of the windows, [n].

    In float64. torch's random state is afterwards what it was before; the masks of the first passes do not depend on
    how many follow. `advance` is called with (windows done, windows of all passes).
    """
    devices = [model.device] if model.device.type == "cuda" else []
    total, done = np.empty(0), 0
    with torch.random.fork_rng(devices), np.errstate(invalid="ignore"):
        torch.manual_seed(sampling.seed)
        for index in range(sampling.samples):
            parts = []
            for log_prob, _ in stream(model, windows, dropout=True):
                parts.append(log_prob.cpu().double().numpy())
                done += 1
                if advance is not None:
                    advance(done, sampling.samples * windows.num_windows)
            one = np.concatenate(parts) if parts else np.empty(0)
            total = np.logaddexp(total, one) if index else one
    return total - math.log(sampling.samples)
