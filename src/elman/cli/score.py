"""elman score: log-probability and surprisal of tokens, words, regions or sentences."""

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from elman.cli import score_rows, states, streaming, texts
from elman.cli.adaptation import OnlineOptions
from elman.cli.groups import Machine, UnknownOptions
from elman.cli.mixing import MixtureOptions, read_ngram
from elman.cli.options import OutText, Positive, TextFile, TextRunFolder, file_to_write, given, group, refuse
from elman.cli.score_rows import Row
from elman.cli.temperature import TemperatureOptions
from elman.data.text.shards import WHOLE
from elman.data.text.tally import Tally
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.analysis.by_word import WordRow
    from elman.data.stimuli import Stimulus
    from elman.data.text.reading import Sentence, TextReader
    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.ngram.by_word import WordSurprisal
    from elman.evaluation.ngram.model import NGramModel
    from elman.evaluation.scoring import Sentences, Unknown
    from elman.tasks.text.run import TextRun

FileOption = Annotated[Path | None, Parameter(metavar="FILE")]
WrittenFile = Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)]

By = Literal["token", "word", "region", "sentence"]


@group("Stimuli", 2)
class StimulusOptions:
    """Tables of sentences, and sentences in regions.

    Attributes:
        column: FILE is a table with a header; this column is the text, and the others are carried into every row.
        regions: the mark that divides a sentence into regions, such as "|"; every line is a sentence.
        spill_over: with --by word or region: add the surprisals of as many words or regions before it.
    """

    column: str | None = None
    regions: str | None = None
    spill_over: Positive | None = None

    def check(self, by: By, *, document: bool, adapt: bool) -> None:
        """Raises UserError where the options do not fit together."""
        if by == "region" and self.regions is None:
            raise UserError('--by region needs --regions with the mark between regions, such as --regions "|"')
        if self.spill_over is not None and by not in ("word", "region"):
            raise UserError("--spill-over belongs to --by word and --by region; choose one of them")
        if self.regions is not None and not self.regions.strip():
            raise UserError("--regions must be a mark that is no white space, such as |")
        if self.column is not None and (document or adapt):
            name = "--document" if document else "--adapt"
            raise UserError(f"{name}: the sentences of a table are independent of each other; leave {name} out")

    def read(self, file: str, loaded: "TextRun") -> "list[Stimulus] | None":
        """The sentences of a table, or of a text with regions; None for other texts."""
        name = texts.shown_name(file)
        if self.column is None and Path(file).suffix in (".tsv", ".csv"):
            print(f"{name} is read as a text; --column NAME reads one column of a table", file=sys.stderr)
        if self.column is None and self.regions is None:
            return None
        from elman.data.stimuli import divided, lines_as_stimuli, read_table

        if self.column is not None:
            found = read_table(texts.read_text(file, loaded.options), name, self.column)
        else:
            found = lines_as_stimuli(texts.read_lines(file, loaded.options))
        return found if self.regions is None else [divided(one, self.regions, name) for one in found]


