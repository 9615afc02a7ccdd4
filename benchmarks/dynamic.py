"""Dynamic evaluation by the RMS rule on random words: `python benchmarks/dynamic.py RECIPE [--length SEGMENT]`."""

import torch

import whole
from elman.config.inference import Rule
from elman.evaluation.dynamic import DynamicModel

options = whole.arguments("Seconds, memory and share of the peak of scoring one segment and learning from it.")
_, model = whole.model_of(options)
statistics = {name: 1e-4 * torch.rand_like(parameter) for name, parameter in model.named_parameters()}
learner = DynamicModel(model, Rule(segment=options.length), statistics)
words = whole.draw(options, options.length, 1)
state = model.begin(1)


def step() -> None:
    """One segment from the same state."""
    learner.read(words[:-1], words[1:], state)


whole.measure(step, options.length, 3 * whole.forward_gflop(model, options.words, options.length), options)
