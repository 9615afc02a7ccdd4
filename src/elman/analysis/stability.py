"""The stability certificates of one model, all tiers."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from elman.network.cores.stack import Stack, stack_of
from elman.network.model import LanguageModel
from elman.network.stability.certificate import Certificate, origin
from elman.network.stability.fixed_point import fixed_point_certificates, lyapunov
from elman.network.stability.incremental import Range, exact_range, frames_range, incremental


@torch.no_grad()
def encoded_words(model: LanguageModel, num_words: int, chunk: int = 4096) -> Tensor:
    """Every vector of the encoder without dropout, [V, E], float64."""
    model.eval()
    words = torch.arange(num_words, device=model.device)
    return torch.cat([model.encoder(part.unsqueeze(0))[0].double() for part in words.split(chunk)])


def certify(model: LanguageModel, num_words: int, text: Tensor | None = None) -> list[Certificate]:
    """The certificates of every layer, lowest tier first; without word ids `text` [T, B] tier 3 is left out.

    Raises UserError where the model has no recurrent layers, or cells without certificates.
    """
    core, words = stack_of(model.core, "a certificate of stability"), encoded_words(model, num_words)
    return _all_tiers(core, partial(exact_range, words), None if text is None else words[text])


@torch.no_grad()
def certify_music(model: LanguageModel, num_pitches: int, frames: Tensor | None = None) -> list[Certificate]:
    """The certificates of a model of music, whatever notes sound at each step.

    `frames` are zeros and ones [T, B, P] for tier 3; the encoder adds up vectors of notes. Raises as `certify` does.
    """
    core = stack_of(model.core, "a certificate of stability")
    model.eval()
    silence = torch.zeros(1, 1, num_pitches, device=model.device)
    none, single = (model.encoder(each)[0].double() for each in (silence, silence + torch.eye(num_pitches).to(silence)))
    vectors = None if frames is None else model.encoder(frames).double()
    return _all_tiers(core, partial(frames_range, none[0], single - none), vectors)


def _all_tiers(core: Stack, lowest: Callable[[Tensor, Tensor], Range], vectors: Tensor | None) -> list[Certificate]:
    found = [*origin(core), *fixed_point_certificates(core), *incremental(core, lowest)]
    return found if vectors is None else [*found, lyapunov(core, vectors)]
