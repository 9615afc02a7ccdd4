"""How the commands on n-gram models read a text, and the rows of what they found."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from elman.cli import score_rows, texts
from elman.cli.options import given, group, refuse
from elman.config.text import TextOptions
from elman.data.text.passages import passages
from elman.data.text.tokeniser import fold
from elman.data.text.utf8 import Line
from elman.data.text.vocabulary import EOS
from elman.errors import UserError
from elman.evaluation.ngram.model import BEGIN, END, NGramModel
from elman.tasks.hub import fetched

if TYPE_CHECKING:
    from elman.evaluation.ngram.text import Scored, Tally
    from elman.tasks.text.run import TextRun


@group("Text", 2)
class ReadOptions:
    """How a text becomes words.

    Attributes:
        like: read the text as this run reads it, with its vocabulary.
        tokenisation: words (split at white space, as they stand; the default), raw text, or characters.
        lowercase: fold capitals.
    """

    like: Annotated[Path | None, Parameter(metavar="RUN")] = None
    tokenisation: Literal["words", "raw", "characters"] | None = None
    lowercase: bool = False

    def options(self, **others: Any) -> TextOptions:
        """The rules; raises UserError where a run gives them."""
        self.check()
        return TextOptions(tokenisation=self.tokenisation or "words", lowercase=self.lowercase, **others)

    def check(self) -> None:
        """Raises UserError where options stand beside --like."""
        if self.like is not None:
            refuse((name for name in given(self) if name != "--like"), "is given by the run of --like; leave it out")

    def run(self) -> "TextRun | None":
        """The run that reads the text, if there is one."""
        from elman.tasks.text.run import TextRun

        self.check()
        return None if self.like is None else TextRun(fetched(self.like))


def sentences(text: str, reading: ReadOptions, run: "TextRun | None", model: NGramModel) -> Iterator[list[str]]:
    """The words of each sentence as the model reads them, `<eos>` at its end.

    Raises UserError where one is `<s>` or `</s>`, which would be read as another beginning or end.
    """
    for number, words in _sentences(text, reading, run, model):
        if (mark := next((word for word in words if word in (BEGIN, END)), None)) is not None:
            raise UserError(
                f"{texts.shown_name(text)}:{number}: the text has the word {mark}, which n-gram models keep for"
                " sentences; take it out: every line is a sentence as it is"
            )
        yield words


def _sentences(
    text: str, reading: ReadOptions, run: "TextRun | None", model: NGramModel
) -> Iterator[tuple[int, list[str]]]:
    """The words of each sentence, and the number of its last line."""
    if run is not None:
        reader = run.reader(texts.shown_name(text))
        size = run.vocabulary.ids
        for sentence in reader.sentences(texts.stream_lines(text, run.options)):
            yield sentence.line, [token if token in size else "<unk>" for token in sentence.read]
        texts.report(reader)
        return

    options = reading.options()
    if options.tokenisation == "words":
        for at, line in enumerate(texts.stream_lines(text, options), start=1):
            words = model.split(line)
            yield at, [*(fold(words) if options.lowercase else words), EOS]
        return
    lines = (Line(line, True, at) for at, line in enumerate(texts.stream_lines(text, options), start=1))
    yield from ((passage.line.number, passage.words) for passage in passages(lines, options))


def rows_of(scored: "Iterable[Scored]", tally: "Tally", by: str) -> Iterator[score_rows.Row]:
    """A row for every sentence or word, each sentence added to the sums as it is read."""
    from elman.evaluation.scoring import surprisal

    for place, sentence in enumerate(scored, start=1):
        tally.add(sentence)
        bits = surprisal(sentence.log_prob)
        if by == "sentence":
            yield {
                "sentence": place,
                "tokens": len(sentence.words),
                "unknown": int(sentence.unknown.sum()),
                "log_prob": _cell(sentence.log_prob.sum()),
                "surprisal": _cell(bits.sum()),
                "text": " ".join(word for word in sentence.words if word != "<eos>"),
            }
            continue
        rows = zip(sentence.words, sentence.log_prob, bits, sentence.length, sentence.unknown, strict=True)
        for position, (word, log_prob, surprise, length, unknown) in enumerate(rows, start=1):
            yield {
                "sentence": place,
                "position": position,
                "word": word,
                "log_prob": _cell(log_prob),
                "surprisal": _cell(surprise),
                "length": int(length),
                "unknown": int(unknown),
            }


def _cell(value: float) -> float | None:
    """A number of a row; an empty cell where a word has no probability."""
    return score_rows.rounded(value) if abs(value) < float("inf") else None
