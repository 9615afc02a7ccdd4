"""elman analyze dynamics."""

import argparse
from pathlib import Path

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "dynamics",
        help="state decay after a kick, spectral radius and gradients while training, success over runs",
        description="What a run's states and gradients did: the decay of the state after one random input, the"
        " spectral radius of J beside the gradient norm, the number of singular values computed, and whether training"
        " succeeded (Kanai's thesis, Figs 3.2 to 3.5, Tables 3.2 and 3.3). Writes a page with plots.",
    )
    parser.add_argument("folders", metavar="RUN", nargs="+", type=Path, help="run folders")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: RUN/dynamics.html of the first)")
    parser.add_argument("--trials", type=int, default=50, metavar="N", help="kicks (default: 50)")
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="steps after a kick (default: 100)")
    parser.add_argument("--kick", type=float, default=0.1, metavar="S", help="standard deviation (default: 0.1)")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, write the page, print."""
    from elman.analysis.dynamics import summary, write_dynamics

    device = options.use_machine(args)
    options.at_least(1, "--trials", args.trials)
    options.at_least(2, "--steps", args.steps)
    options.at_least(1e-6, "--kick", args.kick)
    page, found = write_dynamics(args.folders, args.out, device, trials=args.trials, steps=args.steps, kick=args.kick)
    if args.json:
        show.print_json({"page": str(page), "runs": [summary(one) for one in found]})
        return 0
    rows = [
        [one.name, _number(one.decay_rate), _number(one.largest_radius), _number(one.largest_norm), one.verdict]
        for one in found
    ]
    show.print_table(
        "Dynamics", ["run", "rate of decay a step", "largest radius of J", "largest gradient norm", "training"], rows
    )
    print(f"page: {page}")
    return 0


def _number(value: float) -> str:
    return f"{value:.4g}"
