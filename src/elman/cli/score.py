"""elman score: log-probability and surprisal of tokens, words, regions or sentences."""

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from elman.cli import score_rows, states, streaming, texts
from elman.cli.adaptation import OnlineOptions
from elman.cli.groups import Machine, UnknownOptions
from elman.cli.mixing import MixtureOptions, read_ngram
from elman.cli.options import OutText, Positive, TextFile, TextRunFolder, file_to_write, given, group, refuse
from elman.cli.scoring import By, Scoring
from elman.cli.stimuli import kept_items, say_unknown
from elman.cli.temperature import TemperatureOptions
from elman.data.stimuli import Stimulus, divided, lines_as_stimuli, read_table
from elman.data.text.lacking import Tally
from elman.data.text.reading import Sentence, TextReader
from elman.data.text.shards import WHOLE_TEXT
from elman.errors import UserError, notice

if TYPE_CHECKING:
    from elman.evaluation.scoring import Sentences, Unknown
    from elman.tasks.text.model import TextModel

FileOption = Annotated[Path | None, Parameter(metavar="FILE")]
WrittenFile = Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)]


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

    def read(self, file: str, loaded: "TextModel") -> list[Stimulus] | None:
        """The sentences of a table, or of a text with regions; None for other texts."""
        name = texts.shown_name(file)
        if self.regions is None and file != "-":
            _ask_for_regions(file, name)
        suffix = Path(file).suffix
        if self.column is None and suffix in (".tsv", ".csv", ".json", ".jsonl"):
            other = "its marks too" if "json" in suffix else "--column NAME reads one column of a table"
            print(f"{name} is read as a text; {other}", file=sys.stderr)
        if self.column is None and self.regions is None:
            return None

        if self.column is not None:
            found = read_table(texts.read_text(file, loaded.options), name, self.column)
        else:
            found = lines_as_stimuli(texts.read_lines(file, loaded.options))
        return found if self.regions is None else [divided(one, self.regions, name, loaded.options) for one in found]


def _ask_for_regions(file: str, name: str) -> None:
    """A notice where most of the first lines of a file have bars between their words."""
    with contextlib.suppress(OSError), Path(file).open(encoding="utf-8", errors="replace") as lines:
        first = [line.split() for line in itertools.islice(lines, 50)]
        if 2 * sum("|" in words for words in first) > max(2, len(first)):
            notice(f'{name}: the bars | are read as words; if they divide regions, add --regions "|"')


