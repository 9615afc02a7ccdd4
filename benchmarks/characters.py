"""A character LSTM beside the plain PyTorch one, in turns: `python benchmarks/characters.py [PART ...]`.

The network of the thesis's text8: characters of 128, one LSTM of 1024, softmax over 100 characters, Adam, batch 100,
windows of 200. `step` is the whole training step (forward, backward, clipping, update) of both; `lstm` is the sequence
alone, forward and backward, as the library has it and with elman's own hoisted products; `profile` prints what elman's
step goes to on stderr.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import timing
import whole
from elman.config.toml import find, load_recipe
from elman.data.batches import Batch
from elman.network.build import build_model
from elman.network.cells.cell import Weights
from elman.network.device import use_large_pages
from elman.network.fast import lstm

CHARACTERS, EMBEDDING, HIDDEN, BATCH, LENGTH = 100, 128, 1024, 100, 200
WEIGHTS = 4 * HIDDEN * (EMBEDDING + HIDDEN)
GFLOP = 6e-9 * BATCH * LENGTH * (WEIGHTS + CHARACTERS * HIDDEN)


class Plain(nn.Module):
    """What anyone would write: embedding, nn.LSTM, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN)
        self.output = nn.Linear(HIDDEN, CHARACTERS)

    def forward(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean NLL."""
        outputs, _ = self.lstm(self.embedding(inputs))
        return cross_entropy(self.output(outputs).flatten(0, 1), targets.flatten())


def plain_step(batch: Batch) -> Callable[[], None]:
    model = Plain()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimiser.zero_grad()
        model(batch.inputs, batch.targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    return step


def elman_step(batch: Batch) -> Callable[[], None]:
    recipe = load_recipe(find("text8/lstm-softmax.toml"))
    return whole.training_step(build_model(recipe.model, CHARACTERS), recipe, batch)


def sequences(options: argparse.Namespace) -> None:
    shapes = (4 * HIDDEN, EMBEDDING), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,), (4 * HIDDEN,)
    weights = Weights(*((0.03 * torch.randn(shape)).requires_grad_() for shape in shapes))
    leaves = list(weights.tensors().values())
    xs, zero = torch.randn(LENGTH, BATCH, EMBEDDING), torch.zeros(BATCH, HIDDEN)
    gradient = torch.randn(LENGTH, BATCH, HIDDEN)
    functions = {"library": partial(lstm.library, dtype=torch.float32), "hoisted": lstm.hoisted}
    candidates: timing.Candidates = {
        name: lambda f=f: torch.autograd.grad(f(weights, xs, zero, zero)[0], leaves, gradient)
        for name, f in functions.items()
    }
    timing.report({"part": "lstm"}, 6e-9 * BATCH * LENGTH * WEIGHTS, candidates, options)


def main() -> None:
    use_large_pages()
    options = timing.arguments(__doc__ or "", ("step", "lstm", "profile"))
    timing.peak(options)
    characters = torch.randint(CHARACTERS, (LENGTH + 1, BATCH))
    batch = Batch(characters[:-1], characters[1:])
    for part in options.parts:
        match part:
            case "step":
                candidates: timing.Candidates = {"elman": elman_step(batch), "plain": plain_step(batch)}
                timing.report({"part": part, "tokens": BATCH * LENGTH}, GFLOP, candidates, options)
            case "lstm":
                sequences(options)
            case "profile":
                whole.profile(elman_step(batch), times=1)


if __name__ == "__main__":
    main()
