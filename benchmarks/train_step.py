"""A whole training step: forward, backward, clipping, update: `python benchmarks/train_step.py RECIPE`."""

import whole
from elman.data.batches import Batch

options = whole.arguments("Seconds, memory and share of the machine's peak of one training step.")
recipe, model = whole.model_of(options)
batch_size = options.batch_size or recipe.training.batch_size
words = whole.draw(options, options.length, batch_size)
step = whole.training_step(model, recipe, Batch(words[:-1], words[1:]))
positions = options.length * batch_size
whole.measure(step, positions, 3 * whole.forward_gflop(model, options.words, positions), options)
