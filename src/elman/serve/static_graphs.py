"""The graphs of one model of a page without a server, compared with the model and rounded to eight bits."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from elman.data.text.subwords import Subwords
from elman.errors import UserError
from elman.export.onnx import write_int8
from elman.export.step import TOLERANCE, Comparison


class Differences(NamedTuple):
    """The largest differences of log-probabilities from the model (nats): of the graph in float32, of the one written.

    So many tokens, or steps of music, were compared.
    """

    exact: float
    written: float
    compared: int


def write_graphs(
    folder: Path, write: Callable[[Path], None], differ: Callable[[Path], Comparison], *, int8: bool
) -> Differences:
    """Put the graphs that `write` makes into a folder; raises UserError where in float32 they are not the model."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        whole = Path(scratch)
        write(whole)
        exact = differ(whole)
        if not exact.difference <= TOLERANCE:
            raise UserError(
                f"the graph is not the model: they differ by {exact.difference:.2g} nats; nothing was written"
            )
        for path in sorted(whole.glob("*.onnx")):
            if int8:
                write_int8(path, folder / path.name)
            else:
                shutil.copyfile(path, folder / path.name)
    return Differences(exact.difference, differ(folder).difference if int8 else exact.difference, exact.tokens)


def beginning_facts(beginning: Sequence[Tensor]) -> list[dict[str, Any]]:
    """The tensors with which a state begins; without values they are zeros."""
    return [
        {"shape": list(one.shape), "dtype": str(one.dtype)[6:], "values": one.flatten().tolist() if one.any() else None}
        for one in beginning
    ]


def subword_facts(subwords: Subwords | None, kind: str) -> dict[str, Any] | None:
    """What the page needs to cut a text into subwords: how, the pieces that a text is searched for, their scores."""
    if subwords is None:
        return None
    return {"kind": kind, "pieces": list(subwords.scores), "scores": list(subwords.scores.values())}
