"""The rows of elman score, sentence by sentence, as the text is read."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from elman.cli import score_rows
from elman.cli.score_rows import Row

if TYPE_CHECKING:
    from elman.analysis.by_word import WordRow
    from elman.data.stimuli import Stimulus
    from elman.data.text.reading import Sentence
    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.ngram.model import NGramModel
    from elman.evaluation.ngram.text import WordSurprisal
    from elman.evaluation.scoring import Sentences, Unknown
    from elman.tasks.text.model import TextModel

By: TypeAlias = Literal["token", "word", "region", "sentence"]


class Scoring:
    """The rows of a text, whose sentences are numbered from `first`; `kept`: the rows of its words, if asked for."""

    def __init__(
        self,
        loaded: "TextModel",
        treatment: "Unknown",
        stimuli: "Sequence[Stimulus] | None",
        lags: int,
        name: str,
        beside: "NGramModel | None" = None,
        first: int = 1,
        *,
        word_ends: bool = True,
    ) -> None:
        self.word_ends = word_ends
        self.first = first
        self.loaded, self.treatment, self.stimuli, self.lags, self.name = loaded, treatment, stimuli, lags, name
        self.keep, self.kept = False, list["WordRow"]()
        self.beside, self.words, self.unseen = beside, 0, 0

    def rows(
        self, by: By, text: "Sentences", stream: "AdaptiveStream | None", *, document: bool, batch_size: int
    ) -> Iterator[Row]:
        """All rows, in the order of the text."""
        if by == "word":
            scored = self._predicted(text, stream, document=document, batch_size=batch_size)
        elif by == "region" and self.word_ends and self.loaded.spaces:
            scored = self._with_word_ends(self._predicted(text, stream, document=document, batch_size=batch_size))
        elif stream is not None:
            scored = text.asked(stream.score_all)
        else:
            scored = self.loaded.score_text(text, document=document, batch_size=batch_size)
        for number, (sentence, found) in enumerate(scored, start=self.first):
            rows = self._rows(by, number, sentence, found)
            if self.lags:
                rows = score_rows.with_lags(list(rows), self.lags)
            carried = {} if self.stimuli is None else self.stimuli[number - 1].carried
            yield from (score_rows.carrying(carried, row) for row in rows)

    def _predicted(
        self, text: "Sentences", stream: "AdaptiveStream | None", *, document: bool, batch_size: int
    ) -> Iterable[Any]:
        if stream is not None:
            return text.asked(functools.partial(stream.predict_all, spaces=self.loaded.spaces))
        return self.loaded.predict_text(text, document=document, batch_size=batch_size)

    def _with_word_ends(self, predicted: Iterable[Any]) -> Iterator[Any]:
        from elman.evaluation.word_ends import with_word_ends

        for sentence, found in predicted:
            yield sentence, with_word_ends(found.log_prob, found.space, sentence, self.loaded.tokeniser)

    def _rows(self, by: By, number: int, sentence: "Sentence", found: Any) -> Iterable[Row]:
        if by == "word":
            return self._word_rows(number, sentence, found)
        if by == "token":
            return score_rows.token_rows(number, sentence, found, self.treatment)
        if by == "sentence":
            tokeniser = self.loaded.tokeniser
            return [score_rows.sentence_row(number, sentence, found, self.treatment, tokeniser)]
        assert self.stimuli is not None
        stimulus = self.stimuli[number - 1]
        places = self._places(number, sentence)
        return score_rows.region_rows(number, sentence, found, self.treatment, stimulus, places)

    def _places(self, number: int, sentence: "Sentence") -> list[int]:
        from elman.data.stimuli import regions_of

        assert self.stimuli is not None
        stimulus = self.stimuli[number - 1]
        return regions_of(sentence, stimulus, self.loaded.tokeniser, f"{self.name}:{stimulus.line}")

    def _word_rows(self, number: int, sentence: "Sentence", found: Any) -> Iterator[Row]:
        from elman.analysis.by_word import word_rows
        from elman.evaluation.ngram.text import word_surprisals

        divided = self.stimuli is not None and bool(self.stimuli[number - 1].regions)
        places = self._places(number, sentence) if divided else []
        begins = itertools.compress(itertools.count(), sentence.starts)
        counted: Iterator[WordSurprisal | None] = itertools.repeat(None)
        if self.beside is not None:
            exclude = self.treatment.treatment == "exclude"
            counted = iter(word_surprisals(self.beside, sentence, self.loaded.tokeniser, exclude=exclude))
        rows = word_rows(self.loaded, number, sentence, found, self.treatment, word_ends=self.word_ends)
        for at, row, by_counts in zip(begins, rows, counted, strict=False):
            if self.keep:
                self.kept.append(row)
            region = {"region": places[at] + 1} if divided else {}
            column = {}
            if by_counts is not None:
                self.words, self.unseen = self.words + 1, self.unseen + by_counts.unknown
                column["ngram_surprisal"] = by_counts.bits
            yield {"sentence": row.sentence, "position": row.position, **region, **msgspec.to_builtins(row), **column}
