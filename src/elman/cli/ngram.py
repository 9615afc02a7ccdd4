"""elman ngram: n-gram models as ARPA files, estimated, described, used on texts, and made smaller."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from msgspec import Meta

from elman.cli import progress, score_rows, show, texts
from elman.cli.help import family
from elman.cli.mixing import read_ngram
from elman.cli.ngram_text import ReadOptions, rows_of, sentences
from elman.cli.options import AsJson, NonNegative, Positive, TextFile, file_to_write, given, group, number, refuse
from elman.errors import UserError, counted, notice
from elman.evaluation.ngram import pruning
from elman.evaluation.ngram.arpa_writing import write_arpa
from elman.evaluation.ngram.model import NGramModel
from elman.evaluation.ngram.model import train as estimate
from elman.evaluation.ngram.table import BackoffTable

if TYPE_CHECKING:
    from elman.data.text.corpus import TextCorpus

app = family("ngram", "Models are ARPA files, as of SRILM and KenLM too; a name that ends in .gz is compressed.")

Model = Annotated[Path, Parameter(help="an n-gram model, an ARPA file", metavar="MODEL")]
Out = Annotated[Path, Parameter(metavar="FILE", validator=file_to_write)]
Entropy = Annotated[NonNegative | None, Parameter(metavar="X")]


@group("Vocabulary", 3)
class VocabularyOptions:
    """Which words are known; all, if not said otherwise.

    Attributes:
        min_count: words seen less often are <unk>.
        max_vocabulary: at most this number of words are known, the most frequent ones, <unk> and <eos> included.
    """

    min_count: Positive | None = None
    max_vocabulary: Annotated[int | None, number(int, Meta(ge=3))] = None


@app.command
def train(
    source: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    /,
    *,
    out: Out,
    order: Positive = 5,
    prune: Annotated[tuple[int, ...], number(int, Meta(ge=0), many=True)] = (),
    prune_entropy: Entropy = None,
    stream: bool = False,
    reading: ReadOptions = ReadOptions(),
    vocabulary: VocabularyOptions = VocabularyOptions(),
    as_json: AsJson = False,
) -> None:
    """Estimate a model by modified Kneser-Ney, interpolated, and write it.

    Every line is a sentence between <s> and </s>, as for SRILM and KenLM. With --stream the text is one running
    stream, whose contexts run across <eos>, an ordinary word, as a network reads it and as the baselines of elman do;
    other programs read such a file as text with the word <eos>.

    Args:
        source: a text file, read whole, or a folder or known corpus, whose train split is read (default: the training
            text of --like)
        out: the ARPA file to write
        order: the longest n-gram
        prune: leave out n-grams that occur at most so often, one number for each length from 1 on, never falling,
            the first 0; the last is for all longer ones
        prune_entropy: leave out n-grams without which the perplexity rises by a factor below 1 + X
        stream: one running stream
    """
    if prune and (stream or prune[0] or list(prune) != sorted(prune)):
        if stream:
            raise UserError("--prune counts occurrences within sentences; leave out --stream, or give --prune-entropy")
        raise UserError(f"--prune {' '.join(map(str, prune))}: give 0 for single words, and then no falling number")
    corpus = _corpus(source, reading, vocabulary)
    split = corpus.split("train")
    if not stream and corpus.vocabulary.eos is None:
        notice(f"{corpus.source} has no <eos>; it is read as one running stream")
        stream = True
    model = estimate(split.tokens, corpus.vocabulary, order, stream=stream, thresholds=prune)
    if model.table.order < order and not prune:
        notice(f"no sentence of {corpus.source} has {order} words; the order is {model.table.order}")
    model = _smaller(model, None, prune_entropy)
    facts = {"text": corpus.source, "tokens": len(split.tokens)}
    _write(model, out, facts, as_json=as_json)


def _corpus(source: str | None, reading: ReadOptions, vocabulary: VocabularyOptions) -> "TextCorpus":
    from elman.data.text.corpus import open_corpus

    run = reading.run()
    if run is None:
        if source is None:
            raise UserError("elman ngram train needs a text, or --like with a run, whose training text is read")
        chosen = {name: value for name, value in msgspec.to_builtins(vocabulary).items() if value is not None}
        options = reading.options(valid_fraction=0.0, test_fraction=0.0, **chosen)
        with progress.preparing() as advance:
            return open_corpus(source, options, partial=True, progress=advance)
    refuse(given(vocabulary), "is given by the run of --like; leave it out")
    if source is None:
        return run.corpus()
    options = msgspec.structs.replace(run.options, valid_fraction=0.0, test_fraction=0.0, train_tokens=None)
    pieces = run.tokeniser.subwords
    with progress.preparing() as advance:
        return open_corpus(source, options, vocabulary=run.vocabulary, subwords=pieces, progress=advance)


@app.command
def export(
    model: Model,
    /,
    *,
    out: Out,
    order: Positive | None = None,
    prune_entropy: Entropy = None,
    as_json: AsJson = False,
) -> None:
    """Read a model, make it smaller if that is asked for, and write it.

    Args:
        out: the ARPA file to write
        order: leave out longer n-grams; of a Kneser-Ney model a poor model is left
        prune_entropy: leave out n-grams without which the perplexity rises by a factor below 1 + X
    """
    read = read_ngram(model)
    if order is not None and order > read.table.order:
        raise UserError(f"--order {order}: {model} has n-grams of {read.table.order} words at most")
    _write(_smaller(read, order, prune_entropy), out, {"model": str(model)}, as_json=as_json)


def _smaller(model: NGramModel, order: int | None, prune_entropy: float | None) -> NGramModel:
    import dataclasses

    table = model.table if order is None else pruning.cut(model.table, order)
    if prune_entropy is not None:
        table = pruning.prune(table, prune_entropy)
    return dataclasses.replace(model, table=table)


def _write(model: NGramModel, out: Path, facts: dict[str, Any], *, as_json: bool) -> None:
    with progress.counting(f"writing {out.name}") as advance:
        write_arpa(model, out, advance)
    counts = _counts(model.table)
    sizes = ", ".join(f"{length}: {count:,}" for length, count in enumerate(counts, start=1))
    facts |= {"out": str(out), "order": model.table.order, "ngrams": counts}
    show.print_result(as_json, facts, notes=[f"{out}: n-grams by length {sizes}"])


def _counts(table: BackoffTable) -> list[int]:
    return [len(level.keys) for level in table.levels]


@app.command
def info(model: Model, /, *, as_json: AsJson = False) -> None:
    """What is in a model: order, n-grams, vocabulary, and whether it reads sentences or one running stream."""
    read = read_ngram(model)
    marks = {"<s>", "</s>", "<eos>", "<unk>"}
    facts = {
        "model": str(model),
        "bytes": model.stat().st_size,
        "order": read.table.order,
        "ngrams": _counts(read.table),
        "words": len(set(read.words) - marks),
        "marks": sorted(marks & set(read.words)),
        "unk": read.unk is not None,
        "reads": "one running stream" if read.table.markers is None else "sentence by sentence",
    }
    rows = [["order", f"{read.table.order}"]]
    rows += [[f"{length}-grams", f"{count:,}"] for length, count in enumerate(_counts(read.table), start=1)]
    rows += [
        ["words", f"{facts['words']:,}, and {' '.join(sorted(marks & set(read.words)))}"],
        ["reads", str(facts["reads"])],
        ["unknown words", "have the probability of <unk>" if read.unk is not None else "have no probability"],
    ]
    show.print_result(as_json, facts, (str(model), ["", "value"], rows))


@app.command
def score(
    model: Model,
    text: TextFile,
    /,
    *,
    by: Literal["text", "sentence", "word"] = "text",
    reading: ReadOptions = ReadOptions(),
    as_json: AsJson = False,
) -> None:
    """Log-probability (natural) and perplexity of a text, unknown words counted and not counted.

    Every line is a sentence, and its end is predicted. With --by sentence or word there is a row for each, and the
    sums are printed on standard error.

    Args:
        text: a UTF-8 text; - is standard input
        by: the sums of the text, or one row per sentence or per word, with the length of the n-gram that was found
        as_json: the sums as JSON, with --by rows as JSON lines
    """
    from elman.evaluation.ngram.text import Tally, score_sentences

    texts.write_any_text()
    run = reading.run()
    read = read_ngram(model)
    tally = Tally()
    scored = score_sentences(read, sentences(text, reading, run, read))
    if by == "text":
        for sentence in scored:
            tally.add(sentence)
    else:
        write = score_rows.write_jsonl if as_json else score_rows.write_tsv
        write(rows_of(scored, tally, by))
    totals = tally.totals
    facts = {"model": str(model), "text": texts.shown_name(text), **msgspec.to_builtins(totals)}
    rows = [[name.replace("_", " "), _shown(value)] for name, value in msgspec.to_builtins(totals).items()]
    if by == "text":
        show.print_result(as_json, facts, (f"{model}, {facts['text']}", ["", "value"], rows))
    else:
        print("; ".join(f"{name} {value}" for name, value in rows), file=sys.stderr)
    if totals.impossible:
        verb = "has" if totals.impossible == 1 else "have"
        why = "since the model has no <unk>" if read.unk is None else "which is 0 in the model"
        notice(f"{counted(totals.impossible, 'word')} {verb} no probability, {why}; no sum includes them")


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}"
