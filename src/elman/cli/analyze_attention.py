"""elman analyze attention."""

import argparse
from pathlib import Path

from elman.cli import options, show, transduce
from elman.errors import UserError


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "attention",
        help="what a model of pairs looks at while it writes a target",
        description="The best target of every source, and the weight of each word of the source at each word of the"
        " target: a table on standard output, heat maps on the page.",
    )
    options.add_run(parser)
    parser.add_argument("--shown", type=int, default=20, metavar="N", help="sources shown on the page (default: 20)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: RUN/attention.html)")
    parser.add_argument("--unk", action="store_true", help="allow <unk> to be written")
    transduce.add(parser)
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Search, write the page, print."""
    from elman.analysis.attention import entropy, write_attention_page
    from elman.drawing.page import require_file_name
    from elman.tasks.pairs.run import PairRun

    if args.source is None:
        raise UserError("what is looked at depends on the source: give --source FILE, a source a line")
    options.at_least(1, "--shown", args.shown)
    options.at_least(1, "--batch-size", args.batch_size)
    beam = transduce.beam_of(args)
    out = require_file_name(args.out or args.folder / "attention.html")
    loaded = PairRun(args.folder, options.use_machine(args))
    _, name, candidates = transduce.search(args, loaded, beam)
    found = [best[0] for best in candidates if best]
    page = write_attention_page(out, f"{loaded.recipe.title} over {Path(name).name}", found, args.shown)
    if args.json:
        pairs = [
            {"source": one.source, "target": [*one.words, "<eos>"], "weights": one.attention.tolist()} for one in found
        ]
        show.print_json({"run": str(args.folder), "report": str(page), "pairs": pairs})
        return 0
    rows = [[" ".join(one.source), one.text, f"{entropy(one):.2f}"] for one in found[: args.shown]]
    show.print_table(f"{args.folder}: attention over {name}", ["source", "target", "entropy, bits"], rows)
    print(f"report: {page}")
    return 0
