"""Words by their spelling: character convolutions and highways (Kim, Jernite, Sontag & Rush 2016)."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from elman import dropout
from elman.encoders.encoder import TokenEncoder
from elman.encoders.highway import Highway
from elman.encoders.spelling import Alphabet, Spellings
from elman.kernels.linear import linear

CHUNK = 4096
"""Words whose vectors are computed at once where no gradient is needed."""


class Characters(TokenEncoder):
    """A vector for any string.

        f_i = tanh(<C[:, i : i + w], H> + b),  y = max_i f_i     for each filter H [d, w]       (Kim et al. 2016, 5-6)
        z = t * relu(W_H y + b_H) + (1 - t) * y,  t = sigm(W_T y + b_T)                         (Kim et al. 2016, 8)

    with C [d, l] the vectors of the word's characters and its two marks. A filter sees the word only, so nothing that
    stands beside it in a batch changes its vector; in the paper filters also run over the padding. What a filter finds
    is the greatest, so tanh, which rises, is taken after the maximum.

    The vectors of a window are computed once for each distinct word in it. Without gradients those of the whole
    vocabulary are computed once, and kept until a parameter changes.

    Args:
        words: the vocabulary; word i is read as symbol i.
        size: d, the width of the characters' vectors.
        widths: widths w of filters.
        filters: how many there are of each.
        highways: layers of highway above them.
        dropout: rate on the vectors.
        locked: one dropout mask over time.

    """

    def __init__(
        self,
        words: Sequence[str],
        size: int,
        widths: Sequence[int],
        filters: Sequence[int],
        *,
        highways: int = 1,
        dropout: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.size, self.rate, self.locked = sum(filters), dropout, locked
        self.widths = tuple(widths)
        self.words = tuple(words)
        self.alphabet = Alphabet(self.words)
        self.weight = nn.Parameter(torch.empty(len(self.alphabet), size))
        self.filters = nn.ParameterList(
            nn.Parameter(torch.empty(count, width * size)) for width, count in zip(widths, filters, strict=True)
        )
        self.bias = nn.Parameter(torch.zeros(self.size))
        self.highways = nn.ModuleList(Highway(self.size) for _ in range(highways))
        self._begin_reading(self.words)

    def knowing(self, more: Sequence[str]) -> "Characters":
        """The same encoder, its parameters shared, that reads symbol V + i as the i-th of the strings `more`."""
        wider = copy.copy(self)
        wider._begin_reading([*self.words, *more])
        return wider

    def forward(self, x: Tensor) -> Tensor:
        """Word ids [T, B] to vectors [T, B, E]."""
        if torch.is_grad_enabled():
            distinct, index = x.unique(return_inverse=True)
            vectors = embedding(index, self._vectors(distinct, self._spelled(x.device)))
        else:
            vectors = embedding(x, self._all())
        drop = dropout.locked if self.locked else dropout.elementwise
        return drop(vectors, self.rate if self.training else 0.0)

    def encode_words(self, words: Sequence[str], *, highway: bool = True) -> Tensor:
        """Vectors [n, E] of any strings; without `highway` those that the filters give, y (Kim et al. 2016, Table 6).

        A character that no word of the vocabulary has is read as nothing.
        """
        spellings = Spellings.of(words, self.alphabet, max(self.widths)).to(self.weight.device)
        return self._chunked(spellings, highway=highway)

    def _begin_reading(self, words: Sequence[str]) -> None:
        self._spellings = Spellings.of(words, self.alphabet, max(self.widths))
        self._kept: tuple[list[tuple[int, int]], Tensor] | None = None

    def _spelled(self, device: torch.device) -> Spellings:
        if self._spellings.starts.device != device:
            self._spellings = self._spellings.to(device)
        return self._spellings

    def _all(self) -> Tensor:
        """The vectors of every symbol, kept until a parameter is changed, in place or for another tensor."""
        now = [(parameter.data_ptr(), parameter._version) for parameter in self.parameters()]
        if self._kept is None or self._kept[0] != now:
            self._kept = now, self._chunked(self._spelled(self.weight.device))
        return self._kept[1]

    def _chunked(self, spellings: Spellings, *, highway: bool = True) -> Tensor:
        words = torch.arange(len(spellings.starts), device=self.weight.device)
        if not len(words):
            return self.weight.new_zeros(0, self.size)
        return torch.cat([self._vectors(part, spellings, highway=highway) for part in words.split(CHUNK)])

    def _vectors(self, words: Tensor, spellings: Spellings, *, highway: bool = True) -> Tensor:
        """Vectors [n, E] of spelled words [n]."""
        table = pad(self.weight, (0, 0, 0, 1))  # nothing is zero
        found = []
        for width, weight in zip(self.widths, self.filters, strict=True):
            characters, count = spellings.windows(words, width)
            scores = linear(embedding(characters, table).flatten(1), weight)
            found.append(torch.segment_reduce(scores, "max", lengths=count))
        y = torch.tanh(torch.cat(found, dim=1) + self.bias)
        for layer in self.highways if highway else ():
            y = layer(y)
        return y
