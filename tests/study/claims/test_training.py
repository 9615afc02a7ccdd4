"""What is reported of a running training."""

import json

import pytest

from elman.config.toml import find, load_recipe
from elman.study.runs import PlannedRun


@pytest.mark.parametrize(
    ("recipe", "loss"), [("reproduce/small-characters.toml", "ppl 20.1"), ("music/nottingham-gru.toml", "nll 3.0000")]
)
def test_progress_is_in_the_unit_of_the_data(recipe, loss, tmp_path):
    run = PlannedRun("arm", load_recipe(find(recipe), ["training.epochs=2"]), tmp_path)
    assert run.progress == "arm, seed 1 begins"
    record = {"kind": "train", "phase": 0, "epoch": 1.5, "loss": 3.0, "perplexity": 20.0855}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    assert run.progress == f"arm, seed 1 at epoch 1.50 of 2, {loss}"
    (tmp_path / "metrics.jsonl").write_text(json.dumps(record | {"loss": None, "perplexity": None}) + "\n")
    assert run.progress == "arm, seed 1 at epoch 1.50 of 2"
