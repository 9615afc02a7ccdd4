"""State files, where a text was left, so that a later command can continue it; and the seed of random draws."""

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elman.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor

    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.network.state import State
    from elman.tasks.text.run import TextRun


class Saved(NamedTuple):
    """The content of a state file."""

    path: Path
    tensors: "dict[str, Tensor]"
    facts: dict[str, Any]


def save(
    path: Path,
    loaded: "TextRun",
    state: "State",
    unread: list[int],
    stream: "AdaptiveStream | None",
    statistics_tokens: int | None,
    draws: "Generator | None" = None,
) -> None:
    """Write the state, the symbols still to be read, the weights and rule of an adapting stream, and the generator.

    Words beyond the vocabulary are kept as `<unk>`.
    """
    from elman.learning import checkpoint
    from elman.network.state import leaves

    size = len(loaded.vocabulary)
    facts: dict[str, Any] = {
        "vocabulary": loaded.vocabulary.digest,
        "recipe": loaded.recipe.title,
        "model": _digest(loaded),
        "run": str(loaded.path),
        "unread": [symbol if symbol < size else loaded.vocabulary.unk for symbol in unread],
    }
    tensors = {str(index): leaf for index, leaf in enumerate(leaves(state))}
    if stream is not None:
        adapted, rule = stream.saved()
        tensors, facts = tensors | adapted, facts | rule | {"statistics_tokens": statistics_tokens}
    if draws is not None:
        tensors, facts = tensors | {"draws": draws.get_state()}, facts | {"drawn_on": draws.device.type}
    checkpoint.save(path, tensors, facts)


def draws(saved: Saved | None, seed: int | None, device: "torch.device", temperature: float) -> "Generator":
    """Random numbers: by the seed if given, else as a state from the same kind of device left them, else afresh."""
    import torch

    generator = torch.Generator(device)
    if seed is None and saved is not None and saved.facts.get("drawn_on") == device.type:
        generator.set_state(saved.tensors["draws"])
        return generator
    return generator.manual_seed(chosen_seed(seed, temperature))


def chosen_seed(seed: int | None, temperature: float = 1.0) -> int:
    """The given seed, or a random one, printed so that it can be given; 0 where the temperature 0 leaves no chance."""
    if seed is not None or temperature == 0:
        return seed or 0
    fresh = secrets.randbelow(1_000_000_000)
    print(f"seed {fresh}", file=sys.stderr)
    return fresh


def load(path: Path, loaded: "TextRun") -> Saved:
    """Read a state file; raises UserError where it does not exist, is damaged, or belongs to another model."""
    from elman.learning import checkpoint

    if not path.is_file():
        raise UserError(f"{path}: no such state file; give one that --save-state wrote")
    try:
        tensors, facts = checkpoint.load(path)
    except UserError as error:
        raise UserError(f"{str(error).partition(';')[0]}; give a state that --save-state wrote") from None
    known = {"vocabulary": loaded.vocabulary.digest, "recipe": loaded.recipe.title, "model": _digest(loaded)}
    if "unread" not in facts or any(facts.get(name) != value for name, value in known.items()):
        raise UserError(f"{path}: the state of another model; it was saved from {facts.get('run', 'elsewhere')}")
    # Views of the file lie at any address, and a product may depend on that in its last bit.
    return Saved(path, {name: tensor.clone() for name, tensor in tensors.items()}, facts)


def begin(loaded: "TextRun", ids: list[int], saved: Saved | None) -> "tuple[list[int], State]":
    """The symbols to read first and the state before them, for a text that is begun or continued.

    Raises UserError where the state belongs to a stream that adapts.
    """
    if saved is None:
        return [loaded.first, *ids], loaded.begin()
    from elman.network.state import numbered, rebuild

    if "rule" in saved.facts:
        raise UserError(f"{saved.path}: saved by a stream that adapts; add --adapt to continue it")
    leaves = (leaf.to(loaded.device) for leaf in numbered(saved.tensors))
    return [*saved.facts["unread"], *ids], rebuild(loaded.begin(), leaves)


def _digest(loaded: "TextRun") -> str:
    from elman.learning.checkpoint import digest_of, model_tensors

    return digest_of(model_tensors(loaded.model))
