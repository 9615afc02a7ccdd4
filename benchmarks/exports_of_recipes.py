"""Every recipe exported: `python benchmarks/exports_of_recipes.py [NAME ...] [--rows FILE] [--out PAGE]`.

A network of each recipe that comes with elman, of few units and words (`lab_scale`), is trained for an epoch on a text
of some thousand drawn words, and written by `elman export --to onnx`, `torch` and `hf`. The row of a recipe has the
largest difference of the log-probabilities from those of the model over 200 tokens, or the line by which the command
refuses it. Rows are printed as they are found; --rows keeps them in a file of JSON lines, so that a command that was
stopped continues, and --out writes results/export-table.md. Needs elman[onnx] and elman[hf]. Exit status 1 on a fault.
"""

import argparse
import contextlib
import io
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from elman.cli import main as elman
from elman.config.recipe import Recipe
from elman.config.text import TextData
from elman.config.toml import dump_recipe, parse_recipe, shipped
from elman.errors import first_line
from elman.files import write_atomic
from elman.tasks.experiment import Experiment

TARGETS = ("onnx", "torch", "hf")
SMALLER = 16
"""By how much the numbers of units are divided; 4 remain at least."""

SIZES = frozenset({"size", "sizes", "filters", "score_size", "rank", "gate_size"})
SYMBOLS = 120
"""Words, or characters, of the drawn text."""


class Row(NamedTuple):
    """What became of a recipe: by target the largest difference in nats, or else the line that refused it.

    `fault` is an error that is no refusal, `seconds` the processor time.
    """

    name: str
    differences: dict[str, float]
    refusal: str = ""
    fault: str = ""
    seconds: float = 0.0


def lab_scale(recipe: Recipe) -> Recipe:
    """The recipe with few units, a vocabulary that some thousand words fill, and one epoch of small batches."""
    raw = msgspec.to_builtins(recipe, str_keys=True)
    raw["model"] = _smaller(raw["model"])
    choice, gate = (raw["model"]["output"][part] for part in ("choice", "gate"))
    if gate is not None:
        gate["alone"] = False  # such a gate is trained on the weights of another run
    if choice.get("cutoffs") is not None:
        choice["cutoffs"] = [20 * (place + 1) for place in range(len(choice["cutoffs"]))]
    training = raw["training"]
    training |= {"epochs": 1, "batch_size": min(4, training["batch_size"]), "fine_tune": None}
    raw |= {"training": {key: value for key, value in training.items() if value is not None}, "expected": None}
    if isinstance(recipe.data, TextData):
        kept = {"kind", "tokenisation", "lowercase", "eos"}
        raw["data"] = {key: value for key, value in raw["data"].items() if key in kept}
        if raw["data"]["tokenisation"] == "subwords":
            raw["data"]["subwords"] = {"size": 300, "coverage": 0.9995}
    return parse_recipe(_without_none(raw), recipe.title)


def _smaller(value: Any, key: str = "") -> Any:
    """The tables of a network with every number of units divided; equal numbers stay equal, so that ties hold."""
    if isinstance(value, dict):
        return {name: _smaller(one, name) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_smaller(one, key) for one in value]
    return max(4, value // SMALLER) if key in SIZES and isinstance(value, int) else value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return value


def write_text(folder: Path, tokenisation: str) -> Path:
    """A folder with three splits of lines whose words follow each other by a random chain, or are made of letters."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    letters = [chr(ord("a") + place) for place in range(26)]
    spelled = tokenisation != "words"
    words = sorted({"".join(draw.choice(letters, draw.integers(1, 7))) for _ in range(SYMBOLS)})
    chance = draw.dirichlet(np.full(len(words), 0.1), size=len(words))
    word = 0
    for split, lines in (("train", 150 if spelled else 300), ("valid", 40), ("test", 10)):
        text = []
        for _ in range(lines):
            line = []
            for _ in range(8):
                word = int(draw.choice(len(words), p=chance[word]))
                line.append(words[word])
            text.append(" ".join(line))
        (folder / f"{split}.txt").write_text("\n".join(text) + "\n")
    return folder


def row_of(name: str, recipe: Recipe, folder: Path, targets: Sequence[str] = TARGETS) -> Row:
    """Train the recipe's network at lab scale in a new folder, and export it."""
    run = folder / "run"
    if isinstance(recipe.data, TextData):
        small = lab_scale(recipe)
        assert isinstance(small.data, TextData)
        text = write_text(folder / "text", small.data.tokenisation)
        with _silence():
            Experiment(small, run, data=text).train()
    else:  # refused for its kind of data, before anything else is read
        run.mkdir(parents=True)
        (run / "recipe.toml").write_text(dump_recipe(recipe))
    found: dict[str, float] = {}
    for target in targets:
        printed, told = io.StringIO(), io.StringIO()
        command = ["export", str(run), "--to", target, "--out", str(folder / target), "--json", "--threads", "1"]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
            status = elman(command)
        if status:
            line = told.getvalue().strip().splitlines()[-1]
            return Row(name, found, line.removeprefix("elman: ").replace(str(run), "RUN"))
        found[target] = json.loads(printed.getvalue())["files"][0]["difference"]
    return Row(name, found)


@contextlib.contextmanager
def _silence() -> Any:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def table(rows: Iterable[Row], targets: Sequence[str] = TARGETS) -> str:
    """The rows in Markdown."""
    lines = [f"| recipe | {' | '.join(targets)} |", "|---" * (1 + len(targets)) + "|"]
    for row in rows:
        cells = [f"{row.differences[one]:.1e}" if one in row.differences else "refused" for one in targets]
        lines.append(f"| `{row.name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def page(rows: Sequence[Row]) -> str:
    """The page of the documentation: what was verified, and what is refused, with the line that says so."""
    verified, refused = [row for row in rows if not row.refusal], [row for row in rows if row.refusal]
    largest = max((max(row.differences.values()) for row in verified), default=math.nan)
    reasons: dict[str, list[str]] = {}
    for row in refused:
        reasons.setdefault(row.refusal.replace("`", "'"), []).append(f"`{row.name}`")
    listed = [f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()]
    return "\n".join(
        [
            "# Exports of the recipes",
            "",
            "`python benchmarks/exports_of_recipes.py --out results/export-table.md` wrote this page in"
            f" {sum(row.seconds for row in rows) / 60:.0f} minutes of",
            "processor time, one thread. Each recipe is reduced to a sixteenth of its units (four at least) and some",
            "hundred words or characters, trained for an epoch on a drawn text, and exported in three forms. Numbers",
            "are the largest differences in nats of log-probabilities from those of the model over 200 tokens, among",
            "symbols with a probability of 1e-6 or more. Recipes whose reduced networks are the same are measured",
            "once. The networks are hardly trained; the tests trace every core, cell and output with large random",
            "weights.",
            "",
            f"Of {len(rows)} recipes {len(verified)} are verified, with {largest:.1e} nats as the largest difference,",
            f"and {len(refused)} are refused.",
            "",
            table(verified),
            "",
            "## Refused",
            "",
            "What is exported is a step that reads a symbol and returns the probabilities of the next one; models on",
            "other data than text have none. Log-probabilities of the ReLU output are ill-conditioned near zero, so",
            "that the comparison may refuse a graph in float32. Each line is that of the command.",
            "",
            "| recipes | line |",
            "|---|---|",
            *listed,
            "",
        ]
    )


def _kept(path: Path | None) -> dict[str, Row]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return {row.name: row for row in (Row(**json.loads(line)) for line in lines)}


def _keep(row: Row, path: Path | None) -> None:
    line = json.dumps(row._asdict())
    print(line, flush=True)
    if path is not None:
        with path.open("a") as file:
            file.write(f"{line}\n")


def _same(name: str, recipes: Mapping[str, Recipe], rows: Mapping[str, Row]) -> Row | None:
    """The row of a recipe with the same network and the same reading of text at lab scale, if there is one."""
    if recipes[name].kind != "text":
        return None
    small = lab_scale(recipes[name])
    for other, row in rows.items():
        if recipes[other].kind == "text" and not row.fault:
            like = lab_scale(recipes[other])
            if (like.model, like.data) == (small.model, small.data):
                return row
    return None


def main() -> int:
    """Print a row for each recipe, keep it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="recipes, such as ptb/awd-lstm (default: all)")
    parser.add_argument("--rows", type=Path, help="keep rows in this file, and measure those alone that it lacks")
    parser.add_argument("--out", type=Path, help="the page to write, in Markdown")
    options = parser.parse_args()
    recipes = {path.relative_to("recipes").with_suffix("").as_posix(): recipe for path, recipe in shipped()}
    rows, names = _kept(options.rows), options.names or list(recipes)
    for name in names:
        if name in rows:
            continue
        begun, same = time.process_time(), _same(name, recipes, rows)
        if same is not None:
            rows[name] = same._replace(name=name, seconds=0.0)
            _keep(rows[name], options.rows)
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = row_of(name, recipes[name], Path(folder))
            except Exception as error:  # the next recipe follows, and the end reports it
                row = Row(name, {}, fault=f"{type(error).__name__}: {first_line(error)}")
        rows[name] = row._replace(seconds=round(time.process_time() - begun, 1))
        _keep(rows[name], options.rows)
    found = [rows[name] for name in names]
    faults = [row for row in found if row.fault]
    if options.out and not faults:
        write_atomic(options.out, page(found))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
