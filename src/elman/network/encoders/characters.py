"""Words by their spelling: character convolutions and highways (Kim, Jernite, Sontag & Rush 2016)."""

import copy
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar, Final, NamedTuple, final

import torch
from jaxtyping import Float, Int
from msgspec import Meta
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from elman import config
from elman.config.record import Positive, Rate
from elman.data.text.vocabulary import EOS, UNK
from elman.errors import UserError
from elman.network.dropout import Dropout
from elman.network.encoders.encoder import Inputs, TokenEncoder
from elman.network.fast.matmul import differentiable_once, keep, linear
from elman.network.fast.precision import Precision, chosen
from elman.network.initialisation import fill

BEGIN, END = 0, 1
"""The marks before and after every word."""

WHOLE: Final = {UNK: 2, EOS: 3}
"""Symbols that are not words have one character of their own each, so that `<unk>` is not spelled like a word."""


class Alphabet:
    """The characters (Unicode code points) that the words are spelled with.

    The blank `nothing` pads words shorter than a filter and replaces characters that are not in the alphabet.
    """

    def __init__(self, words: Sequence[str]) -> None:
        characters = sorted({character for word in words if word not in WHOLE for character in word})
        first = 2 + len(WHOLE)
        self._numbers = {character: number for number, character in enumerate(characters, start=first)}
        self.nothing = first + len(characters)

    def __len__(self) -> int:
        return self.nothing

    def __contains__(self, character: str) -> bool:
        return character in self._numbers

    def shared(self, other: "Alphabet") -> list[tuple[int, int]]:
        """The numbers, here and there, of the marks, of the words that are one character, and of shared characters."""
        marks = [(number, number) for number in range(2 + len(WHOLE))]
        return marks + [(number, other._numbers[one]) for one, number in self._numbers.items() if one in other]

    def spell(self, word: str) -> list[int]:
        """The numbers of a word's characters between its two marks."""
        if word in WHOLE:
            return [BEGIN, WHOLE[word], END]
        return [BEGIN, *(self._numbers.get(character, self.nothing) for character in word), END]


class Spellings(NamedTuple):
    """Concatenated words: characters [S], the index of each word's first one, and how many each word has [n].

    A word is padded with `Alphabet.nothing` to at least the width of the widest filter, where filters read `padding` by
    that width; counts include the two marks.
    """

    characters: Tensor
    starts: Tensor
    lengths: Tensor
    padding: bool = False

    @classmethod
    def of(cls, words: Sequence[str], alphabet: Alphabet, widest: int, *, padding: bool = False) -> "Spellings":
        """Spell words for filters of width `widest` at most."""
        spelled = [alphabet.spell(word) for word in words]
        blanks = [widest if padding else widest - len(word) for word in spelled]
        filled = [[*word, *[alphabet.nothing] * count] for word, count in zip(spelled, blanks, strict=True)]
        starts = list(accumulate((len(word) for word in filled), initial=0))[:-1]
        return cls(
            torch.tensor([character for word in filled for character in word], dtype=torch.int64),
            torch.tensor(starts, dtype=torch.int64),
            torch.tensor([len(word) for word in spelled], dtype=torch.int64),
            padding,
        )

    def to(self, device: torch.device) -> "Spellings":
        return Spellings(self.characters.to(device), self.starts.to(device), self.lengths.to(device), self.padding)

    def windows(self, words: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """All windows [P, width] of characters within words [n], word by word, and the number per word, [n].

        A word shorter than `width` has one window, padded with `Alphabet.nothing`. With `padding` a window begins at
        each character, and one more behind the word.
        """
        lengths = self.lengths[words]
        count = lengths + 1 if self.padding else (lengths - (width - 1)).clamp_(min=1)
        ends = count.cumsum(0)
        total = int(ends[-1]) if len(words) else 0
        first = torch.repeat_interleave(self.starts[words] - ends + count, count, output_size=total)
        begin = first + torch.arange(total, device=words.device)
        return self.characters[begin.unsqueeze(1) + torch.arange(width, device=words.device)], count


CARRY = -2.0
"""Where the bias of the gate begins: most is passed on unchanged at first (Kim et al. 2016, section 4.1)."""

CHUNK = 4096
"""Number of words whose vectors are computed at once where no gradient is needed."""

Version = tuple[Precision, list[tuple[int, int]]]
"""The precision of products; the address of every parameter, and how many times it was changed in place."""


class Kept:
    """A tensor that is computed again when parameters have changed."""

    def __init__(self) -> None:
        self._of: tuple[Version, Tensor] | None = None

    def get(self, version: Version, compute: Callable[[], Tensor]) -> Tensor:
        """The tensor of `version`, computed if it is not the one that is kept."""
        if self._of is None or self._of[0] != version:
            self._of = version, compute()
        return self._of[1]


class Characters(config.Encoder, frozen=True, tag="characters"):
    """Words by their spelling: `filters` gives the number of filters of each of the `widths`.

    With `padding` filters also read blanks behind the word, as in the published code: no y is below tanh(b).
    """

    spells: ClassVar[bool] = True
    size: Positive = 15
    widths: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=1000)] = (1, 2, 3, 4, 5, 6)
    filters: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=1000)] = (25, 50, 75, 100, 125, 150)
    highways: Annotated[int, Meta(ge=0, le=1000)] = 1
    padding: bool = False
    dropout: Rate = 0.0


