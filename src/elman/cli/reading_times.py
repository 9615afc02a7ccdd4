"""elman reading-times: what surprisal says of how long people read."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from elman.cli import progress, score_rows, show, texts
from elman.cli.groups import Common
from elman.cli.options import Natural, NonNegative, RunFolders, Strings, drawings, file_to_write, group
from elman.cli.score import WordOptions
from elman.data.reading_times import Floats, ReadingTimes, read_frequencies, read_times
from elman.errors import UserError, counted, notice
from elman.files import write_atomic

if TYPE_CHECKING:
    from elman.analysis.reading_times import Measured, Regression, Term

_File = Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)]
_ADDED = ["model", "in sample", "chi2", "p", "items left out", "95 % interval", "p", "p, Holm"]
_PAIRS = ["A", "B", "B - A", "95 % interval", "p", "p, Holm"]


@group("Times", 2)
class TimesOptions:
    """The table and which of its times are used.

    Attributes:
        times: a table (.tsv, .csv, or between blanks) with a header and a row per word and reader.
        columns: headings that are not recognised, such as time=fdurFP: word, item, condition, sentence, position,
            subject and time.
        shortest: shorter times are left out.
        longest: longer times are left out.
        log: regress the logarithm of the time.
    """

    times: Annotated[str, Parameter(metavar="TABLE")]
    columns: Annotated[Strings, Parameter(metavar="KIND=HEADING")] = ()
    shortest: NonNegative = 100.0
    longest: NonNegative = 3000.0
    log: bool = False

    def read(self) -> ReadingTimes:
        if strange := [one for one in self.columns if "=" not in one]:
            raise UserError(f"--columns {strange[0]}: write KIND=HEADING, such as time=fdurFP")
        given = dict(one.split("=", 1) for one in self.columns)
        return read_times(texts.read_text(self.times), texts.shown_name(self.times), given)


@group("Regression", 3)
class RegressionOptions:
    """What the time is regressed on, beside the surprisal: length, log frequency and position.

    Attributes:
        baseline: models whose surprisal belongs to the baseline, such as an n-gram model.
        frequencies: a list of words and counts (default: the training text of the first run on words).
        spill_over: words before whose surprisal, length and frequency count too.
        random: random intercepts, of the reader, the item, and the word in its text.
        slopes: also a random slope of each reader for the surprisal of the word.
        folds: parts of the items, of which each is left out in turn; 0: none.
        seed: of the parts.
    """

    baseline: Annotated[tuple[Path, ...], Parameter(metavar="MODEL", consume_multiple=1)] = ()
    frequencies: Annotated[str | None, Parameter(metavar="FILE")] = None
    spill_over: Natural = 1
    random: Annotated[tuple[Literal["subject", "item", "word"], ...], Parameter(consume_multiple=1)] = (
        "subject",
        "item",
    )
    slopes: bool = False
    folds: Natural = 10
    seed: Natural = 0


def reading_times(
    runs: RunFolders,
    /,
    *,
    table: TimesOptions,
    regression: RegressionOptions = RegressionOptions(),
    words: WordOptions = WordOptions(),
    context: Literal["sentence", "text"] = "sentence",
    unknown: Literal["exclude", "score"] = "exclude",
    out: _File = None,
    html: _File = None,
    plot: _File = None,
    common: Common = Common(),
) -> None:
    """Regress reading times on surprisal, and compare what models add.

    Mixed-effects models by maximum likelihood (pip install 'elman[reading]'): the coefficients of each model, what it
    adds to the log-likelihood per time of a baseline without it, and of items that were left out, with paired tests.

    Args:
        runs: runs on text, n-gram models (.arpa, .arpa.gz), or models of transformers: hf://NAME or their folders
        context: what is read before a word: its sentence, or all of its text
        unknown: leave out the times of words that a model lacks and of those after them, for all models, or score them
            as <unk>
        out: write the times that are used, with all predictors (.tsv)
        html: write a page
        plot: draw what the models add (.svg or .png); the effects of surprisal into a file beside it (-effects)
    """
    from elman.analysis.reading_times import SURPRISAL, Regression, analyse, choose, lags_of

    plots = [] if plot is None else drawings(plot, "effects")
    if table.log and not table.shortest:
        raise UserError("--log: there is no logarithm of 0; give --shortest above 0")
    read, lags = table.read(), regression.spill_over
    measured = _measured((*runs, *regression.baseline), read, table.times, words, common, context, unknown)
    by_word = lags_of("length", np.array([float(len(one.written)) for one in read.words]), read.words, lags)
    counts, source = _frequencies(regression.frequencies, read, measured)
    if counts is not None:
        by_word |= lags_of("log frequency", np.log(1 + counts), read.words, lags)
    text = np.array([one.text for one in read.words])
    by_word["position"] = (np.arange(len(text)) - np.searchsorted(text, text) + 1).astype(np.float64)
    for path in regression.baseline:
        by_word |= lags_of(f"surprisal of {path}", measured[str(path)].surprisal, read.words, lags)
    surprisals = {str(run): lags_of(SURPRISAL, measured[str(run)].surprisal, read.words, lags) for run in runs}
    needed = [*by_word.values(), *(one for own in surprisals.values() for one in own.values())]
    used, left = choose(read, needed, lags, table.shortest, table.longest)
    reasons = "; ".join(f"{number:,} {reason}" for reason, number in left.items())
    notice(f"{table.times}: {used.sum():,} of {len(used):,} times are used; left out: {reasons or 'none'}")
    if not used.any():
        raise UserError(f"{table.times}: no time is left; see --shortest, --longest, --unknown and --columns")
    at = read.word[used]
    y = np.log(read.time[used]) if table.log else read.time[used]
    base = {name: values[at] for name, values in by_word.items() if np.ptp(values[at]) > 0}
    if constant := [name for name in by_word if name not in base]:
        notice(f"left out of the baseline, since it is the same for all times: {', '.join(constant)}")
    terms = _terms(regression.random, read, used)
    models = {}
    for name, own in surprisals.items():
        mine = {one: values[at] for one, values in own.items()}
        models[name] = Regression({**base, **mine}, [*terms, *_slopes(regression, mine[SURPRISAL], terms)])
    items = [read.words[place].item for place in at]
    with progress.counting("regressions") as advance:
        found, fits = analyse(Regression(base, terms), models, y, items, regression.folds, regression.seed, advance)
    facts = {
        "table": table.times,
        "columns": read.columns,
        "times": len(used),
        "used": int(used.sum()),
        "left_out": left,
        "unknown_words": {name: int(one.unknown.sum()) for name, one in measured.items()},
        "words": len(read.words),
        "frequencies": source,
        "context": context,
        "log": table.log,
        "random": [term.name for term in terms],
        "folds": regression.folds,
        "seed": regression.seed,
        **found,
    }
    notes = [
        f"{len(y):,} times of {counted(len(set(items)), 'item')}; random effects: {', '.join(facts['random'])};"
        f" frequencies: {source or 'none'}.",
        f"Baseline: {', '.join(base)}; log-likelihood {found['baseline']['log_likelihood']:.1f}.",
        "In sample and items left out: log-likelihood added, nats per time. Tests of items left out: paired t test on"
        " the means of the items, two-sided.",
    ]
    tables = _tables(facts, "log ms" if table.log else "ms")
    if out is not None:
        write_atomic(out, _rows(read, used, base, models))
        notes.append(f"times: {out}")
    if html is not None or plots:
        notes += _draw(facts, models, fits, y, tables, notes, html, plots)
    show.print_result(common.as_json, facts, *tables, notes=notes)


def _measured(
    paths: tuple[Path, ...],
    read: ReadingTimes,
    name: str,
    words: WordOptions,
    common: Common,
    context: str,
    unknown: str,
) -> "dict[str, Measured]":
    from elman.analysis.reading_times import measure

    found = dict[str, "Measured"]()
    for path in paths:
        model = common.open_model(path)
        ends = words.apply(model, "word")
        one = found[str(path)] = measure(
            model, read.words, name, sentences=context == "sentence", word_ends=ends, exclude=unknown == "exclude"
        )
        if one.unknown.any():
            lacking = list(dict.fromkeys(read.words[at].written for at in one.unknown.nonzero()[0]))
            notice(f"{path}: {one.unknown.sum():,} of {len(read.words):,} words are unknown: {', '.join(lacking[:5])}")
    return found


def _frequencies(
    file: str | None, read: ReadingTimes, measured: "Mapping[str, Measured]"
) -> tuple[Floats | None, str | None]:
    """How often each word occurs, and where that was counted."""
    from elman.analysis.reading_times import frequencies

    if file is not None:
        return frequencies(read.words, read_frequencies(texts.read_text(file), texts.shown_name(file))), file
    for name, one in measured.items():
        if one.counts is not None:
            return one.counts, f"the training text of {name}"
    notice("the baseline has no frequencies, since no run of words is given; --frequencies FILE gives them")
    return None, None


def _terms(names: tuple[str, ...], read: ReadingTimes, used: np.ndarray) -> "list[Term]":
    """The random intercepts of which there are two levels or more; raises UserError where there is none."""
    from elman.analysis.reading_times import Term

    at, subjects = read.word[used], np.array(read.subject or [""] * len(used))[used]
    levels = {"subject": subjects, "item": np.array([read.words[place].item for place in at]), "word": at}
    terms = []
    for name in names:
        found, level = np.unique(levels[name], return_inverse=True)
        if len(found) > 1:
            terms.append(Term(name, level, np.ones(len(level))))
        elif name != "item" or "subject" not in read.columns:
            notice(f"no random effect of the {name}: all times have one")
    if not terms:
        raise UserError(
            "there are neither several readers nor several items; name their columns: --columns subject=HEADING"
        )
    return terms


def _slopes(regression: RegressionOptions, bits: Floats, terms: "list[Term]") -> "list[Term]":
    if not regression.slopes:
        return []
    readers = [term for term in terms if term.name == "subject"]
    if not readers:
        raise UserError("--slopes belong to readers: name their column (--columns subject=HEADING)")
    return [readers[0]._replace(name="subject: surprisal", by=bits - bits.mean())]


def _tables(facts: Mapping[str, Any], unit: str) -> list[show.Table]:
    held = {row["b"]: row for row in facts["held_out"]}
    rows = [
        [
            row["model"],
            f"{row['delta']:+.5f}",
            f"{row['chi2']:.1f} ({row['df']})",
            f"{row['p_value']:.2g}",
            *(_tested(held[row["model"]]) if held else [""] * 4),
        ]
        for row in facts["models"]
    ]
    tables = [("Log-likelihood that surprisal adds", _ADDED, rows)]
    if facts["pairs"]:
        rows = [[row["a"], row["b"], *_tested(row)] for row in facts["pairs"]]
        tables.append(("Models compared, items left out", _PAIRS, rows))
    for row in facts["models"]:
        effects = [
            [one["name"], f"{one['estimate']:.4g}", f"{one['error']:.2g}", f"{one['z']:.2f}", f"{one['p_value']:.2g}"]
            for one in row["effects"]
        ]
        spread = [[f"sd: {name}", f"{value**0.5:.4g}", "", "", ""] for name, value in row["variances"].items()]
        tables.append((f"{row['model']}: effects", ["", unit, "error", "z", "p"], effects + spread))
    return tables


def _tested(row: Mapping[str, Any]) -> list[str]:
    interval = f"{row['low']:+.5f} to {row['high']:+.5f}"
    return [f"{row['difference']:+.5f}", interval, f"{row['p_value']:.2g}", f"{row['p_holm']:.2g}"]


def _rows(read: ReadingTimes, used: np.ndarray, base: Mapping[str, Floats], models: "Mapping[str, Regression]") -> str:
    """The times that are used, with their predictors, as a table."""
    columns = dict(base)
    for name, one in models.items():
        columns |= {f"{own} of {name}": values for own, values in one.predictors.items() if own not in base}
    target = io.StringIO()
    places = zip(used.nonzero()[0], zip(*columns.values(), strict=True), strict=True)
    score_rows.write_tsv(
        (
            {
                "subject": read.subject[at] if read.subject else "",
                "item": read.words[read.word[at]].item,
                "word": read.words[read.word[at]].written,
                "time": read.time[at],
                **{name: round(float(value), 6) for name, value in zip(columns, values, strict=True)},
            }
            for at, values in places
        ),
        out=target,
    )
    return target.getvalue()


def _draw(
    facts: Mapping[str, Any],
    models: "Mapping[str, Regression]",
    fits: Mapping[str, Any],
    y: Floats,
    tables: list[show.Table],
    notes: list[str],
    html: Path | None,
    plots: list[Path],
) -> list[str]:
    """Write the page and the drawings; a line for each."""
    from elman.analysis import reading_times_page as page
    from elman.drawing.style import write_drawing

    partials = {name: page.partial_effect(one, fits[name], y) for name, one in models.items()}
    drawn = {
        "Log-likelihood added": page.draw_added(facts["held_out"] or facts["models"], list(models)),
        "Effect of surprisal": page.draw_effects(partials, "log" if facts["log"] else "ms"),
    }
    said = list[str]()
    for file, (title, drawing) in zip(plots, drawn.items(), strict=False):
        write_drawing(file, drawing, "times", title, "")
        said.append(f"drawing: {file}")
    if html is not None:
        page.write_times_page(html, facts, drawn, tables, notes)
        said.append(f"page: {html}")
    return said
