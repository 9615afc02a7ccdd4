"""The groups of options that many commands share: the machine, the data that are read, and unknown words."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from elman.cli.help import OPTIONS
from elman.cli.options import AsJson, DataSource, Positive, group
from elman.errors import UserError, command, notice

if TYPE_CHECKING:
    import torch

    from elman.evaluation.scoring import Treatment
    from elman.tasks.run import Run
    from elman.tasks.text.model import Foreign
    from elman.tasks.text.run import TextRun

RunT = TypeVar("RunT", bound="Run")


@group("Machine", 9)
class Machine:
    """Where the computation runs.

    Attributes:
        device: auto (a GPU of CUDA if there is one, else the CPU), cpu, cuda, cuda:1, mps or xpu.
        threads: CPU threads (default: chosen by torch).
        precision: of large matrix products: float32, bf16, or auto, which is bf16 where that is at least 1.3 times as
            fast (`elman info --machine`); int8 runs a trained model with weights of eight bits (default: float32, in
            training as the recipe says).
    """

    device: str = "auto"
    threads: Positive | None = None
    precision: Literal["float32", "bf16", "int8", "auto"] | None = None

    def use(self) -> "torch.device":
        """Set the number of threads and the precision, use large pages, and return the device."""
        from elman.network.fast import precision

        device = self.place()
        precision.use(precision.resolve(self.precision or "float32", device))
        return device

    def place(self) -> "torch.device":
        """Set the number of threads, use large pages, return the device; for training, whose recipe has a precision."""
        import torch

        from elman.network.device import choose_device, usable_threads, use_large_pages

        use_large_pages()
        if self.threads is not None:
            torch.set_num_threads(usable_threads(self.threads))
        return choose_device(self.device)

    def open_as(self, kind: "type[RunT]", folder: Path) -> "RunT":
        """Open a run on the kind of data that a command is for.

        Raises UserError where the folder is not a run, or one on other data; then the message names a command for it.
        """
        from elman.tasks.hub import fetched
        from elman.tasks.run import recipe_of

        folder = fetched(folder)
        recipe = recipe_of(folder)
        if recipe.kind != kind.kind:
            raise UserError(
                f"{folder} is a run on {recipe.kind}, and this command needs a run on {kind.kind}; use"
                f" `{command(*recipe.data.command.split(), folder)}`"
            )
        return kind(folder, self.use())

    def open_text(self, folder: Path) -> "TextRun":
        from elman.tasks.text.run import TextRun

        return self.open_as(TextRun, folder)

    def open_model(self, path: Path) -> "TextRun | Foreign":
        """Open what can score text: a run, an ARPA file, a model of transformers."""
        from elman.tasks.hub import fetched
        from elman.tasks.text.model import open_foreign

        folder = fetched(path)
        return open_foreign(folder, self.use(), path) or self.open_text(folder)


@group("Machine", 9)
class Common(Machine):
    """The options of all commands that compute and print a result."""

    as_json: Annotated[AsJson, Parameter(group=OPTIONS)] = False


@group("Data", 2)
class SplitOptions:
    """Which data are read.

    Attributes:
        data: other data, read with the run's vocabulary (default: the data of the run, the first if there are several);
            of a single file the part that --split names, by the shares of the recipe.
        split: train, valid, test, or of texts all.
        streams: columns read side by side, which is faster.
    """

    data: DataSource = None
    split: str = "test"
    streams: Positive = 1

    def say_part(self, run: "Run | Foreign") -> None:
        """Name on standard error the part of a file that is read, or warn that `all` includes the training text."""
        own = self.data is None
        if own and self.split == "all" and hasattr(run, "source"):
            notice(f"--split all: {run.source} is read whole, the training text too; --split test is held out")
        elif self.data is not None and (file := Path(self.data)).is_file():
            part = _part_of(file, self.split, run)
            more = "" if self.split == "all" or run.kind != "text" else "; --split all reads the whole file"
            notice(f"{file}: {part} is read{more}")

    def say_others(self, runs: "Sequence[TextRun]") -> None:
        """A notice for each run whose own split differs from the split of the first run, which all of them read."""
        from elman.tasks.text.comparison import say_other_splits

        if self.data is None:
            say_other_splits(runs, self.split)


def sources_of(data: Iterable[object], what: str) -> list[str]:
    """The data of several runs, each once; a notice where they are several, so that their `what` cannot be compared."""
    sources = list(dict.fromkeys(map(str, data)))
    if len(sources) > 1:
        notice(f"the runs read other data each ({', '.join(sources)}), so that their {what} are not of one text")
    return sources


@group("Unknown words", 3)
class UnknownOptions:
    """How words that a model does not know are counted.

    Attributes:
        unknown: score: as <unk>; exclude: left out, words of sums, sentences and pairs of comparisons; exclude-items:
            whole items of a table or of pairs are left out, with all their conditions; spread: the probability of <unk>
            is divided evenly among the unknown types (default: score, of two vocabularies exclude).
        unknown_types: number of unknown types, for --unknown spread (default: counted in the text).
    """

    unknown: Literal["score", "exclude", "exclude-items", "spread"] | None = None
    unknown_types: Positive | None = None

    @property
    def treatment(self) -> "Treatment":
        """How the words are scored that are not left out with their items."""
        return "exclude" if self.unknown == "exclude-items" else self.unknown or "score"

    @property
    def left_out(self) -> str | None:
        """The value of --unknown where it leaves out sentences, pairs or items."""
        return self.unknown if self.unknown in ("exclude", "exclude-items") else None

    def check(self, *refused: str) -> None:
        """Raises UserError where the options do not fit together, or for one of the `refused` values."""
        if self.unknown_types is not None and self.unknown != "spread":
            raise UserError("--unknown-types belongs to --unknown spread; add it")
        if self.unknown in refused:
            where = "items: tables, pairs and suites" if self.unknown == "exclude-items" else "sums over words"
            raise UserError(f"--unknown {self.unknown} belongs to {where}; leave it out")


def _part_of(file: Path, split: str, run: "Run | Foreign") -> str:
    """How much of a file a split takes; for a text with its share of the bytes."""
    from elman.config.text import TextOptions
    from elman.data.text.sources import find_sections

    if split == "all":
        return "the whole file"
    options, place = getattr(run, "options", None), {"train": "first", "test": "last"}.get(split, "middle")
    section = find_sections(file, options).get(split) if isinstance(options, TextOptions) else None
    if section is None or section.stop is None:
        return f"its {split} split"
    share = 100 * (section.stop - section.start) / max(1, section.files.size)
    return f"only its {split} split, the {place} {share:.3g} %,"
