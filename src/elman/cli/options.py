"""Arguments that several commands share, and what they mean."""

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from elman.errors import UserError

if TYPE_CHECKING:
    import torch

    from elman.config.text import TextOptions


SETTING = "change a key of the recipe, such as training.epochs=3; may be given again"


def add_machine(parser: argparse.ArgumentParser) -> None:
    """--device and --threads."""
    group = parser.add_argument_group("machine")
    group.add_argument(
        "--device",
        default="auto",
        metavar="D",
        help="auto (a GPU if there is one), cpu, cuda, cuda:1 (default: auto)",
    )
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: what torch chooses)")


def use_machine(args: argparse.Namespace) -> "torch.device":
    """Set the number of threads, use large pages, and return the device."""
    import torch

    from elman.network.kernels.device import choose_device, use_large_pages

    use_large_pages()

    if args.threads is not None:
        if args.threads < 1:
            raise UserError(f"--threads is {args.threads}; it must be 1 or more")
        torch.set_num_threads(args.threads)
    return choose_device(args.device)


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def add_run(parser: argparse.ArgumentParser, help: str = "a run folder, as `elman train --out` wrote it") -> None:
    """The positional RUN."""
    parser.add_argument("folder", metavar="RUN", type=Path, help=help)


def add_split(parser: argparse.ArgumentParser, data: str) -> None:
    """--data, --split and --streams; `data` says what another text is for."""
    parser.add_argument("--data", metavar="DATA", help=data)
    parser.add_argument("--split", default="test", metavar="S", help="train, valid or test (default: test)")
    parser.add_argument(
        "--streams", type=int, default=1, metavar="N", help="columns read side by side: faster (default: 1)"
    )


def add_unknown(parser: argparse.ArgumentParser) -> None:
    """--unknown and --unknown-types."""
    parser.add_argument(
        "--unknown",
        choices=["score", "exclude", "spread"],
        default="score",
        help="words not in the vocabulary: score: as <unk> (default); exclude: left out of sums; spread: the"
        " probability of <unk> shared out evenly among the unknown types",
    )
    parser.add_argument(
        "--unknown-types", type=int, metavar="N", help="with --unknown spread: how many (default: those of the text)"
    )


def require_unknown(args: argparse.Namespace) -> None:
    """Raises UserError where the options of unknown words do not fit."""
    at_least(1, "--unknown-types", args.unknown_types)
    if args.unknown_types is not None and args.unknown != "spread":
        raise UserError("--unknown-types belongs to --unknown spread; add it")


def at_least(minimum: float, name: str, value: float | None) -> None:
    """Raises UserError where a number is too small, or none (nan)."""
    if value is not None and not minimum <= value:
        raise UserError(f"{name} is {value:g}; it must be {minimum:g} or more")


def write_any_text() -> None:
    """Let stdout take text of any bytes: lone surrogates leave as the bytes that they stand for (PEP 383)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")


def read_lines(name: str, text: "TextOptions | None" = None) -> list[str]:
    """The lines of a text, `-` being standard input; `text` is how it is read.

    Raises:
        UserError: it cannot be read, is empty, or is not UTF-8 and not read as bytes.

    """
    found = read_text(name, text)
    if not found.strip():
        shown = _named(name)
        raise UserError(f"{shown}: {'only blank lines' if found else 'the file is empty'}; give a text to score")
    return list(io.StringIO(found, newline="\n"))


def read_text(name: str, text: "TextOptions | None" = None) -> str:
    """As `read_lines`, in one piece, which may be empty.

    Raises:
        UserError: it cannot be read, or is not UTF-8 and not read as bytes.

    """
    from elman.data.text import utf8

    advice = "give a text file, or - for standard input"
    data = sys.stdin.buffer.read() if name == "-" else utf8.read_bytes(Path(name), advice)
    as_bytes = text is not None and text.tokenisation == "bytes"
    found = utf8.from_bytes(data) if as_bytes else utf8.decode(data, _named(name))
    return found if text is not None and text.eos == "exact" else found.removeprefix(utf8.MARK)


def _named(name: str) -> str:
    return "standard input" if name == "-" else name


def require_none(args: argparse.Namespace, names: tuple[str, ...], kind: str) -> None:
    """Raises UserError where an option of another kind of run is given."""
    for name in names:
        if getattr(args, name) not in (None, False, ""):
            raise UserError(f"--{name.replace('_', '-')} does not belong to {kind}; leave it out")
