"""elman analyze: what a model does, beyond its perplexity. Here the rank of its outputs and its mixtures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from cyclopts import Parameter

from elman.cli import kinds, progress, show, texts
from elman.cli.groups import Common, SplitOptions, sources_of
from elman.cli.help import family
from elman.cli.options import AsJson, OutFile, Positive, Strings, TextFile, TextRunFolder, file_to_write
from elman.config.parts import tag_of
from elman.drawing.page import require_file_name
from elman.errors import UserError
from elman.files import is_stream, json_text, write_atomic
from elman.tasks.hub import fetched

if TYPE_CHECKING:
    from elman.analysis.mixture import MixtureReading
    from elman.analysis.rank import Finding
    from elman.tasks.text.run import TextRun

app = family("analyze", "Each analysis prints a table; most write a self-contained HTML page.")
for _name, (_place, _line) in kinds.commands("analyze").items():
    app.command(_place, name=_name, help=_line)
app.command("elman.cli.analyze_dynamics:dynamics", name="dynamics", help="Decay of the state, gradients in training.")
app.command("elman.cli.evaluate:frequency", name="frequency", help="Perplexity of rare and frequent words.")
app.command("elman.cli.embed:neighbours", name="neighbours", help="The words nearest to a string.")
app.command("elman.cli.analyze_states:letters", name="letters", help="Where words begin, by surprisal.")
app.command("elman.cli.analyze_states:trajectory", name="trajectory", help="The state along sentences.")
app.command("elman.cli.analyze_states:units", name="units", help="Where units are active, and which along a phrase.")
app.command("elman.cli.analyze_states:words", name="words", help="Words clustered by their states.")
app.command("elman.cli.analyze_dynamics:stability", name="stability", help="Certificates of stability.")


@app.command
def outputs(
    *,
    activation: Strings = (),
    out: Annotated[Path, Parameter(metavar="FILE", validator=file_to_write)] = Path("outputs.html"),
    as_json: AsJson = False,
) -> None:
    """What output functions make of a line of scores; needs no run.

    Images of output functions on the simplex of three symbols and in log space, the rank that they reach from one line
    of scores, and how close they are to softmax.

    Args:
        activation: output functions, such as softmax sigsoftmax (default: all)
        out: the page
    """
    from elman.analysis import output_functions
    from elman.analysis.output_functions import require_known
    from elman.network.output.activation import ACTIVATIONS

    names = require_known(list(activation) or ACTIVATIONS)
    ranks, limits = output_functions.rank_table(names), output_functions.limit_table(names)
    page = output_functions.write_outputs_page(out, names, ranks, limits)
    sizes = [str(size) for size in output_functions.SIZES]
    facts = {
        "ranks": [
            {"activation": name, "b": shift, "rank": dict(zip(sizes, found, strict=True))}
            for name, shift, found in ranks
        ],
        "distance_from_softmax": {
            name: [{"b": b, "distance": far} for b, far in zip(output_functions.LIMITS, found, strict=True)]
            for name, found in limits
        },
        "report": str(page),
    }
    rows = [[f"{name}, b = {shift:g}", *map(str, found)] for name, shift, found in ranks]
    header = ["", *(f"M = {size}" for size in sizes)]
    table = ("rank of the log-probabilities of one line z = h w + b 1", header, rows)
    show.print_result(as_json, facts, table, notes=[output_functions.verdict(ranks), f"report: {page}"])


@app.command
def rank(
    runs: tuple[Path, ...],
    /,
    *,
    split: SplitOptions = SplitOptions(),
    max_tokens: Positive | None = None,
    method: Literal["gram", "exact", "randomised"] | None = None,
    values: Positive = 1000,
    dtype: Literal["float32", "float64"] = "float32",
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Rank and singular values of the log-probabilities over a split.

    Numerical rank and singular values of the matrix of log-probabilities (V words by T positions). A softmax with d
    hidden units and a bias never exceeds d + 2; the page shows who does. The singular values are also written as JSON
    beside the page.

    Args:
        runs: run folders; several share one plot
        max_tokens: only the first tokens of the split
        method: gram: accurate to about 1e-7 of the largest value, 16 V^2 bytes; exact: a QR, several times the time;
            randomised: the leading values only, with a stated error (default: by the size of the matrix)
        values: number of values that `randomised` finds
        dtype: of the log-probabilities; its epsilon is in the threshold
        out: the page (default: RUN/rank.html; rank.html here for several runs)
    """
    import torch

    from elman.analysis.rank import find_rank, spectrum
    from elman.analysis.rank_page import verdict, write_rank_page
    from elman.evaluation.perplexity import reading

    page = require_file_name(out or (fetched(runs[0]) / "rank.html" if len(runs) == 1 else Path("rank.html")))
    if page.suffix == ".json":
        raise UserError(f"--out {page}: the singular values are written as JSON beside the page; name it .html")
    findings: dict[str, Finding] = {}
    records = []
    for label, folder in _labels(list(runs)).items():
        loaded = common.open_text(folder)
        corpus = loaded.corpus(split.data)
        read = loaded.split(corpus, split.split)
        if not len(read.tokens):
            raise UserError(f"the {split.split} split of {corpus.source} has no tokens; choose another with --split")
        if dtype == "float64":
            loaded.model.to(torch.float64)
        model, windows = reading(loaded.model, read, loaded.first)
        with progress.counting(f"reading {folder}") as advance:
            found = spectrum(
                model,
                read.tokens,
                loaded.first,
                inputs=windows.read,
                method=method,
                max_tokens=max_tokens,
                advance=advance,
                streams=split.streams,
                num_values=values,
            )
        findings[label] = finding = find_rank(loaded.model, found)
        judged = [name for name in finding.__struct_fields__ if name != "spectrum"]
        output = loaded.recipe.model.output
        records.append(
            {
                "run": str(folder),
                "title": loaded.recipe.title,
                "data": corpus.source,
                "split": split.split,
                "activation": output.activation,
                "contexts": tag_of(output.contexts),
                **found._asdict(),
                "singular_values": found.singular_values.tolist(),
                **{name: msgspec.to_builtins(getattr(finding, name)) for name in judged},
                "exceeds": finding.exceeds,
            }
        )
    sources = sources_of((record["data"] for record in records), "values")
    write_rank_page(page, findings, f"the {split.split} split of {', or of '.join(sources)}")
    beside = None if is_stream(page) else page.with_suffix(".json")
    if beside is not None:
        write_atomic(beside, json_text(records) + "\n")
    brief = [{key: value for key, value in record.items() if key != "singular_values"} for record in records]
    facts = {"runs": brief, "report": str(page), "singular_values": None if beside is None else str(beside)}
    show.print_result(
        common.as_json, facts, *_rank_tables(records, findings), notes=[verdict(findings), f"report: {page}"]
    )