def score(
    run: TextRunFolder,
    file: TextFile,
    /,
    *,
    by: By = "token",
    document: bool = False,
    format: Literal["tsv", "jsonl"] = "tsv",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    html: WrittenFile = None,
    stimuli: StimulusOptions = StimulusOptions(),
    reading: texts.ReadingOptions = texts.ReadingOptions(),
    unknown: UnknownOptions = UnknownOptions(),
    temperature: TemperatureOptions = TemperatureOptions(),
    adaptation: OnlineOptions = OnlineOptions(),
    mixture: MixtureOptions = MixtureOptions(),
    ngram_column: FileOption = None,
    load_state: FileOption = None,
    save_state: WrittenFile = None,
    out: OutText = None,
    shards: streaming.ShardOptions = streaming.ShardOptions(),
    machine: Machine = Machine(),
) -> None:
    """Log-probability (natural) and surprisal (bits) of a text, sentence by sentence.

    Sentences are independent of each other unless --document carries the state from one to the next. With --adapt the
    model learns from the text, read as one document. Standard input is scored line by line as it arrives. Memory does
    not grow with the text, which may be compressed (.gz, .zst).

    Args:
        file: a UTF-8 text; - is standard input
        out: write the rows to this file, completely or not at all (default: standard output)
        by: one row per token, per word (with entropy, rank, frequency), per region or per sentence
        document: the sentences are one text: carry the state
        format: tab-separated or JSON lines
        as_json: the same as --format jsonl
        ngram_column: with --by word: a column ngram_surprisal, in bits, of the words under this ARPA model alone
        html: with --by word: also write a page with a heat map of the surprisals
        load_state: with --adapt: continue where --save-state left a text
        save_state: with --adapt: write state and adapted weights at the end
    """
    adaptation.check()
    if not adaptation.adapt:
        files = {"--load-state": load_state, "--save-state": save_state}
        refuse([name for name, value in files.items() if value is not None], "belongs to --adapt; add it")
    else:
        mixture.refuse_with(["--adapt"])
        refuse(given(temperature), "does not belong to --adapt; leave one of the two out")
    unknown.check()
    if ngram_column is not None and by != "word":
        raise UserError("--ngram-column adds a column to words; add --by word")
    stimuli.check(by, document=document, adapt=adaptation.adapt)
    if shards.place is not None:
        whole = {"--document": document, "--adapt": adaptation.adapt, "--html": html, "--column": stimuli.column}
        whole |= {"--regions": stimuli.regions}
        refuse([one for one, value in whole.items() if value], "is for whole texts; leave it out, or --shard")
        if unknown.unknown == "spread" and unknown.unknown_types is None:
            raise UserError("--shard: --unknown spread counts the types of the whole text; give --unknown-types")
    if html is not None and by != "word":
        raise UserError("--html shows words; add --by word")
    loaded = machine.open_text(run)
    temperature.join(loaded)
    mixture.join(loaded)
    beside = None if ngram_column is None else read_ngram(ngram_column)
    texts.write_any_text()
    saved = None if load_state is None else states.load(load_state, loaded)
    name = texts.shown_name(file)
    reader = reading.reader(loaded, name, unknown)
    items = stimuli.read(file, loaded)
    with streaming.reading(f"scoring {name}", out) as advance, streaming.output(out) as target:
        source = None if items is not None else texts.Text(file, loaded.options, advance)
        part = WHOLE if source is None else shards.part(source, loaded, reading.reader(loaded, name, unknown))

        def read(by: "TextReader") -> "Iterator[Sentence]":
            if source is None:
                return texts.whole_sentences(items or [], by, name)
            return streaming.sentences(source, part, by)

        text, treatment = _treatment(unknown, file, read, loaded, reader)
        stream = adaptation.stream(loaded, saved, text.model) if adaptation.adapt else None
        scoring = Scoring(loaded, treatment, items, stimuli.spill_over or 0, name, beside, part.first)
        batch_size = 1 if file == "-" else streaming.BATCH
        rows = scoring.rows(by, text, stream, document=document, batch_size=batch_size)
        scoring.keep = html is not None
        if as_json or format == "jsonl":
            score_rows.write_jsonl(rows, flush=file == "-", out=target)
        else:
            score_rows.write_tsv(rows, flush=file == "-", out=target, header=part.first == 1)
    texts.report(reader)
    if ngram_column is not None:
        print(f"{ngram_column}: {scoring.unseen:,} of {scoring.words:,} words are not in it", file=sys.stderr)
    if html is not None:
        from elman.analysis.by_word import write_reading_page

        write_reading_page(html, scoring.kept, loaded.recipe.title, texts.shown_name(file))
        print(html, file=sys.stderr)
    if stream is not None and save_state is not None:
        states.save(save_state, loaded, stream.state, stream.unread, stream, adaptation.statistics_tokens)


def _treatment(
    options: UnknownOptions,
    file: str,
    read: "Callable[[TextReader], Iterable[Sentence]]",
    loaded: "TextRun",
    reader: "TextReader",
) -> "tuple[Sentences, Unknown]":
    """The sentences, and how unknown words are scored; by default the unknown types are counted in the text first."""
    from elman.evaluation.scoring import Unknown

    types = options.unknown_types
    sentences = read(reader)
    if types is None and options.unknown == "spread":
        if file == "-":
            print("--unknown spread counts the unknown types in all of standard input first", file=sys.stderr)
            sentences = list(sentences)
            types = len({token for sentence in sentences for token in sentence.lacking})
        else:
            types = len({token for sentence in sentences for token in sentence.lacking})
            reader.tally = Tally()
            sentences = read(reader)
        print(f"unknown types in the text: {types}", file=sys.stderr)
    return loaded.as_read(sentences), Unknown(treatment=options.unknown, types=types or 1)


class Scoring:
    """The rows of a text, whose sentences are numbered from `first`; `kept`: those of its words, if asked for."""

    def __init__(
        self,
        loaded: "TextRun",
        treatment: "Unknown",
        stimuli: "Sequence[Stimulus] | None",
        lags: int,
        name: str,
        beside: "NGramModel | None" = None,
        first: int = 1,
    ) -> None:
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
        elif by == "region" and self.loaded.spaces:
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
        from elman.analysis.by_word import predict_text

        if stream is not None:
            return text.asked(functools.partial(stream.predict_all, spaces=self.loaded.spaces))
        return predict_text(self.loaded, text, document=document, batch_size=batch_size)

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
        return regions_of(sentence, self.stimuli[number - 1], self.loaded.tokeniser, self.name)

    def _word_rows(self, number: int, sentence: "Sentence", found: Any) -> Iterator[Row]:
        from elman.analysis.by_word import word_rows
        from elman.evaluation.ngram.by_word import word_surprisals

        divided = self.stimuli is not None and bool(self.stimuli[number - 1].regions)
        places = self._places(number, sentence) if divided else []
        begins = itertools.compress(itertools.count(), sentence.starts)
        counted: Iterator[WordSurprisal | None] = itertools.repeat(None)
        if self.beside is not None:
            exclude = self.treatment.treatment == "exclude"
            counted = iter(word_surprisals(self.beside, sentence, self.loaded.tokeniser, exclude=exclude))
        rows = word_rows(self.loaded, number, sentence, found, self.treatment)
        for at, row, by_counts in zip(begins, rows, counted, strict=False):
            if self.keep:
                self.kept.append(row)
            region = {"region": places[at] + 1} if divided else {}
            column = {}
            if by_counts is not None:
                self.words, self.unseen = self.words + 1, self.unseen + by_counts.unknown
                column["ngram_surprisal"] = by_counts.bits
            yield {"sentence": row.sentence, "position": row.position, **region, **msgspec.to_builtins(row), **column}