@group("Words", 3)
class WordOptions:
    """How the words of models of subwords are divided, and what masked models are asked.

    Attributes:
        blanks: the blank between two words belongs to the word before it, whose end it is, or to the word after it, in
            whose first piece it is (default: before, of models of transformers after). Sums of sentences do not change.
        stride: of models of transformers: tokens by which the windows of a longer sentence than the context advance
            (default: half of the context).
        pll: of masked models of transformers: predict a token from all others, or not from those after it in its word.
    """

    blanks: Literal["before", "after"] | None = None
    stride: Positive | None = None
    pll: Literal["within_word_l2r", "original"] | None = None

    def apply(self, loaded: "TextModel", by: By) -> bool:
        """Set the rule of a masked model; whether blanks belong to the word before them."""
        for name in ("stride", "pll"):
            if (value := getattr(self, name)) is not None:
                if getattr(loaded, "masked", None) is not (name == "pll"):
                    kind = "masked" if name == "pll" else "causal"
                    raise UserError(f"--{name} belongs to {kind} models of transformers; leave it out")
                setattr(loaded, name, value)
        if loaded.spaces and not loaded.word_ends and self.blanks is None and by in ("word", "region"):
            notice("the blank between words counts for the word after it; --blanks before counts it as a word's end")
        if self.blanks == "before" and getattr(loaded, "masked", False):
            raise UserError("--blanks before: masked models have no ends of words; leave it out")
        return loaded.word_ends if self.blanks is None else self.blanks == "before"


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
    words: WordOptions = WordOptions(),
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
        run: a run on text, an n-gram model (.arpa, .arpa.gz), or a model of transformers: hf://NAME or its folder
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
    from elman.tasks.text.run import TextRun

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
    loaded = machine.open_model(run)
    own = loaded if isinstance(loaded, TextRun) else None
    if own is None:
        others = [*given(temperature), *(["--mix"] if mixture.mix else []), *(["--adapt"] if adaptation.adapt else [])]
        refuse(others, "belongs to runs of elman; leave it out")
    else:
        temperature.join(own)
        mixture.join(own)
    by_ends = words.apply(loaded, by)
    beside = None if ngram_column is None else read_ngram(ngram_column)
    texts.write_any_text()
    saved = None if load_state is None or own is None else states.load(load_state, own)
    name = texts.shown_name(file)
    reader = reading.reader(loaded, name, unknown)
    items = stimuli.read(file, loaded)
    if unknown.unknown == "exclude-items":
        items = _of_known_items(items, reading.as_is, loaded, name)
    lacking = list[list[str]]()
    with streaming.reading(f"scoring {name}", out) as advance, streaming.output(out) as target:
        source = None if items is not None else texts.Text(file, loaded.options, advance)
        part = WHOLE_TEXT if source is None else shards.part(source, loaded, reading.reader(loaded, name, unknown))

        def read(by: TextReader) -> Iterator[Sentence]:
            if source is None:
                return _noted(texts.whole_sentences(items or [], by, name), lacking)
            return streaming.sentences(source, part, by)

        text, treatment = _treatment(unknown, file, read, loaded, reader)
        stream = adaptation.stream(own, saved, text.model) if adaptation.adapt and own is not None else None
        scoring = Scoring(
            loaded, treatment, items, stimuli.spill_over or 0, name, beside, part.first, word_ends=by_ends
        )
        batch_size = 1 if file == "-" else streaming.BATCH
        rows = scoring.rows(by, text, stream, document=document, batch_size=batch_size)
        scoring.keep = html is not None
        if as_json or format == "jsonl":
            score_rows.write_jsonl(rows, flush=file == "-", out=target)
        else:
            score_rows.write_tsv(rows, flush=file == "-", out=target, header=part.first == 1)
    texts.report(reader)
    say_unknown(items or [], lacking)
    if ngram_column is not None:
        print(f"{ngram_column}: {scoring.unseen:,} of {scoring.words:,} words are not in it", file=sys.stderr)
    if html is not None:
        from elman.analysis.by_word import write_reading_page

        write_reading_page(html, scoring.kept, loaded.title, texts.shown_name(file))
        print(html, file=sys.stderr)
    if stream is not None and save_state is not None and own is not None:
        states.save(save_state, own, stream.state, stream.unread, stream, adaptation.statistics_tokens)


def _of_known_items(items: list[Stimulus] | None, as_is: bool, loaded: "TextModel", name: str) -> list[Stimulus]:
    """The sentences of a table whose items have no unknown word, and a notice of the unknown words by condition."""
    if items is None:
        raise UserError("--unknown exclude-items belongs to tables and regions; add --column or --regions")
    reader = loaded.reader(name, as_is=as_is, leave_out=True)
    lacking = [reader.complete(one.text, one.line).lacking for one in items]
    say_unknown(items, lacking)
    return [items[index] for index in kept_items(items, lacking)]


def _noted(sentences: Iterable[Sentence], lacking: list[list[str]]) -> Iterator[Sentence]:
    """The sentences, and to a list what is unknown of each."""
    lacking.clear()
    for sentence in sentences:
        lacking.append(sentence.lacking)
        yield sentence


def _treatment(
    options: UnknownOptions,
    file: str,
    read: Callable[[TextReader], Iterable[Sentence]],
    loaded: "TextModel",
    reader: TextReader,
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
    return loaded.as_read(sentences), Unknown(treatment=options.treatment, types=types or 1)
