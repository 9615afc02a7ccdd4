"""Vectors of a model: hidden states by layer for every token, the vectors of its words, and their neighbours."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.evaluation.scoring import Sentences
from elman.network.encoders.characters import CharactersEncoder
from elman.network.encoders.frames import FramesEncoder
from elman.network.encoders.lookup import LookupEncoder
from elman.network.model import LanguageModel
from elman.network.output.flat import FlatChoice
from elman.network.output.mixtape import MixtapeChoice
from elman.network.output.monotone import MonotoneChoice
from elman.network.output.tree import TreeChoice
from elman.tasks.text.model import Foreign, States
from elman.tasks.text.run import TextRun


def num_layers(run: TextRun | Foreign) -> int:
    """How many levels of states a model has; level 0 is the encoder's vectors."""
    if isinstance(run, Foreign):
        return run.num_levels
    with torch.inference_mode():
        trace, _ = run.model.trace(torch.tensor([[run.first]], device=run.device), run.begin())
    return len(trace.raw)


@torch.inference_mode()
def states_of(
    run: TextRun | Foreign,
    text: Sentences,
    layers: Sequence[int],
    *,
    document: bool = False,
    before: Sequence[int] = (),
) -> Iterator[States]:
    """The tokens of each sentence as they stand, their ids [n], and the output of each of `layers` after each token.

    Outputs are [n, H] float32; level 0 is the encoder. With `document` a sentence is read after those before it.
    `before`: ids that are read first.
    """
    if isinstance(run, Foreign):
        run.independent(document)
        yield from run.states(text, layers)
        return
    _, state = text.model.trace(_column([run.first, *before], run), run.begin())
    for sentence, inputs in text.items:
        trace, after = text.model.trace(_column(inputs, run), state)
        state = after if document else state
        yield sentence.tokens, sentence.ids, [trace.raw[layer][:, 0].float().cpu().numpy() for layer in layers]


@torch.inference_mode()
def word_vectors(run: TextRun | Foreign, side: str) -> Tensor:
    """The vectors [V, D] of the vocabulary: of the encoder (`input`) or the rows of the output matrix (`output`).

    Raises UserError where the output layer has no such matrix.
    """
    if isinstance(run, Foreign):
        return run.word_vectors(side)
    model = run.model
    if side == "input":
        assert not isinstance(model.encoder, FramesEncoder), "runs on music have no words"
        return model.encoder(torch.arange(len(run.vocabulary), device=run.device).unsqueeze(1))[:, 0]
    choice = model.output.choice
    if isinstance(choice, FlatChoice | TreeChoice | MixtapeChoice | MonotoneChoice):
        return choice.weight.detach()
    kind = type(choice).__name__.removesuffix("Choice")
    raise UserError(f"{run.path}: the output layer ({kind}) has no single vector per word; use --vectors input instead")


def word2vec_text(words: Sequence[str], vectors: Tensor) -> str:
    r"""Vectors in the text form of word2vec: V and D, then a word and its D numbers per line.

    White space separates, so white space in a word is written as \uXXXX.
    """
    rows = vectors.float().cpu().numpy()
    escaped = (re.sub(r"\s", lambda match: f"\\u{ord(match[0]):04x}", word) for word in words)
    lines = (f"{word} {' '.join(f'{x:.6g}' for x in row)}" for word, row in zip(escaped, rows, strict=True))
    return "\n".join([f"{len(rows)} {rows.shape[1]}", *lines]) + "\n"


def _column(ids: Sequence[int] | np.ndarray, run: TextRun) -> Tensor:
    return torch.tensor(np.asarray(ids), dtype=torch.long, device=run.device).unsqueeze(1)


class Neighbour(NamedTuple):
    """A word of the vocabulary and the cosine of the angle between its vector and the string's."""

    word: str
    cosine: float


class Neighbourhood(NamedTuple):
    """A string, whether the vocabulary has it, and its neighbours, nearest first."""

    word: str
    known: bool
    neighbours: list[Neighbour]


@torch.inference_mode()
def neighbourhoods(
    model: LanguageModel, vocabulary: Vocabulary, words: Sequence[str], k: int, *, highway: bool = True
) -> list[Neighbourhood]:
    """The k words of the vocabulary nearest to each string, itself left out (Kim et al. 2016, Table 6).

    The vectors are the encoder's; `highway`: whether an encoder with highways gives them above its highways, or below.
    Raises UserError where a string has no vector, or the encoder no highway to look below.
    """
    known, asked = _vectors(model, vocabulary, words, highway=highway)
    cosines = normalize(asked, dim=1) @ normalize(known, dim=1).t()
    found = []
    for word, row in zip(words, cosines, strict=True):
        own = vocabulary.ids.get(word)
        if own is not None:
            row[own] = -torch.inf
        best = row.topk(min(k, len(vocabulary) - (own is not None)))
        pairs = zip(vocabulary.decode(best.indices.tolist()), best.values.tolist(), strict=True)
        found.append(Neighbourhood(word, own is not None, [Neighbour(*pair) for pair in pairs]))
    return found


def _vectors(
    model: LanguageModel, vocabulary: Vocabulary, words: Sequence[str], *, highway: bool
) -> tuple[Tensor, Tensor]:
    match model.encoder:
        case CharactersEncoder() as encoder:
            if not highway and not len(encoder.highways):
                why = "the encoder has no highway (model.encoder.highways = 0)"
                raise UserError(f"--before-highway: {why}; leave it out")
            known = encoder.encode_words(vocabulary.words, highway=highway)
            return known, encoder.encode_words(words, highway=highway)
        case LookupEncoder() as lookup:
            if not highway:
                raise UserError('--before-highway is for runs with model.encoder.kind = "characters"; leave it out')
            missing = next((word for word in words if word not in vocabulary.ids), None)
            if missing is not None:
                raise UserError(
                    f"{missing!r} is not in the vocabulary of {len(vocabulary):,} words; only an encoder of spelling"
                    ' (model.encoder.kind = "characters") has vectors for others'
                )
            return lookup.weight, lookup.weight[[vocabulary.ids[word] for word in words]]
        case _:
            raise AssertionError("a run on text reads words")
