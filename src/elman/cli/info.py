"""elman info."""

import argparse
from typing import Any

from elman.cli import options, show


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "info",
        help="what is in a run: parameters by block, data, best epoch, digests",
        description="What is in a run: parameters by block, where its text came from, its best epoch, and digests of"
        " the text and the weights.",
    )
    options.add_run(parser)
    options.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collect and print."""
    from elman.learning import checkpoint
    from elman.learning.checkpoint import digest_of, load
    from elman.tasks.open import open_run

    loaded = open_run(args.folder)
    model, facts = loaded.model, loaded.saved
    parameters = dict(model.named_parameters())
    info: dict[str, Any] = {
        "run": str(args.folder),
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
        "model_digest": digest_of(checkpoint.model_tensors(model)),
    }
    last = loaded.path / "checkpoint.safetensors"
    if last.exists():
        tensors, facts = load(last)
        info["last_step"] = facts["progress"]["step"]
        info["finished"] = facts["progress"]["finished"]
        info["last_digest"] = digest_of(tensors)
    if args.json:
        show.print_json(info)
        return 0
    rows = [[f"  {block}", f"{count:,}"] for block, count in info.pop("blocks").items()]
    values = [
        [key.replace("_", " "), f"{value:,}" if type(value) is int else str(value)] for key, value in info.items()
    ]
    at = next(index for index, row in enumerate(values) if row[0] == "parameters") + 1
    show.print_table(info["title"], ["", "value"], [*values[:at], *rows, *values[at:]])
    return 0


def _blocks(parameters: dict[str, Any]) -> dict[str, int]:
    """Parameters of each block: encoder, each layer of the core, contexts, choice."""
    blocks: dict[str, int] = {}
    for name, tensor in parameters.items():
        parts = name.split(".")
        block = ".".join(parts[:3] if parts[:2] == ["core", "layers"] else parts[: min(2, len(parts) - 1)])
        blocks[block] = blocks.get(block, 0) + tensor.numel()
    return blocks
