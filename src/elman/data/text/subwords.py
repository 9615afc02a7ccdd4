"""Subwords by the library sentencepiece: byte-pair encoding and the unigram model, without loss.

Nothing is normalised, no space is added or removed, and what has no piece is spelt in bytes, `<0xE3>`. In a piece a
space is written as U+2581.
"""

import functools
import hashlib
import io
import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from elman.config.text import SubwordOptions
from elman.data.text.utf8 import SPACE, from_bytes, piece_bytes, read_bytes, to_bytes
from elman.data.text.vocabulary import EOS
from elman.errors import UserError, optional
from elman.files import write_atomic

NEEDS = "subwords need the package sentencepiece: pip install 'elman[subwords]'"
FILE = "subwords.model"  # the file in a run folder
_UNKNOWN = "<?>"
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST = 1 << 18


class Subwords:
    """A trained model of subwords, from the bytes of its protocol buffer.

    Raises UserError where sentencepiece is not installed, or these bytes are not a model with byte fallback.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        try:
            self._processor = optional("sentencepiece", NEEDS).SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise UserError("subwords.model: not a model of sentencepiece; restore the file of the run") from None
        if not set(_spelt(bytes(range(256)))) <= set(self.pieces):
            raise UserError("subwords.model: cannot spell bytes; train it with byte fallback")

    def save(self, folder: Path, name: str = FILE) -> str:
        """Write the model into a folder; returns the name of the file."""
        write_atomic(folder / name, self.model)
        return name

    @functools.cached_property
    def pieces(self) -> tuple[str, ...]:
        found = map(self._processor.id_to_piece, range(self._processor.get_piece_size()))
        return tuple(piece for piece in found if piece not in (_UNKNOWN, EOS))

    @functools.cached_property
    def scores(self) -> dict[str, float]:
        """The pieces that a text is divided into, without bytes and special symbols, and their scores."""
        library = self._processor
        special = (library.is_byte, library.is_unknown, library.is_control, library.is_unused)
        ids = (one for one in range(library.get_piece_size()) if not any(test(one) for test in special))
        return {library.id_to_piece(one): library.get_score(one) for one in ids}

    @functools.cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, text: str) -> list[str]:
        """The pieces of a line; a part that the library would not restore exactly is spelt in bytes."""
        parts = text.split(SPACE)
        between = itertools.chain.from_iterable([*_spelt(SPACE.encode()), *self._pieces(part)] for part in parts[1:])
        return [*self._pieces(parts[0]), *between]

    def _pieces(self, text: str) -> list[str]:
        if _SURROGATE.search(text):  # no UTF-8, which the library takes
            return _spelt(to_bytes(text))
        pieces: list[str] = self._processor.encode(text, out_type=str)
        exact = EOS not in pieces and _UNKNOWN not in pieces and decode(pieces) == text
        return pieces if exact else _spelt(to_bytes(text))


def load(folder: Path, name: str = FILE) -> Subwords:
    """The model of a run folder; raises UserError where it is missing or damaged, or sentencepiece is not installed."""
    return Subwords(read_bytes(folder / name, "restore the file of the run"))


def decode(pieces: Sequence[str]) -> str:
    return from_bytes(b"".join(map(piece_bytes, pieces)))


def train(lines: Iterable[str], options: SubwordOptions) -> Subwords:
    """Find subwords in lines of text without their breaks; on one thread, so that the result is reproducible.

    Raises UserError where sentencepiece is not installed, or the size does not fit the text.
    """
    written = io.BytesIO()
    library = optional("sentencepiece", NEEDS)
    try:
        library.SentencePieceTrainer.train(
            sentence_iterator=(line for line in lines if line.strip()),
            model_writer=written,
            model_type=options.kind,
            vocab_size=options.size,
            character_coverage=options.coverage,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            byte_fallback=True,
            unk_piece=_UNKNOWN,
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            num_threads=1,
            max_sentence_length=_LONGEST,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UserError(
            f"data.subwords.size = {options.size} with kind = {options.kind!r}: the subwords cannot be found "
            f"({reason}); choose another size, or a lower coverage"
        ) from None
    return Subwords(written.getvalue())


def _spelt(data: bytes) -> list[str]:
    return [f"<0x{value:02X}>" for value in data]
