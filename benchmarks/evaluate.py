"""Evaluation of a window without gradients: `python benchmarks/evaluate.py RECIPE`."""

import torch

import whole

options = whole.arguments("Seconds, memory and share of the machine's peak of evaluating one window.")
_, model = whole.model_of(options)
batch_size = options.batch_size or 10
words = torch.randint(options.words, (options.length + 1, batch_size), device=options.device)
state = model.eval().begin(batch_size)


@torch.inference_mode()
def step() -> None:
    """One window from the same state."""
    model.log_prob(words[:-1], words[1:], state)


positions = options.length * batch_size
whole.measure(step, positions, whole.forward_gflop(model, positions), options)
