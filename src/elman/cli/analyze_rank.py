"""elman analyze rank."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    import torch

    from elman.analysis.rank import Finding


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "rank",
        help="rank and singular values of the log-probabilities over a split",
        description="Numerical rank and singular values of the matrix of log-probabilities (V words by T positions)"
        " over a split. A softmax with d hidden units and a bias never exceeds d + 2; the page shows who does. The"
        " singular values are also written as JSON beside the page.",
    )
    parser.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="run folders; several share one plot")
    options.add_split(parser, "another text, read with the run's vocabulary (default: its own)")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="only the first N tokens of the split")
    parser.add_argument(
        "--method",
        choices=["gram", "exact", "randomised"],
        help="gram: accurate to about 1e-7 of the largest value, 16 V^2 bytes; exact: a QR, several times the time;"
        " randomised: the leading values only, with a stated error (default: by the size of the matrix)",
    )
    parser.add_argument(
        "--values", type=int, default=1000, metavar="K", help="how many values `randomised` finds (default: 1000)"
    )
    parser.add_argument(
        "--precision",
        choices=["float32", "float64"],
        default="float32",
        help="what the log-probabilities are computed in; its epsilon is in the threshold (default: float32)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="the page (default: RUN/rank.html; rank.html here for several runs)",
    )
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find the ranks, write the page, print."""
    from elman.analysis.rank_page import verdict, write_rank_page
    from elman.drawing.page import require_file_name
    from elman.files import write_atomic

    device = options.use_machine(args)
    for name, value in (("--streams", args.streams), ("--max-tokens", args.max_tokens), ("--values", args.values)):
        options.at_least(1, name, value)
    default = args.folders[0] / "rank.html" if len(args.folders) == 1 else Path("rank.html")
    out = require_file_name(args.out or default)
    findings: dict[str, Finding] = {}
    records = []
    for label, folder in _labels(args.folders).items():
        finding, facts = _one(folder, args, device)
        findings[label] = finding
        records.append({"run": str(folder), **facts, **_record(finding)})
    text = f"the {args.split} split of {records[0]['data']}"
    page = write_rank_page(out, findings, text)
    beside = out.with_suffix(".json")
    write_atomic(beside, json.dumps(records, ensure_ascii=False) + "\n")
    if args.json:
        brief = [{key: value for key, value in record.items() if key != "singular_values"} for record in records]
        show.print_json({"runs": brief, "report": str(page), "singular_values": str(beside)})
        return 0
    _print(records, findings)
    print(verdict(findings))
    print(f"report: {page}")
    return 0


def _labels(folders: list[Path]) -> dict[str, Path]:
    """Names to tell the runs by: those of their folders where these differ, else the whole paths."""
    unique = list(dict.fromkeys(folders))
    names = [folder.absolute().name for folder in unique]
    return dict(zip(names if len(set(names)) == len(names) else map(str, unique), unique, strict=True))


def _one(folder: Path, args: argparse.Namespace, device: "torch.device") -> tuple["Finding", dict[str, Any]]:
    import torch

    from elman.analysis.rank import find_rank
    from elman.tasks.text.run import TextRun

    loaded = TextRun(folder, device)
    corpus = loaded.corpus(args.data)
    split = corpus.split(args.split)
    if not len(split.tokens):
        raise UserError(f"the {args.split} split of {corpus.source} has no tokens; choose another with --split")
    model = loaded.model.to(torch.float64) if args.precision == "float64" else loaded.model
    with show.counting(f"reading {folder}") as advance:
        found = spectrum(
            model,
            split.tokens,
            loaded.first,
            method=args.method,
            max_tokens=args.max_tokens,
            advance=advance,
            streams=args.streams,
            num_values=args.values,
        )
    output = loaded.recipe.model.output
    facts = {
        "title": loaded.recipe.title,
        "data": corpus.source,
        "split": args.split,
        "activation": output.activation,
        "contexts": type(output.contexts).__name__.lower(),
    }
    return find_rank(model, found), facts


def _record(finding: "Finding") -> dict[str, Any]:
    import msgspec

    found = finding.spectrum
    facts = {
        name: msgspec.to_builtins(getattr(finding, name)) for name in finding.__struct_fields__ if name != "spectrum"
    }
    return {
        **facts,
        "exceeds": finding.exceeds,
        "num_words": found.num_words,
        "num_tokens": found.num_tokens,
        "dtype": found.dtype,
        "method": found.method,
        "error": found.error,
        "singular_values": found.singular_values.tolist(),
    }


def _print(records: list[dict[str, Any]], findings: dict[str, "Finding"]) -> None:
    from elman.analysis.rank_page import RULE, rank_row, rank_text

    header = ["run", "output", "d", "V", "T", "rank", "bound", "one softmax", "", "seconds"]
    rows = []
    for record, (name, finding) in zip(records, findings.items(), strict=True):
        cells = rank_row(name, finding)
        rows.append([name, f"{record['activation']}, {record['contexts']}", *cells[1:8], cells[-1]])
    show.print_table(f"rank of the log-probabilities, {records[0]['split']}: values above {RULE}", header, rows)
    some = next(iter(findings.values()))
    show.print_table(
        "rank at other thresholds",
        ["run", *(f"{one.factor:g} ε" for one in some.sensitivity)],
        [[name, *(rank_text(one.rank, one.at_least) for one in f.sensitivity)] for name, f in findings.items()],
    )
