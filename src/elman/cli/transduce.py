"""elman generate, for a run on pairs: a target for every line of a source."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elman.cli import options, show
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.decoding.beam import Beam
    from elman.tasks.pairs.run import PairRun, Translation

OPTIONS = (
    *("source", "beam", "nbest", "length_penalty", "coverage", "max_length", "batch_size", "copy", "attention"),
    "unconstrained",
)
"""What belongs to runs on pairs alone."""

SHOWN = 20
"""Sources whose attention a page shows one by one."""

_OF_OTHERS = ("prompt", "tokens", "top_k", "top_p", "state", "save_state", "raw", "steps", "prompt_midi", "tempo")


def add(parser: argparse.ArgumentParser) -> None:
    """The arguments of runs on pairs."""
    group = parser.add_argument_group("pairs", "of a run on pairs of a source and a target; --unk and --out hold too")
    group.add_argument(
        "--source",
        metavar="FILE",
        help="a UTF-8 text, a source a line, - is standard input; a blank line gives a blank line",
    )
    group.add_argument("--beam", type=int, metavar="K", help="hypotheses kept at every step; 1 is greedy (default: 5)")
    group.add_argument("--nbest", type=int, metavar="N", help="targets of each source, with their scores (default: 1)")
    group.add_argument(
        "--length-penalty",
        type=float,
        metavar="A",
        help="exponent of the length that log-probabilities are divided by (default: 0.6)",
    )
    group.add_argument(
        "--coverage", type=float, metavar="B", help="weight of what of the source was looked at (default: 0)"
    )
    group.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="symbols of a target at most (default: twice the source, and 10; of trees data.max_target)",
    )
    group.add_argument("--batch-size", type=int, metavar="N", help="sources side by side (default: 32)")
    group.add_argument(
        "--copy", action="store_true", help="in place of <unk> write the word of the source that is looked at most"
    )
    add_unconstrained(group)


def add_unconstrained(group: argparse._ActionsContainer) -> None:
    """Whether trees are searched for among well-formed ones alone."""
    group.add_argument(
        "--unconstrained",
        action="store_true",
        help="of trees: let the model write any line; by default it writes only trees over all words of the source,"
        " unless the recipe has data.evaluation.constrained = false",
    )


def add_page(parser: argparse.ArgumentParser) -> None:
    """The page beside the targets."""
    parser.add_argument(
        "--attention",
        type=Path,
        metavar="FILE",
        help=f"of pairs: also write a page, FILE.html, with heat maps of what the first {SHOWN} targets looked at",
    )


def run(args: argparse.Namespace) -> int:
    """Read the sources, search, print or write."""
    from elman.analysis.attention import write_attention_page
    from elman.drawing.page import require_file_name
    from elman.files import write_atomic
    from elman.tasks.pairs.run import PairRun

    options.require_none(args, _OF_OTHERS, "a run on pairs")
    if args.source is None:
        raise UserError("a run on pairs needs sources: give --source FILE, a source a line, or - for standard input")
    options.at_least(1, "--batch-size", args.batch_size)
    beam = beam_of(args)
    page = None if args.attention is None else require_file_name(args.attention)
    loaded = PairRun(args.folder, options.use_machine(args))
    lines, name, found = search(args, loaded, beam)
    blank = sum(not one for one in found)
    if blank:
        show.log().print(f"{name}: {blank:,} of {len(lines):,} lines are blank, and so is what is written for them")
    if page is not None:
        best = [candidates[0] for candidates in found if candidates]
        write_attention_page(page, f"{loaded.recipe.title} over {Path(name).name}", best, SHOWN)
        show.log().print(f"report: {page}")
    if args.json:
        show.print_json([_record(line, candidates) for line, candidates in zip(lines, found, strict=True)])
        return 0
    text = "".join(f"{line}\n" for line in _lines(found, numbered=args.nbest is not None))
    if args.out is None:
        sys.stdout.write(text)
        return 0
    write_atomic(Path(args.out), text)
    print(f"{args.out}: {len(lines):,} lines")
    return 0


def beam_of(args: argparse.Namespace) -> "Beam":
    """How the arguments say to search.

    Raises:
        UserError: a value is out of range.

    """
    from elman.decoding.beam import Beam

    given = {
        "size": args.beam,
        "nbest": args.nbest,
        "length_penalty": args.length_penalty,
        "coverage": args.coverage,
        "max_length": args.max_length,
    }
    beam = Beam(**{name: value for name, value in given.items() if value is not None})
    beam.check()
    return beam


class Found(NamedTuple):
    """The lines of a file of sources without their ends, what the file is called, and the targets of each."""

    lines: list[str]
    name: str
    targets: "list[list[Translation]]"


def search(args: argparse.Namespace, loaded: "PairRun", beam: "Beam") -> Found:
    """Read the sources and search.

    Raises:
        UserError: sources cannot be read, or --unconstrained for targets that are no trees.

    """
    lines = [line.rstrip("\n") for line in options.read_lines(args.source)]
    name = "standard input" if args.source == "-" else args.source
    found = loaded.translate(
        lines,
        beam,
        copy=args.copy,
        unknown=args.unk,
        constrained=False if free_trees(args, loaded) else None,
        batch_size=args.batch_size or 32,
        name=name,
    )
    return Found(lines, name, found)


def free_trees(args: argparse.Namespace, loaded: "PairRun") -> bool:
    """Whether --unconstrained says that a line need not be a tree.

    Raises:
        UserError: it is said of targets that are no trees.

    """
    if args.unconstrained and loaded.options.form != "trees":
        raise UserError(f"--unconstrained is about trees, and {loaded.path} writes none; leave it out")
    return bool(args.unconstrained)


def _lines(found: "list[list[Translation]]", *, numbered: bool) -> list[str]:
    """A target a line; numbered: line of the source, rank, score, log-probability and target, tabs between them."""
    if not numbered:
        return [candidates[0].text if candidates else "" for candidates in found]
    return [
        f"{place}\t{rank}\t{one.score:.4f}\t{one.log_prob:.4f}\t{one.text}"
        for place, candidates in enumerate(found, start=1)
        for rank, one in enumerate(candidates, start=1)
    ]


def _record(line: str, candidates: "list[Translation]") -> dict[str, Any]:
    return {
        "source": line,
        "targets": [
            {"text": one.text, "words": one.words, "score": round(one.score, 4), "log_prob": round(one.log_prob, 4)}
            for one in candidates
        ],
    }
