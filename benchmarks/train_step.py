"""A whole training step: forward, backward, clipping, update: `python benchmarks/train_step.py RECIPE`."""

import torch

import whole
from elman.build import build_objective
from elman.data.windows import Batch
from elman.learning.bptt import bptt
from elman.learning.optimisers import build_optimiser, clip_gradients

options = whole.arguments("Seconds, memory and share of the machine's peak of one training step.")
recipe, model = whole.model_of(options)
training = recipe.training
batch_size = options.batch_size or training.batch_size
parameters = list(model.train().parameters())
optimiser = build_optimiser(training.optimiser, parameters, training.weight_decay)
objective = build_objective(training)
words = torch.randint(options.words, (options.length + 1, batch_size))
batch = Batch(words[:-1], words[1:])
state = model.begin(batch_size)


def step() -> None:
    """One step from the same state."""
    optimiser.zero_grad()
    bptt(model, objective, batch, state, training.slices)
    clip_gradients(parameters, training.clip)
    optimiser.step()


positions = options.length * batch_size
whole.measure(step, positions, 3 * whole.forward_gflop(model, positions), options)
