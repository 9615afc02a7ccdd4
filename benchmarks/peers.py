"""What the peers of the race share: a recipe's text as tensors, validations by the minute, the row of results."""

import argparse
import json
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elman.config.toml import load_recipe
from elman.network.device import use_large_pages
from elman.tasks.open import open_task


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RECIPE, whose table [data] says how the text is read, and the options of every peer."""
    parser.add_argument("recipe", type=Path, help="whose table [data] says how the text is read")
    parser.add_argument("--data", required=True)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a folder for the validations, which `race.py --curve` draws")


class Text(NamedTuple):
    """The splits [N] of a recipe's text, the number of symbols, the id that a text begins after; when it was read."""

    splits: dict[str, Tensor]
    symbols: int
    first: int
    begun: float


def read(options: argparse.Namespace) -> Text:
    """The text, read with the clock running, and the machine as the options say."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    use_large_pages()
    begun = time.monotonic()
    task = open_task(load_recipe(options.recipe), options.data)
    splits = {
        name: torch.from_numpy(np.array(task.corpus.split(name).tokens)).long() for name in ("train", "valid", "test")
    }
    return Text(splits, len(task.inputs), task.inputs.eos, begun)


class Clock:
    """The share of the minutes that is over, and the validations, which take time too: one a minute with `--out`."""

    def __init__(self, begun: float, options: argparse.Namespace) -> None:
        self.begun, self.minutes, self.threads, self.done = begun, options.minutes, options.threads, 0
        self.path = None if options.out is None else options.out / "metrics.jsonl"
        if self.path is not None:
            options.out.mkdir(parents=True)

    @property
    def seconds(self) -> float:
        """Since the text began to be read."""
        return time.monotonic() - self.begun

    @property
    def share(self) -> float:
        """Of the minutes."""
        return self.seconds / (60 * self.minutes)

    def due(self) -> bool:
        """Whether another validation is due; never in the last half minute, since one follows the last update."""
        minute = self.seconds / 60
        return self.path is not None and self.done + 1 <= minute < self.minutes - 0.5

    def keep(self, nats: float, seconds: float | None = None) -> None:
        """Write the loss of a validation now, or of the weights after so many seconds."""
        self.done += 1
        if self.path is not None:
            at = self.seconds if seconds is None else seconds
            row = {"kind": "valid", "seconds": round(at, 1), "perplexity": math.exp(nats)}
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def tell(self, model: nn.Module, steps: int, tokens: int, seconds: float, nats: dict[str, float]) -> None:
        """Print the JSON line of a peer: size, work, seconds up to the last update, nats per token and perplexities."""
        self.keep(nats["valid"], seconds)
        size = sum(parameter.numel() for parameter in model.parameters())
        work = {"parameters": size, "steps": steps, "tokens": tokens, "seconds": round(seconds, 1)}
        found = {f"{name} perplexity": round(math.exp(value), 2) for name, value in nats.items()}
        print(json.dumps(work | {"threads": self.threads} | nats | found))
