"""Recipes as they were written before `data` had a kind, so that older run folders and recipes are still read."""

from typing import Any

_EVALUATION = {
    "text": ("streams", "length", "warm_up", "skip_first"),
    "music": ("streams", "length"),
    "pairs": ("beam", "copy_unknown", "constrained"),
}
"""The kinds that earlier recipes knew, and what of their table `evaluation` belonged to each."""


def in_present_form(raw: dict[str, Any]) -> dict[str, Any]:
    """The tables of a recipe with `data` in the present form; a recipe that has it already is returned as it is.

    Earlier recipes had the tables `data.text`, `data.music` and `data.pairs` beside each other, and `evaluation` at the
    top; the encoder and the source of the model decided the kind.
    """
    data, model, evaluation = raw.get("data", {}), raw.get("model", {}), raw.get("evaluation", {})
    tables = all(isinstance(table, dict) for table in (data, model, evaluation))
    if not tables or not data.keys() <= {"corpus", "grammar", *_EVALUATION}:
        return raw
    encoder = model.get("encoder")
    frames = isinstance(encoder, dict) and encoder.get("kind") == "frames"
    kind = "pairs" if model.get("source") is not None else "music" if frames else "text"
    options = data.get(kind, {})
    if not isinstance(options, dict):
        return raw
    present: dict[str, Any] = {"kind": kind, **options}
    foreign = {key for name, keys in _EVALUATION.items() for key in keys if name != kind} - {*_EVALUATION[kind]}
    own = {key: value for key, value in evaluation.items() if key not in foreign}
    present |= {"evaluation": own} if own else {}
    for key in ("corpus", *(["grammar"] if kind == "text" else [])):
        present |= {key: data[key]} if key in data else {}
    return {key: value for key, value in raw.items() if key != "evaluation"} | {"data": present}


def moved_key(path: str) -> str | None:
    """Where an earlier key path is now; None where it is none."""
    first, *rest = path.split(".")
    if first == "evaluation":
        return ".".join(["data", first, *rest])
    return (
        ".".join(["data", *rest[1:]]) if first == "data" and rest[:1] and rest[0] in _EVALUATION and rest[1:] else None
    )
