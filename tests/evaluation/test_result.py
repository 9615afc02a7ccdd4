"""The record of an evaluation: written without empty fields, read back as it was."""

import json
import math

import msgspec
import pytest

from elman.evaluation.result import RESULTS, Estimate, OutputQuality, Result, recorded_results

MUSIC = Result(split="test", nll=3.5, perplexity=33.1, tokens=640, pieces=4, accuracy=0.5, context="whole pieces")
OUTPUT = OutputQuality(
    beam=2,
    copy_unknown=False,
    measures=[Estimate("BLEU", 20.0, 18.0, 22.0)],
    baseline=[],
    baseline_name="copied source",
)


def test_fields_that_do_not_apply_are_not_written():
    assert MUSIC.as_dict() == {
        "split": "test",
        "nll": 3.5,
        "perplexity": 33.1,
        "accuracy": 0.5,
        "tokens": 640,
        "pieces": 4,
        "context": "whole pieces",
    }
    written = msgspec.structs.replace(MUSIC, output=OUTPUT, settings={"rule": {"lr": 0.1}, "cache": None}).as_dict()
    assert written["settings"] == {"rule": {"lr": 0.1}, "cache": None}
    assert written["output"]["copy_unknown"] is False
    assert "constrained" not in written["output"]
    assert written["output"]["measures"] == [
        {"name": "BLEU", "value": 20.0, "low": 18.0, "high": 22.0, "signature": ""}
    ]


def test_a_loss_that_is_null_is_infinite(tmp_path):
    row = {**MUSIC.as_dict(), "nll": None, "perplexity": None, "nrmse_by_column": {"x": None, "y": 1.0}}
    (tmp_path / RESULTS).write_text(json.dumps([row]))
    (found,) = recorded_results(tmp_path)
    assert (found.nll, found.perplexity, found.nrmse_by_column) == (math.inf, math.inf, {"x": math.inf, "y": 1.0})


@pytest.mark.parametrize("result", [MUSIC, msgspec.structs.replace(MUSIC, output=OUTPUT, method="static")])
def test_what_is_written_is_read_back(result):
    assert msgspec.convert(json.loads(json.dumps(result.as_dict())), Result) == result


def test_other_keys_and_null_are_read_over():
    assert msgspec.convert({**MUSIC.as_dict(), "bits_per_word": None, "weather": 3}, Result) == MUSIC