@final
class CharactersEncoder(TokenEncoder, of=Characters):
    """A vector for any string.

        f_i = tanh(<C[:, i : i + w], H> + b),  y = max_i f_i     for each filter H [d, w]       (Kim et al. 2016, 5-6)
        z = t * relu(W_H y + b_H) + (1 - t) * y,  t = sigm(W_T y + b_T)                         (Kim et al. 2016, 8)

    with C [d, l] the vectors of the word's characters and its two marks, and with `padding` of blanks, which are zero.
    The vector does not depend on the other words of a batch. tanh is increasing, so it is applied after the maximum.

    The vectors of a window are computed once per distinct word. Without gradients the vectors of the whole vocabulary
    are computed once, and kept until a parameter, or the precision of products, changes.
    """

    spells = True

    def __init__(self, record: Characters, inputs: Inputs) -> None:
        super().__init__()
        if len(record.widths) != len(record.filters):
            raise UserError(
                f"model.encoder.filters has {len(record.filters)} numbers and model.encoder.widths"
                f" {len(record.widths)}; set one number of filters per width"
            )
        self.size, self.widths, self.padding = sum(record.filters), record.widths, record.padding
        self.dropout = Dropout(record.dropout, locked=inputs.locked)
        self.words = tuple(inputs.spelled())
        self.alphabet = Alphabet(self.words)
        self.weight = nn.Parameter(torch.empty(len(self.alphabet), record.size))
        self.filters = nn.ParameterList(
            nn.Parameter(torch.empty(count, width * record.size))
            for width, count in zip(record.widths, record.filters, strict=True)
        )
        self.bias = nn.Parameter(torch.zeros(self.size))
        self.highways = nn.ModuleList(Highway(self.size) for _ in range(record.highways))
        self._strings: Sequence[str] = self.words
        self._spellings = self._spell(self.words)
        self._kept, self._kept_with_more = Kept(), Kept()

    def knowing(self, more: Sequence[str]) -> "CharactersEncoder":
        """An encoder with the same parameters that also reads symbol V + i, as the i-th of the strings `more`."""
        wider = copy.copy(self)
        wider._strings = [*self.words, *more]
        wider._spellings = self._spell(wider._strings)
        wider._kept_with_more = Kept()  # the vectors of the vocabulary itself are shared
        return wider

    def forward(self, x: Int[Tensor, "T B"]) -> Float[Tensor, "T B E"]:
        if torch.is_grad_enabled():
            distinct, index = x.unique(return_inverse=True)
            vectors = embedding(index, self._vectors(distinct, self._spellings_at(x.device)))
        else:
            vectors = embedding(x, self._all())
        return self.dropout(vectors)

    def initialise(self, rules: config.Initialisation) -> None:
        fill(self.weight, rules.embedding, self.weight.shape[1])
        for weight in self.filters:
            fill(weight, rules.input, weight.shape[1])
        for highway in self.highways:
            assert isinstance(highway, Highway)
            for half in highway.weight.chunk(2):
                fill(half, rules.input, self.size)

    def encode_words(self, words: Sequence[str], *, highway: bool = True) -> Tensor:
        """Vectors [n, E] of any strings; without `highway` the outputs y of the filters (Kim et al. 2016, Table 6).

        A character that does not occur in the vocabulary is read as a blank.
        """
        spellings = self._spell(words).to(self.weight.device)
        return self._chunked(0, len(words), spellings, highway=highway)

    def _spell(self, words: Sequence[str]) -> Spellings:
        return Spellings.of(words, self.alphabet, max(self.widths), padding=self.padding)

    def _spellings_at(self, device: torch.device) -> Spellings:
        if self._spellings.starts.is_meta:  # built without memory, and filled with the weights of a file since then
            with torch.device("cpu"):
                self._spellings = self._spell(self._strings)
        if self._spellings.starts.device != device:
            self._spellings = self._spellings.to(device)
        return self._spellings

    def _all(self) -> Tensor:
        version = chosen(), [(parameter.data_ptr(), parameter._version) for parameter in self.parameters()]
        spellings, size = self._spellings_at(self.weight.device), len(self.words)
        known = self._kept.get(version, lambda: self._chunked(0, size, spellings))
        if len(spellings.starts) == size:
            return known
        return self._kept_with_more.get(
            version, lambda: torch.cat([known, self._chunked(size, len(spellings.starts), spellings)])
        )

    def _chunked(self, start: int, stop: int, spellings: Spellings, *, highway: bool = True) -> Tensor:
        words = torch.arange(start, stop, device=self.weight.device)
        parts = [self._vectors(part, spellings, highway=highway) for part in words.split(CHUNK)]
        return torch.cat(parts) if len(words) else self.weight.new_zeros(0, self.size)

    def _vectors(self, words: Tensor, spellings: Spellings, *, highway: bool = True) -> Tensor:
        """Vectors [n, E] of spelled words [n]."""
        table = pad(self.weight, (0, 0, 0, 1))  # the vector of `Alphabet.nothing` is zero
        found = []
        for width, weight in zip(self.widths, self.filters, strict=True):
            characters, count = spellings.windows(words, width)
            scores = linear(embedding(characters, table).flatten(1), weight)
            found.append(segment_max(scores, count))
        y = torch.tanh(torch.cat(found, dim=1) + self.bias)
        for layer in self.highways if highway else ():
            y = layer(y)
        return y


class Highway(nn.Module):
    """A highway layer (Srivastava et al. 2015): z = t * relu(W_H y + b_H) + (1 - t) * y, t = sigm(W_T y + b_T)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2 * size, size))
        self.bias = nn.Parameter(torch.cat([torch.zeros(size), torch.full((size,), CARRY)]))

    def forward(self, y: Tensor) -> Tensor:
        """Vectors [n, E] to vectors [n, E]; W_H lies above W_T."""
        changed, gate = linear(y, self.weight, self.bias).chunk(2, dim=1)
        return torch.lerp(y, changed.relu(), gate.sigmoid())


def segment_max(x: Tensor, lengths: Tensor) -> Tensor:
    """The maximum over each run of rows, [n, F], for x [P, F] and the runs' lengths [n], none empty, of sum P.

    Rows that are equally great share the gradient. `torch.segment_reduce` gives all of it to each of them where it is
    negative, so only its forward pass is used. Differentiable once.
    """
    return _SegmentMax.apply(x, lengths)  # type: ignore[no-untyped-call]


class _SegmentMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, lengths: Tensor) -> Tensor:
        y = torch.segment_reduce(x, "max", lengths=lengths)
        keep(ctx, x, y, lengths)
        return y

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor, None]:
        x, y, lengths = ctx.saved_tensors
        run = torch.repeat_interleave(lengths, output_size=len(x))
        greatest = (x == y.index_select(0, run)).to(x.dtype)
        share = d_y / torch.segment_reduce(greatest, "sum", lengths=lengths)
        return greatest.mul_(share.index_select(0, run)), None
