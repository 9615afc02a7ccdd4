"""Evaluation of a window without gradients: `python benchmarks/evaluate.py RECIPE`."""

import torch

import whole

options = whole.arguments("Seconds, memory and share of the machine's peak of evaluating one window.")
_, model = whole.model_of(options)
batch_size = options.batch_size or 10
words = whole.draw(options, options.length, batch_size)
state = model.eval().begin(batch_size)


@torch.inference_mode()
def step() -> None:
    """One window from the same state."""
    model.log_prob(words[:-1], words[1:], state)


positions = options.length * batch_size
whole.measure(step, positions, whole.forward_gflop(model, options.words, positions), options)
