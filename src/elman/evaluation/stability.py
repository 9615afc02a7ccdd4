"""All tiers for one model."""

import torch
from torch import Tensor

from elman.cores.stack import Stack
from elman.errors import UserError
from elman.model import LanguageModel
from elman.stability.certificate import Certificate
from elman.stability.fixed_point import fixed_point_certificates
from elman.stability.incremental import incremental
from elman.stability.lyapunov import lyapunov
from elman.stability.origin import origin


@torch.no_grad()
def encoded_words(model: LanguageModel, num_words: int, chunk: int = 4096) -> Tensor:
    """Every vector that the encoder can give, [V, E], float64: dropout is off."""
    model.eval()
    words = torch.arange(num_words, device=model.device)
    return torch.cat([model.encoder(part.unsqueeze(0))[0].double() for part in words.split(chunk)])


def certify(model: LanguageModel, num_words: int, text: Tensor | None = None) -> list[Certificate]:
    """The certificates of every layer, lowest tier first.

    Args:
        model: the network.
        num_words: V.
        text: word ids [T, B] for tier 3; None leaves it out.

    Raises:
        UserError: the model has no recurrent layers, or cells without certificates.

    """
    core = model.core
    if not isinstance(core, Stack):
        raise UserError(
            'stability is a question to layers in a chain: it needs a model of model.core.kind = "stack" with'
            ' model.core.connections = "chain"'
        )
    words = encoded_words(model, num_words)
    found = [*origin(core), *fixed_point_certificates(core), *incremental(core, words)]
    return found if text is None else [*found, lyapunov(core, words[text])]
