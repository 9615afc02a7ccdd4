"""A text as a run reads it, and as the page shows it."""

import codecs
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elman.data.text.portable import is_ended
from elman.data.text.reading import Sentence
from elman.data.text.subwords import piece_bytes
from elman.data.text.utf8 import readable
from elman.data.text.vocabulary import EOS
from elman.evaluation.word_ends import with_word_ends
from elman.serve.answers import Mark
from elman.serve.prefixes import Scored, Symbols
from elman.tasks.text.run import TextRun


class Text(NamedTuple):
    """A text as a run reads it.

    Attributes:
        symbols: what is read and predicted, [n]; the end of a line that is still being written is left out.
        tokens: as the vocabulary has them, unknown ones too, [n].
        sentences: as they stand in the text.
        notes: what the vocabulary lacks.
    """

    symbols: Symbols
    tokens: list[str]
    sentences: list[Sentence]
    notes: list[str]

    @property
    def length(self) -> int:
        return len(self.tokens)


def read_text(run: TextRun, text: str, *, known_only: bool = False) -> Text:
    """Read a text; symbols that a vocabulary without `<unk>` lacks are left out."""
    reader = run.reader("the text", leave_out=True)
    found = run.reading(text, reader, known_only=known_only)
    items = list(found.items)
    tokens = [token for sentence, _ in items for token in sentence.read]
    ids = [int(one) for sentence, _ in items for one in sentence.ids]
    inputs = [int(one) for _, part in items for one in part]
    length = len(tokens) - (bool(tokens) and tokens[-1] == EOS and not is_ended(text, run.options))
    size = len(run.vocabulary)
    keys = [one if one < size else token for one, token in zip(inputs[:length], tokens, strict=False)]
    symbols = Symbols(found.model, inputs[:length], ids[:length], list(keys))
    return Text(symbols, tokens[:length], [sentence for sentence, _ in items], reader.report())


def marks_of(run: TextRun, text: Text, scored: Sequence[Scored]) -> list[Mark]:
    found, at = list[Mark](), 0
    for shown, tokens, begins, unknown in _shown(text.sentences, in_bytes=run.options.open_vocabulary):
        if at + tokens > text.length:
            break
        part = scored[at : at + tokens]
        found.append(
            Mark(
                text=shown if shown != EOS else "",
                at=at if part else None,
                tokens=tokens,
                begins=begins,
                bits=sum(one.bits for one in part) if part else None,
                entropy=part[0].entropy if part else None,
                rank=part[0].rank if part else None,
                unknown=unknown,
                ends=shown == EOS,
            )
        )
        at += tokens
    return found


def _shown(sentences: Sequence[Sentence], *, in_bytes: bool) -> Iterator[tuple[str, int, bool, bool]]:
    """What is shown in one piece, its tokens, whether it begins a word, and is unknown; bytes make up characters."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    tokens, begun = 0, False
    for sentence in sentences:
        rows = zip(sentence.pieces, sentence.starts, sentence.unknown, strict=True)
        for place, (piece, begins, unknown) in enumerate(rows):
            ends = piece == EOS
            tokens, begun = tokens + (place not in sentence.left_out), begun or begins or (ends and in_bytes)
            if ends:
                decoder.reset()
            if shown := piece if ends or not in_bytes else decoder.decode(piece_bytes(piece)):
                yield shown, tokens, begun, unknown
                tokens, begun = 0, False
    if tokens:
        yield decoder.decode(b"", final=True) or "\ufffd", tokens, begun, False


def token_shown(run: TextRun, token: str) -> str:
    """A token as the page shows it by itself."""
    if not run.options.open_vocabulary or token == EOS:
        return token
    return readable(piece_bytes(token).decode("utf-8", "backslashreplace"))


def words_of(run: TextRun, text: Text, scored: Sequence[Scored]) -> Iterator[tuple[str, float | None, bool]]:
    """The words of a text, without `<eos>`, their bits, None where nothing of one is read, and which are unknown."""
    at = 0
    for sentence in text.sentences:
        read = scored[at : at + len(sentence.read)]
        bits = with_word_ends(
            np.array([one.bits for one in read]), np.array([one.space for one in read]), sentence, run.tokeniser
        )
        for word in sentence.words(run.tokeniser):
            part = bits[word.read]
            if word.text != EOS:
                yield word.text, float(part.sum()) if len(part) else None, word.unknown
        at += len(sentence.read)
