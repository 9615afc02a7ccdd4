"""What a model holds: hidden states by layer for every token, and the vectors of its words."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from elman.errors import UserError
from elman.network.encoders.encoder import Frames
from elman.network.output.flat import Flat
from elman.network.output.mixtape import Mixtape
from elman.network.output.monotone import Monotone
from elman.network.output.tree import Tree
from elman.tasks.text.run import TextRun


def num_layers(run: TextRun) -> int:
    """How many levels a trace has; level 0 is the encoder's vectors."""
    with torch.inference_mode():
        trace, _ = run.model.trace(torch.tensor([[run.first]], device=run.device), run.begin())
    return len(trace.raw)


@torch.inference_mode()
def hidden_states(
    run: TextRun, lines: Sequence[str], layers: Sequence[int], *, document: bool = False
) -> Iterator[tuple[list[str], np.ndarray, list[np.ndarray]]]:
    """The states of a text, a sentence at a time.

    Yields:
        The tokens, their ids [n], and for each of `layers` what it puts out after reading each token, [n, H] float32.
        Level 0 is what the encoder gives the first layer.

    """
    text = run.reading(lines)
    _, state = text.model.trace(_column([run.first], run), run.begin())
    for tokens, ids, inputs in zip(text.words, text.ids, text.inputs, strict=True):
        trace, after = text.model.trace(_column(inputs, run), state)
        state = after if document else state
        yield tokens, ids, [trace.raw[layer][:, 0].float().cpu().numpy() for layer in layers]


@torch.inference_mode()
def word_vectors(run: TextRun, side: str) -> Tensor:
    """The vectors [V, D] of the vocabulary.

    Args:
        run: the trained model.
        side: `input`: what the encoder makes of each word; `output`: the rows of the output matrix.

    Raises:
        UserError: the output layer has no such matrix.

    """
    model = run.model
    if side == "input":
        assert not isinstance(model.encoder, Frames), "runs on music have no words"
        return model.encoder(torch.arange(len(run.vocabulary), device=run.device).unsqueeze(1))[:, 0]
    choice = model.output.choice
    if isinstance(choice, Flat | Tree | Mixtape | Monotone):
        return choice.weight.detach()
    kind = type(choice).__name__
    raise UserError(
        f"{run.path}: the output layer ({kind}) has no one vector for every word; give --vectors input instead"
    )


def word2vec_text(words: Sequence[str], vectors: Tensor) -> str:
    r"""Vectors in the text form of word2vec: V and D, then a word and its D numbers a line.

    The form separates by white space, so white space in a word is written as \uXXXX.
    """
    rows = vectors.float().cpu().numpy()
    lines = (f"{_escaped(word)} {' '.join(f'{x:.6g}' for x in row)}" for word, row in zip(words, rows, strict=True))
    return "\n".join([f"{len(rows)} {rows.shape[1]}", *lines]) + "\n"


def _escaped(word: str) -> str:
    return re.sub(r"\s", lambda match: f"\\u{ord(match[0]):04x}", word)


def _column(ids: Sequence[int] | np.ndarray, run: TextRun) -> Tensor:
    return torch.tensor(np.asarray(ids), dtype=torch.long, device=run.device).unsqueeze(1)
