"""elman analyze mixture."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.cli import options, show

if TYPE_CHECKING:
    from elman.analysis.mixture import MixtureReading
    from elman.tasks.text.run import TextRun


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "mixture",
        help="weights and predictions of the components of a mixture over a text",
        description="The components of a mixture (MoS, MoSS, DOC) over a text: the weight of each at every word, what"
        " each predicts, how evenly they are used. The page shows the weights as a heat map.",
    )
    options.add_run(parser)
    parser.add_argument("file", metavar="FILE", help="a UTF-8 text, read as the training text was; - is standard input")
    parser.add_argument("--top", type=int, default=5, metavar="K", help="words to keep of each component (default: 5)")
    parser.add_argument(
        "--shown", type=int, default=200, metavar="N", help="tokens shown one by one on the page (default: 200)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: RUN/mixture.html)")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read the text, write the page, print."""
    import numpy as np

    from elman.analysis import mixture
    from elman.analysis.mixture import read_mixture
    from elman.drawing.page import require_file_name
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    for name, value in (("--top", args.top), ("--shown", args.shown)):
        options.at_least(1, name, value)
    out = require_file_name(args.out or args.folder / "mixture.html")
    loaded = TextRun(args.folder, device)
    text = loaded.reading(options.read_lines(args.file, loaded.tokeniser.options))
    words = [word for sentence in text.words for word in sentence]
    tokens, inputs = np.concatenate(text.ids), np.concatenate(text.inputs)
    reading = read_mixture(text.model, tokens, loaded.first, args.top, inputs=inputs)
    shown = min(args.shown, len(words))
    page = mixture.write_mixture_page(
        out, f"{loaded.recipe.title} over {Path(args.file).name}", words, reading, loaded.vocabulary, shown
    )
    if args.json:
        show.print_json({"run": str(args.folder), "report": str(page), **_record(words, reading, loaded)})
        return 0
    title = f"{args.folder}: components over {len(words):,} tokens"
    show.print_table(title, mixture.COMPONENT_HEADER, mixture.component_rows(words, reading))
    print(mixture.verdict(reading))
    print(f"report: {page}")
    return 0


def _record(words: list[str], reading: "MixtureReading", loaded: "TextRun") -> dict[str, Any]:
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