def _labels(folders: list[Path]) -> dict[str, Path]:
    """Names that distinguish the runs: of their folders where these differ, else the whole paths."""
    unique = list(dict.fromkeys(folders))
    names = [folder.absolute().name for folder in unique]
    return dict(zip(names if len(set(names)) == len(names) else map(str, unique), unique, strict=True))


def _rank_tables(records: list[dict[str, Any]], findings: dict[str, "Finding"]) -> list[show.Table]:
    from elman.analysis.rank_page import RULE, rank_row, rank_text

    header = ["run", "output", "d", "V", "T", "rank", "bound", "one softmax", "", "seconds"]
    rows = []
    for record, (name, finding) in zip(records, findings.items(), strict=True):
        cells = rank_row(name, finding)
        rows.append([name, f"{record['activation']}, {record['contexts']}", *cells[1:8], cells[-1]])
    some = next(iter(findings.values()))
    factors = ["run", *(f"{one.factor:g} ε" for one in some.sensitivity)]
    others = [[name, *(rank_text(one.rank, one.at_least) for one in f.sensitivity)] for name, f in findings.items()]
    return [
        (f"rank of the log-probabilities, {records[0]['split']}: values above {RULE}", header, rows),
        ("rank at other thresholds", factors, others),
    ]


@app.command
def mixture(
    run: TextRunFolder,
    file: TextFile,
    /,
    *,
    top: Positive = 5,
    shown: Positive = 200,
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Weights and predictions of the components of a mixture over a text.

    The components of a mixture (MoS, MoSS, DOC): the weight of each at every word, what each predicts, how evenly they
    are used. The page shows the weights as a heat map.

    Args:
        file: a UTF-8 text, read as the training text was; - is standard input
        top: words shown per component
        shown: tokens shown one by one on the page
        out: the page (default: RUN/mixture.html)
    """
    from elman.analysis import mixture

    loaded = common.open_text(run)
    page = require_file_name(out or loaded.path / "mixture.html")
    reader = loaded.reader(texts.shown_name(file))
    text = loaded.reading(texts.read_lines(file, loaded.tokeniser.options), reader)
    items = list(text.items)
    texts.report(reader)
    words = [word for sentence, _ in items for word in sentence.tokens]
    tokens = np.concatenate([sentence.ids for sentence, _ in items])
    inputs = np.concatenate([read for _, read in items])
    reading = mixture.read_mixture(text.model, tokens, loaded.first, top, inputs=inputs)
    title = f"{loaded.recipe.title} over {Path(file).name}"
    mixture.write_mixture_page(page, title, words, reading, loaded.vocabulary, min(shown, len(words)))
    facts = {"run": str(run), "report": str(page), **_mixture_record(words, reading, loaded)}
    rows = mixture.component_rows(words, reading)
    table = (f"{run}: components over {len(words):,} tokens", mixture.COMPONENT_HEADER, rows)
    show.print_result(common.as_json, facts, table, notes=[mixture.verdict(reading), f"report: {page}"])


def _mixture_record(words: list[str], reading: "MixtureReading", loaded: "TextRun") -> dict[str, Any]:
    from elman.analysis.mixture import effective_number

    share, log_prob = reading.responsibility.mean(0), reading.log_prob
    return {
        "variation": reading.variation,
        "effective_number": float(effective_number(reading.prior.mean(0))),
        "effective_number_at_once": float(effective_number(reading.prior).mean()),
        "components": [
            {
                "name": name,
                "layer": level,
                "weight": float(reading.prior[:, at].mean()),
                "share": float(share[at]),
                "entropy": float(reading.entropy[:, at].mean()),
                "nll": -float(reading.component_log_prob[:, at].mean()),
            }
            for at, (name, level) in enumerate(zip(reading.names, reading.levels, strict=True))
        ],
        "tokens": [
            {
                "token": word,
                "log_prob": float(log_prob[at]),
                "weights": reading.prior[at].tolist(),
                "entropy": reading.entropy[at].tolist(),
                "top": [loaded.vocabulary.decode(ids) for ids in reading.top[at]],
                "top_prob": reading.top_prob[at].tolist(),
            }
            for at, word in enumerate(words)
        ],
    }
