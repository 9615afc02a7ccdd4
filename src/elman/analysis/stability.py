"""The stability certificates of one model, all tiers."""

import math
from collections.abc import Callable
from functools import partial

import msgspec
import torch
from torch import Tensor

from elman.network.cores.core import RecurrentCore
from elman.network.cores.residual import ResidualCore
from elman.network.cores.stack import Layers, StackCore, layers_of, stack_of
from elman.network.model import LanguageModel
from elman.network.stability.certificate import LETTERS, Certificate, fixed_point_certificates, lyapunov, origin
from elman.network.stability.incremental import (
    Lowest,
    Range,
    exact_range,
    frames_range,
    incremental,
    linear_cells,
    retained,
    stream_of,
)


@torch.no_grad()
def encoded_words(model: LanguageModel, num_words: int, chunk: int = 4096) -> Tensor:
    """Every vector of the encoder without dropout, [V, E], float64."""
    model.eval()
    words = torch.arange(num_words, device=model.device)
    return torch.cat([model.encoder(part.unsqueeze(0))[0].double() for part in words.split(chunk)])


def certify(model: LanguageModel, num_words: int, text: Tensor | None = None) -> list[Certificate]:
    """The certificates of every layer, lowest tier first; without word ids `text` [T, B] tier 3 is left out.

    Cells that are linear in their state have tiers 2 and 3 alone, and others without certificates tier 3. Every value
    is NaN where a weight is infinite or NaN. Raises UserError where the model has no recurrent layers, or cells without
    certificates and no text is given.
    """
    words = encoded_words(model, num_words)
    vectors = None if text is None else words[text]
    found = _of_other_cells(model.core, lambda core: partial(exact_range, stream_of(core, words)), vectors)
    if found is None:
        core = stack_of(model.core, "a certificate of stability")
        found = _all_tiers(core, partial(exact_range, words), vectors)
    return _of_finite(model, found)


@torch.no_grad()
def certify_music(model: LanguageModel, num_pitches: int, frames: Tensor | None = None) -> list[Certificate]:
    """The certificates of a model of music, whatever notes sound at each step.

    `frames` are zeros and ones [T, B, P] for tier 3; the encoder adds up vectors of notes. Raises as `certify` does.
    """
    model.eval()
    silence = torch.zeros(1, 1, num_pitches, device=model.device)
    none, single = (model.encoder(each)[0].double() for each in (silence, silence + torch.eye(num_pitches).to(silence)))
    vectors = None if frames is None else model.encoder(frames).double()
    lowest = partial(frames_range, none[0], single - none)
    found = _of_other_cells(model.core, lambda core: None if isinstance(core, ResidualCore) else lowest, vectors)
    if found is None:
        found = _all_tiers(stack_of(model.core, "a certificate of stability"), lowest, vectors)
    return _of_finite(model, found)


def _of_finite(model: LanguageModel, found: list[Certificate]) -> list[Certificate]:
    """The certificates of a model, without values where the encoder or the core has a weight that is not finite."""
    weights = [*model.encoder.parameters(), *model.core.parameters()]
    if all(weight.isfinite().all() for weight in weights):
        return found
    return [msgspec.structs.replace(one, value=math.nan) for one in found]


def _of_other_cells(
    core: RecurrentCore, lowest: Callable[[Layers], Lowest | None], vectors: Tensor | None
) -> list[Certificate] | None:
    """The certificates of layers that `_all_tiers` does not know; None: it knows them, or nothing can be said."""
    if not isinstance(core, Layers):
        return None
    exponent = [] if vectors is None else [lyapunov(core, vectors)]
    if linear_cells(core):
        return [*retained(core, lowest(core)), *exponent]
    known = isinstance(core, StackCore) and all(layer.cell.name in LETTERS for layer in layers_of(core))
    return None if known else exponent or None


def _all_tiers(core: StackCore, lowest: Callable[[Tensor, Tensor], Range], vectors: Tensor | None) -> list[Certificate]:
    found = [*origin(core), *fixed_point_certificates(core), *incremental(core, lowest)]
    return found if vectors is None else [*found, lyapunov(core, vectors)]
