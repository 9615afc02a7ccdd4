"""Claims whose figures are computed from nothing, and a folder of runs that were not trained."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, Measurement
from elman.study.comparison import Bound, lower

ERRORS = ClaimMeasure("error", {"error": "mean error"})


@dataclasses.dataclass(frozen=True)
class Error:
    """An arm whose error grows by a tenth of `step` with every seed after the first, and falls from its double."""

    first: float
    step: float = 0.1

    def __call__(self, seed: int, _: str | None) -> Measurement:
        error = self.first + self.step * (seed - 1)
        return Measurement({"error": error}, {"hours": [1.0, 2.0, 3.0], "error so far": [2 * error, math.inf, error]})


def row(split: str, nll: float | None = 0.0, **others: Any) -> dict[str, Any]:
    """A row of results.json."""
    return {"split": split, "nll": nll, "perplexity": 1.0, "tokens": 100, **others}


def claim(name: str, a: Error, b: Error, **changes: Any) -> Claim:
    """That the error of `a` is lower than that of `b`."""
    made = Claim(
        name=name,
        sentence=f"the error of a is lower ({name})",
        source="nowhere",
        arms=(Arm("a", Computation(a, 0.1)), Arm("b", Computation(b, 0.2))),
        measure=ERRORS,
        comparisons=(lower("error", "a", "b"), Bound("error", "a", 100.0)),
        published={"a": "1.5 ± 0.1", "b": "<unk> | 3"},
        seeds=3,
    )
    return dataclasses.replace(made, **changes)


def write_log(folder: Path, nats: list[float], averaged_from: int | None = None, seconds: float = 30.0) -> Path:
    """The metrics.jsonl of a run with a validation per epoch, so many seconds each."""
    folder.mkdir(parents=True)
    lines = [
        {
            "kind": "valid", "step": 10 * epoch, "epoch": float(epoch), "nll": value, "perplexity": 2.718281828**value,
            "seconds": seconds * epoch, "averaged": averaged_from is not None and epoch >= averaged_from,
        }
        for epoch, value in enumerate(nats, start=1)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder
