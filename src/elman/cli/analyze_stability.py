"""elman analyze stability."""

import argparse
from typing import TYPE_CHECKING, Any

from elman.cli import options, show

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch

    from elman.network.stability.certificate import Certificate


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "stability",
        help="certificates of stability: what is proved of this model, and what is not",
        description="Tiers 0 to 3: h = 0 without biases, the actual fixed point, all states and all words, and the"
        " largest Lyapunov exponent on a text. Each says what it proves and what it does not (docs/stability.md).",
    )
    options.add_run(parser)
    parser.add_argument("--data", metavar="DATA", help="text or music for tier 3 (default: that of the run)")
    parser.add_argument("--split", default="valid", metavar="S", help="train, valid or test (default: valid)")
    parser.add_argument("--steps", type=int, default=300, metavar="N", help="steps of tier 3; 0: none (default: 300)")
    parser.add_argument("--streams", type=int, default=8, metavar="N", help="columns read side by side (default: 8)")
    options.add_json(parser)
    options.add_machine(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Certify and print."""
    import msgspec

    from elman.analysis.stability import certify, certify_music
    from elman.tasks.music.run import MusicRun
    from elman.tasks.open import open_run
    from elman.tasks.text.run import TextRun

    device = options.use_machine(args)
    options.at_least(0, "--steps", args.steps)
    options.at_least(1, "--streams", args.streams)
    loaded = open_run(args.folder, device)
    if isinstance(loaded, MusicRun):
        frames = loaded.corpus(args.data).split(args.split).frames if args.steps else None
        found = certify_music(loaded.model, len(loaded.inputs), _side_by_side(frames, args, device))
    else:
        loaded = TextRun(args.folder, device)
        tokens = loaded.corpus(args.data).split(args.split).tokens if args.steps else None
        found = certify(loaded.model, len(loaded.vocabulary), _side_by_side(tokens, args, device))
    if args.json:
        lines = [{**msgspec.to_builtins(line), "holds": line.holds} for line in found]
        show.print_json({"run": str(args.folder), "certificates": lines})
        return 0
    show.print_table(
        f"{loaded.recipe.title}: stability",
        ["tier", "layer", "quantity", "value", "needs", "holds"],
        [_row(line) for line in found],
    )
    for tier in sorted({line.tier for line in found}):
        line = next(line for line in found if line.tier == tier)
        print(f"tier {tier} where it holds: {line.proves}.")
        print(f"  not proved: {line.does_not}.")
    return 0


def _side_by_side(
    symbols: "npt.NDArray[Any] | None", args: argparse.Namespace, device: "torch.device"
) -> "torch.Tensor | None":
    """The first symbols [T, B, ...] for tier 3, or None; raises UserError where they are too few."""
    import torch

    from elman.errors import UserError

    if symbols is None:
        return None
    length = min(args.steps, len(symbols) // args.streams)
    if length < 60:
        raise UserError(
            f"tier 3 has {length} steps in {args.streams} streams and needs 60 or more: give longer --data, fewer"
            " --streams, or --steps 0 to leave it out"
        )
    read = torch.as_tensor(symbols[: length * args.streams].astype("int64"), device=device)
    return read.view(args.streams, length, *read.shape[1:]).transpose(0, 1)


def _row(line: "Certificate") -> list[str]:
    return [
        str(line.tier),
        str(line.layer or "all"),
        line.name,
        f"{line.value:.4g}",
        f"< {line.limit:g}",
        "yes" if line.holds else "no",
    ]
