"""State files: where a text was left, so that a later command goes on with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

    from elman.evaluation.online import AdaptiveStream
    from elman.run import Run
    from elman.state import State


def save(
    path: Path,
    loaded: "Run",
    state: "State",
    unread: list[int],
    stream: "AdaptiveStream | None",
    statistics_tokens: int | None,
) -> None:
    """Write the state, the symbols to be read from it on, and what a stream that adapts has learnt and learns by."""
    from elman.learning import checkpoint
    from elman.state import leaves

    facts: dict[str, Any] = {
        "vocabulary": loaded.vocabulary.digest,
        "recipe": loaded.recipe.title,
        "model": _digest(loaded),
        "run": str(loaded.path),
        "unread": unread,
    }
    tensors = {str(index): leaf for index, leaf in enumerate(leaves(state))}
    if stream is not None:
        adapted, rule = stream.saved()
        tensors, facts = tensors | adapted, facts | rule | {"statistics_tokens": statistics_tokens}
    checkpoint.save(path, tensors, facts)


def load(path: Path, loaded: "Run") -> "tuple[dict[str, Tensor], dict[str, Any]]":
    """The tensors and facts of a state file.

    Raises:
        UserError: it is not there, damaged, or of another model.

    """
    from elman.learning import checkpoint

    tensors, facts = checkpoint.load(path)
    known = {"vocabulary": loaded.vocabulary.digest, "recipe": loaded.recipe.title, "model": _digest(loaded)}
    if "unread" not in facts or any(facts.get(name) != value for name, value in known.items()):
        raise UserError(f"{path}: the state of another model; it was saved from {facts.get('run', 'elsewhere')}")
    return tensors, facts


def _digest(loaded: "Run") -> str:
    from elman.learning.checkpoint import digest_of
    from elman.learning.snapshot import model_tensors

    return digest_of(model_tensors(loaded.model))
