"""Symbols to vectors: an embedding with the dropout of AWD-LSTM, words by their characters, and levels of a network."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elman import config
from elman.config.initialisation import Initialisation
from elman.network.encoders.characters import Characters as CharactersRecord
from elman.network.encoders.encoder import Inputs, TokenEncoder
from elman.network.encoders.lookup import Lookup
from elman.nn.shared import Shared, record_of


class Encoder(Shared):
    """Vectors [..., E] of symbols [...], by an encoder of elman; of two axes or more the first is time."""

    def __init__(self, encoder: TokenEncoder, *, batch_first: bool = False) -> None:
        super().__init__(encoder, encoder)
        self.batch_first, self.embedding_dim = batch_first, encoder.size

    def forward(self, x: Tensor) -> Tensor:
        """Vectors [..., E] of symbols [...], int64."""
        encoder = self.called()
        if x.dim() < 2:
            return encoder(x.reshape(1, -1)).reshape(*x.shape, self.embedding_dim)
        return encoder(x.transpose(0, 1)).transpose(0, 1) if self.batch_first else encoder(x)


class Embedding(Encoder):
    """A vector of E numbers for each of V symbols; `weight` [V, E] can be shared with an output.

    Args:
        vocabulary: V
        size: E
        word_dropout: of whole symbols, wherever they occur in a call (Gal & Ghahramani 2016; Merity et al. 2018)
        dropout: of the vectors, with one mask held over time
        scale: what the vectors are multiplied by
        batch_first: symbols are [B, T]; only the mask held over time depends on it
        initialisation: how the matrix begins; None: in U(-0.1, 0.1)
        device: of the matrix
        dtype: of the matrix

    Raises ValueError where an argument is out of its range.
    """

    def __init__(
        self,
        vocabulary: int,
        size: int,
        *,
        word_dropout: float = 0.0,
        dropout: float = 0.0,
        scale: float = 1.0,
        batch_first: bool = False,
        initialisation: Initialisation | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        keys = {"size": size, "word_dropout": word_dropout, "dropout": dropout, "scale": scale}
        encoder = made(Lookup, keys, Inputs(vocabulary), initialisation, device, dtype)
        super().__init__(encoder, batch_first=batch_first)
        self.num_embeddings = vocabulary


class Characters(Encoder):
    """The vectors of words by their spelling: convolutions and highways (Kim, Jernite, Sontag & Rush 2016).

    Args:
        words: the symbols, in their order
        size: of the vector of a character
        widths: of the convolutions
        filters: of each width, as many
        highways: layers of them
        padding: whether filters also read blanks behind the word, as in the published code
        dropout: of the vectors, with one mask held over time

    The others as in `Embedding`; E is the sum of `filters`.
    """

    def __init__(
        self,
        words: Sequence[str],
        size: int = 15,
        widths: Sequence[int] = (1, 2, 3, 4, 5, 6),
        filters: Sequence[int] = (25, 50, 75, 100, 125, 150),
        highways: int = 1,
        *,
        padding: bool = False,
        dropout: float = 0.0,
        batch_first: bool = False,
        initialisation: Initialisation | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if len(widths) != len(filters):
            raise ValueError(f"{len(widths)} widths and {len(filters)} filters; give one number of filters per width")
        keys = {"size": size, "widths": widths, "filters": filters, "highways": highways, "padding": padding}
        keys["dropout"] = dropout
        encoder = made(CharactersRecord, keys, Inputs(len(words), words), initialisation, device, dtype)
        super().__init__(encoder, batch_first=batch_first)
        self.num_embeddings = len(words)

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Vectors [n, E] of any strings, of which a character that no symbol has is read as a blank."""
        vectors: Tensor = self.called().encode_words(words)
        return vectors


class ScalarMix(torch.nn.Module):
    """gamma sum_j s_j h_j of L levels h_j, s = softmax(w): vectors of words in context, from language models.

    Peters et al. 2018, Deep contextualized word representations, NAACL, eq. 1. w and gamma are learnt, from 0 and 1.

    Args:
        levels: L
    """

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.w, self.gamma = torch.nn.Parameter(torch.zeros(levels)), torch.nn.Parameter(torch.ones(()))

    @property
    def weights(self) -> Tensor:
        """S [L]."""
        return self.w.softmax(0)

    def forward(self, levels: Sequence[Tensor]) -> Tensor:
        """The mean [..., D] of L tensors [..., D] under the weights, times gamma."""
        if len(levels) != len(self.w):
            raise ValueError(f"{len(levels)} levels for {len(self.w)} weights")
        mixed: Tensor = self.gamma * sum(s * level for s, level in zip(self.weights, levels, strict=True))
        return mixed


def made(
    kind: type[config.Encoder],
    keys: dict[str, Any],
    inputs: Inputs,
    initialisation: Initialisation | None,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> TokenEncoder:
    """The encoder of a record with these keys, initialised."""
    record = record_of({"kind": kind.__struct_config__.tag, **keys}, kind, kind.__name__)
    with torch.device(torch.get_default_device() if device is None else device):
        encoder: TokenEncoder = record.build(inputs).to(dtype)
        encoder.initialise(initialisation or Initialisation())
    return encoder
