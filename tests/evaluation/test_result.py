"""The record of an evaluation: written without empty fields, read back as it was."""

import json
import math

import msgspec
import pytest

from elman.evaluation.perplexity import Score
from elman.evaluation.result import RESULTS, Estimate, OutputQuality, Result, recorded_results, result_of

MUSIC = Result.of(split="test", nll=3.5, perplexity=33.1, tokens=640, pieces=4, accuracy=0.5, context="whole pieces")
OUTPUT = OutputQuality(
    beam=2,
    copy_unknown=False,
    measures=[Estimate("BLEU", 20.0, 18.0, 22.0)],
    baseline=[],
    baseline_name="copied source",
)


def with_output(**facts):
    return msgspec.structs.replace(MUSIC, measures=MUSIC.measures | {"output": OUTPUT}, **facts)


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
    written = with_output(settings={"rule": {"lr": 0.1}, "cache": None}).as_dict()
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


@pytest.mark.parametrize("result", [MUSIC, with_output(method="static")])
def test_what_is_written_is_read_back(result):
    assert result_of(json.loads(json.dumps(result.as_dict()))) == result


def test_other_keys_and_null_are_read_over():
    assert result_of({**MUSIC.as_dict(), "bits_per_word": None, "weather": "fine"}) == MUSIC


def test_keys_keep_their_order_and_members_are_read_back():
    row = {
        "run": "runs/a",
        "split": "test",
        "nll": 1.5,
        "perplexity": 4.5,
        "bits_per_token": 2.0,
        "accuracy": 0.5,
        "nrmse_by_column": {"x": 1.0},
        "tokens": 7,
        "unknown": 0,
        "pairs": 2,
        "context": "carried",
        "warm_up": 0,
        "model": "best",
        "output": msgspec.to_builtins(OUTPUT),
        "labels": {"majority": {"name": "a", "value": 1.0, "low": None, "high": None, "signature": ""}},
        "members": [MUSIC.as_dict()],
    }
    found = result_of(row)
    assert json.dumps(found.as_dict()) == json.dumps(row)
    assert (found.labels["majority"].value, found.members, found.nrmse) == (1.0, [MUSIC], None)
    with pytest.raises(msgspec.ValidationError):
        result_of(row | {"labels": {"majority": 3}})


def test_the_figures_of_a_score_stand_first_in_a_file():
    row = Score(6.0, 3).result("valid", bits_per_word=1.0, words=2).as_dict()
    numbers = [key for key in row if key in ("split", "nll", "perplexity", "bits_per_token", "bits_per_word", "tokens")]
    assert numbers == ["split", "nll", "perplexity", "bits_per_token", "bits_per_word", "tokens"]
