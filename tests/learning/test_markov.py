"""Learning: on a source of known entropy the loss comes down to it, and not below beyond noise."""

import numpy as np
import pytest
import torch

from elman import config
from elman.data.windows import EvaluationWindows, TrainingWindows
from elman.evaluation.perplexity import token_log_probs
from elman.learning.bptt import bptt
from elman.learning.optimisers import Optimiser
from elman.learning.update import clip_gradients
from elman.network.build import build_model
from elman.objective.loss import Objective

SYMBOLS = 4


def source(length, chain, draw):
    """A chain in which a symbol depends on the two before it, so that memory is needed."""
    thresholds, uniform = chain.cumsum(-1), draw.random(length)
    text = [0, 0]
    for u in uniform:
        text.append(min(SYMBOLS - 1, int(np.searchsorted(thresholds[text[-2], text[-1]], u))))
    return np.array(text[2:])


@pytest.mark.slow
def test_the_loss_comes_down_to_the_entropy_of_the_source():
    draw = np.random.default_rng(0)
    chain = draw.dirichlet(np.full(SYMBOLS, 0.4), size=(SYMBOLS, SYMBOLS))
    train, held_out = source(60_000, chain, draw), source(12_000, chain, draw)
    model = build_model(config.Model(encoder=config.Lookup(size=8), core=config.Stack(sizes=(24,))), SYMBOLS).train()
    parameters = list(model.parameters())
    optimiser = Optimiser(config.Adam(lr=0.01), parameters)
    windows, state = TrainingWindows(train, 32, 25), model.begin(32)
    for span in [*windows.spans(0), *windows.spans(1), *windows.spans(2), *windows.spans(3)]:
        optimiser.zero_grad()
        _, state = bptt(model, Objective(), windows.batch(span), state)
        clip_gradients(parameters, 1.0)
        optimiser.step()

    ours = token_log_probs(model, EvaluationWindows(held_out, 0, streams=4, length=200))[2:]
    truth = np.log(chain[held_out[:-2], held_out[1:-1], held_out[2:]])
    unigram = np.log(np.bincount(train) / len(train))[held_out[2:]]
    excess = truth - ours
    noise = excess.std() / np.sqrt(len(excess))
    assert -truth.mean() < 0.8 * -unigram.mean(), "the source must be worth learning"
    assert excess.mean() < 0.03 * -truth.mean()
    assert excess.mean() > -4 * noise
    assert torch.isfinite(torch.cat([parameter.flatten() for parameter in parameters])).all()
