"""What it costs to read words by their spelling: `python benchmarks/spelling.py [PART ...]`.

Words of random letters are drawn by Zipf's law. `step` is the whole training step of recipes/ptb/small-char and of its
word twin, in turns; `encoder` is the encoder's share of the step, forward and backward, and what evaluation pays once:
the vectors of the whole vocabulary, which is spelled again here.
"""

import json
import string
from collections.abc import Callable

import numpy as np
import torch

import timing
import whole
from elman.config.toml import find, load_recipe
from elman.data.batches import Batch
from elman.network.build import build_model
from elman.network.device import use_large_pages
from elman.network.encoders.characters import CharactersEncoder
from elman.network.model import LanguageModel

WORDS, BATCH, LENGTH = 10_000, 32, 35


def words_and_window() -> tuple[list[str], torch.Tensor]:
    """Different words of about seven letters, the frequent ones shorter, and symbols [T + 1, B]."""
    draw = np.random.default_rng(0)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        length = 1 + draw.poisson(2 + np.log10(1 + len(found)))
        found["".join(draw.choice(list(string.ascii_lowercase), size=length))] = None
    share = 1 / np.arange(1, WORDS + 1)
    return list(found), torch.from_numpy(draw.choice(WORDS, size=(LENGTH + 1, BATCH), p=share / share.sum()))


def training_step(name: str, words: list[str], batch: Batch) -> tuple[LanguageModel, Callable[[], None]]:
    """The model of a recipe and its training step."""
    recipe = load_recipe(find(f"ptb/{name}.toml"))
    model = build_model(recipe.model, WORDS, None, words)
    return model, whole.training_step(model, recipe, batch)


def encoder_costs(encoder: CharactersEncoder, inputs: torch.Tensor) -> timing.Candidates:
    """Forward and backward for a window, and the vocabulary without gradients."""

    def window() -> None:
        vectors = encoder(inputs)
        torch.autograd.grad(vectors, list(encoder.parameters()), torch.ones_like(vectors))

    @torch.no_grad()
    def vocabulary() -> None:
        encoder.encode_words(encoder.words)

    return {"window": window, "vocabulary": vocabulary}


def main() -> None:
    use_large_pages()
    options = timing.arguments(__doc__ or "", ("step", "encoder"))
    words, symbols = words_and_window()
    batch = Batch(symbols[:-1], symbols[1:])
    facts: dict[str, object] = {"threads": options.threads, "distinct": len(batch.inputs.unique())}
    (model, spelled), (_, looked_up) = (training_step(f"small-char{twin}", words, batch) for twin in ("", "-word-twin"))
    assert isinstance(model.encoder, CharactersEncoder)
    costs = encoder_costs(model.encoder, batch.inputs)
    for part in options.parts:
        candidates = {"spelling": spelled, "looked up": looked_up} if part == "step" else costs
        for name, seconds in timing.in_turns(candidates, options).items():
            times = {key: round(1e3 * value, 2) for key, value in timing.spread(seconds).items()}
            print(json.dumps(facts | {"part": part, "candidate": name} | times), flush=True)


if __name__ == "__main__":
    main()
