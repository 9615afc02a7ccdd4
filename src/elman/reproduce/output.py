"""What the output of a finished run on pairs is worth, as its results.json says."""

import json
from pathlib import Path

from elman.reproduce.claim import Measure, Measurement


def worth(folder: Path) -> Measurement:
    """Perplexity, every measure of the test output, and the same of the baseline as `MEASURE, baseline`."""
    rows = {row["split"]: row for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))}
    output = rows["test"]["output"]
    figures = {f"{split} perplexity": float(row["perplexity"]) for split, row in rows.items()}
    figures |= {one["name"]: float(one["value"]) for one in output["measures"]}
    figures |= {f"{one['name']}, baseline": float(one["value"]) for one in output["baseline"]}
    return Measurement(figures, {})


def of_output(name: str, baseline: str, *measures: str) -> Measure:
    """The measure of some of the measures; the first one's baseline, called `baseline`, stands beside them."""
    shown = {measure: measure for measure in measures}
    return Measure(
        name,
        {**shown, f"{measures[0]}, baseline": f"{measures[0]} of {baseline}", "test perplexity": "perplexity, test"},
        worth,
    )
