"""elman report, elman info and elman recipes: what there is to look up about runs and recipes."""

from pathlib import Path
from typing import Any

from elman.cli import show
from elman.cli.options import AsJson, OutFile, RunFolders
from elman.config.toml import shipped


def report(runs: RunFolders, /, *, out: OutFile = None, as_json: AsJson = False) -> None:
    """Write one self-contained HTML page about one run or several.

    Learning curves, results beside published numbers, samples, surprisal, configuration. Several runs are laid over
    each other.

    Args:
        out: the page (default: RUN/report.html; report.html here for several runs)
    """
    from elman.report.page import write_report

    page = write_report(list(runs), out)
    show.print_result(as_json, {"report": str(page)}, notes=[f"report: {page}"])


def info(run: Path, /, *, as_json: AsJson = False) -> None:
    """Show what is in a run.

    Parameters by block, where its data came from, its best epoch, and digests of the data and the weights.

    Args:
        run: a run folder
    """
    from elman.learning.checkpoint import digest_of, load, model_tensors
    from elman.tasks.open import open_run

    loaded = open_run(run)
    facts, parameters = loaded.saved, dict(loaded.model.named_parameters())
    found: dict[str, Any] = {
        "run": str(run),
        "title": loaded.recipe.title,
        "parameters": sum(tensor.numel() for tensor in parameters.values()),
        "blocks": _blocks(parameters),
        loaded.reads: len(loaded.inputs),
        "data": loaded.facts["source"],
        "data_digest": loaded.facts["digest"],
        "best_step": facts["step"],
        "best_epoch": round(facts["epoch"], 3),
        "best_valid_nll": facts["valid_nll"],
        "averaged": facts.get("averaged", False),
        "model_digest": digest_of(model_tensors(loaded.model)),
    }
    last = loaded.path / "checkpoint.safetensors"
    if last.exists():
        tensors, facts = load(last)
        found["last_step"] = facts["progress"]["step"]
        found["finished"] = facts["progress"]["finished"]
        found["last_digest"] = digest_of(tensors)
    rows = []
    for key, value in found.items():
        if key == "blocks":
            rows += [[f"  {block}", f"{count:,}"] for block, count in value.items()]
        else:
            rows.append([key.replace("_", " "), f"{value:,}" if type(value) is int else str(value)])
    show.print_result(as_json, found, (loaded.recipe.title, ["", "value"], rows))


def _blocks(parameters: dict[str, Any]) -> dict[str, int]:
    """Parameters of each block: encoder, each layer of the core, contexts, choice."""
    blocks: dict[str, int] = {}
    for name, tensor in parameters.items():
        parts = name.split(".")
        block = ".".join(parts[:3] if parts[:2] == ["core", "layers"] else parts[: min(2, len(parts) - 1)])
        blocks[block] = blocks.get(block, 0) + tensor.numel()
    return blocks


def recipes(*, as_json: AsJson = False) -> None:
    """List the recipes that come with elman, with the published perplexities where there are some."""
    rows = []
    for path, recipe in shipped():
        published = recipe.expected
        best = None if published is None else published.fine_tuned_test or published.test
        rows.append({"path": str(path), "title": recipe.title, "expected": best})
    cells = [
        [str(row["path"]), str(row["title"]), "" if row["expected"] is None else f"{row['expected']:g}"] for row in rows
    ]
    show.print_result(as_json, rows, ("recipes", ["recipe", "title", "published test"], cells))
