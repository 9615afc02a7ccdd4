import json
import math
import re
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.report.metrics import SavedModel, read_metrics, with_model

TRAIN = {
    "kind": "train",
    "step": 50,
    "epoch": 0.5,
    "loss": 5.0,
    "perplexity": 148.4,
    "seconds": 9.0,
    "tokens_per_s": 7.0,
}
VALID = {
    "kind": "valid",
    "step": 100,
    "epoch": 1.0,
    "nll": 4.0,
    "perplexity": 54.6,
    "seconds": 20.0,
    "best": True,
}
EVENT = {"kind": "event", "step": 100, "epoch": 1.0, "event": "averaging", "message": "now"}


def write(path: Path, *lines: object, end: str = "\n") -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end)
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "metrics.jsonl"


def test_lines_are_sorted_by_kind(file):
    metrics = read_metrics(write(file, TRAIN, VALID, EVENT))
    assert [len(metrics.train), len(metrics.valid), len(metrics.events)] == [1, 1, 1]
    assert metrics.best is metrics.valid[0]
    assert (metrics.seconds, metrics.epochs, metrics.tokens_per_s) == (20.0, 1.0, 7.0)
    assert metrics.seconds_at(99) == 9.0
    assert math.isnan(metrics.events[0].seconds)


def test_best_is_the_lowest_finite_validation(file):
    worse, broken = {**VALID, "nll": 4.5}, {**VALID, "nll": math.nan}
    metrics = read_metrics(write(file, broken, worse, VALID, worse))
    assert metrics.best.nll == 4.0


def test_a_file_without_lines_has_no_figures(file):
    metrics = read_metrics(write(file, "", end=""))
    assert metrics.best is None
    assert math.isnan(metrics.seconds)
    assert math.isnan(metrics.epochs)
    assert math.isnan(metrics.tokens_per_s)


def test_a_half_written_last_line_is_ignored(file):
    for cut in range(1, len(json.dumps(VALID))):
        metrics = read_metrics(write(file, TRAIN, json.dumps(VALID)[:cut], end=""))
        assert (len(metrics.train), len(metrics.valid)) == (1, 0), cut


def test_a_letter_cut_in_two_is_ignored(file):
    whole = json.dumps({**EVENT, "message": "é"}, ensure_ascii=False).encode()
    file.write_bytes(json.dumps(TRAIN).encode() + b"\n" + whole[: whole.index("é".encode()) + 1])
    assert len(read_metrics(file).train) == 1


def test_a_whole_last_line_without_its_line_break_counts(file):
    assert len(read_metrics(write(file, TRAIN, VALID, end="")).valid) == 1


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ('{"kind": "tr', "Unterminated string"),
        ("[1, 2]", "Expected `object`"),
        ("7", "Expected `object`"),
        ('{"kind": "valid", "step": 1}', "missing required field"),
        (json.dumps({**TRAIN, "step": "two"}), "Expected `int`"),
        ('{"step": 1}', "missing required field `kind`"),
    ],
)
def test_a_damaged_line_is_named(file, damage, found):
    write(file, TRAIN, damage, VALID)
    with pytest.raises(UserError, match=re.escape(f"{file}, line 2: not a line of metrics (")) as caught:
        read_metrics(file)
    assert found in str(caught.value)
    assert str(caught.value).endswith("remove the line or restore the file")


def test_a_damaged_last_line_with_its_line_break_is_named(file):
    with pytest.raises(UserError, match="line 2: not a line of metrics"):
        read_metrics(write(file, TRAIN, '{"kind": "va'))


def test_unknown_kinds_and_blank_lines_are_passed_over(file):
    metrics = read_metrics(write(file, TRAIN, "", {"kind": "weather", "step": 3}, VALID))
    assert (len(metrics.train), len(metrics.valid)) == (1, 1)


def test_infinite_perplexity_is_read(file):
    metrics = read_metrics(write(file, {**TRAIN, "perplexity": math.inf, "loss": math.nan}))
    assert math.isinf(metrics.train[0].perplexity)


def test_a_number_that_was_not_finite_is_null(file):
    metrics = read_metrics(write(file, {**TRAIN, "loss": None, "grad_norm": None}, VALID))
    assert math.isnan(metrics.train[0].loss)
    assert metrics.best.nll == 4.0


def test_the_model_of_a_stop_is_the_last_validation(file):
    """A run that was out of time may hold a better model than its lines tell of."""
    metrics = read_metrics(write(file, VALID, {**TRAIN, "step": 150, "epoch": 1.5, "seconds": 30.0}))
    stopped = with_model(metrics, SavedModel(step=150, epoch=1.5, valid_nll=3.5))
    assert (stopped.best.epoch, stopped.best.nll, stopped.best.seconds) == (1.5, 3.5, 30.0)
    assert stopped.best.perplexity == pytest.approx(math.exp(3.5))
    early = read_metrics(write(file, {**EVENT, "step": 3, "seconds": 27.0}))
    assert with_model(early, SavedModel(step=3, epoch=0.1, valid_nll=9.0)).best.seconds == 27.0
    assert with_model(metrics, SavedModel(step=100, epoch=1.0, valid_nll=4.0)) == metrics
    assert with_model(metrics, None) == metrics


def test_epochs_are_counted_over_all_phases(file):
    """A run counts those of fine-tuning from 0; a resumed run repeats some of them."""
    places = [(0, 1.0), (0, 2.0), (0, 1.5), (0, 2.5), (1, 1.0), (1, 2.0), (1, 1.0)]
    lines = [
        {**VALID, "step": step, "phase": phase, "epoch": epoch} for step, (phase, epoch) in enumerate(places, start=1)
    ]
    begun = {**EVENT, "phase": 1, "epoch": 0.0, "event": "fine-tune"}
    metrics = read_metrics(write(file, *lines[:4], begun, *lines[4:], {**EVENT, "epoch": 3.0}))
    assert [check.epoch for check in metrics.valid] == [1.0, 2.0, 1.5, 2.5, 3.5, 4.5, 3.5]
    assert [event.epoch for event in metrics.events] == [2.5, 5.5], "one without a phase belongs to the present one"
    assert metrics.epochs == 4.5
    stopped = with_model(metrics, SavedModel(step=8, epoch=2.25, valid_nll=3.5))
    assert stopped.best.epoch == 4.5, "as far as is known"
