"""What the claim about copying measures."""

import numpy as np
import pytest

from elman.study.claims import bits
from elman.study.claims.bits import NTM_COPY, Copying, GradedCopying
from elman.study.lab import trial

TINY = Copying("ntm", 96, units=3, columns=4, trained=3, beyond=5, check_every=32, checked=2)


@pytest.mark.slow
def test_copying_is_measured_before_and_while_it_is_learnt():
    found = TINY(0, None)
    assert set(found.figures) == set(NTM_COPY.measure.metrics)
    assert len(found.curves["error"]) == 4
    assert all(0.2 < error < 0.8 for error in found.curves["error"]), "nothing is learnt from 96 sequences"
    again, other = TINY(0, None), TINY(1, None)
    assert again.curves == found.curves != other.curves


@pytest.mark.parametrize(("errors", "needed"), [((0.5, 0.2, 0.005, 0.02), 64), ((0.5, 0.2, 0.1, 0.05), 96)])
def test_sequences_are_counted_to_the_first_check_that_is_low_or_to_the_end(errors, needed, monkeypatch):
    read = {1: [], 2: [], 3: [], 5: []}

    def error_of(model, task, sample):
        """The next of the errors at each length, the last one from then on; at length 5 half a bit more."""
        length = len(sample.batch.inputs) // 2
        read[length].append(sample.batch.inputs)
        if length == 5:
            return errors[-1] + 0.5
        return errors[min(len(read[length]), len(errors)) - 1]

    monkeypatch.setattr(bits, "error_of", error_of)
    found = TINY(0, None)
    assert found.curves["error"] == pytest.approx(list(errors))
    assert found.figures["sequences"] == needed
    assert found.figures["error"] == pytest.approx(errors[-1])
    assert found.figures["beyond"] == pytest.approx(errors[-1] + 0.5)
    assert len(read[5]) == 1
    assert all((sample == read[3][0]).all() for sample in read[3]), "checks read the same sequences"


def test_the_worst_length_counts(monkeypatch):
    worst = {3: 0.01, 5: 0.04, 7: 0.02, 11: 0.5}
    monkeypatch.setattr(bits, "error_of", lambda model, task, sample: worst[len(sample.batch.inputs)])
    found = TINY(0, None).figures
    assert found["error"] == 0.04
    assert found["beyond"] == 0.5


def test_the_rate_falls_to_nought(monkeypatch):
    rates = []

    class Recorded(trial.Update):
        def __call__(self, batch, lr):
            rates.append(lr)
            return super().__call__(batch, lr)

    monkeypatch.setattr(trial, "Update", Recorded)
    TINY(0, None)
    assert rates == pytest.approx([TINY.lr * (24 - step) / 24 for step in range(24)])


def test_sequences_grow_from_two_vectors_and_some_are_blank(monkeypatch):
    longest = []

    def some_length(_, span):
        longest.append(span)
        return span

    monkeypatch.setattr(bits, "some_length", some_length)
    graded = GradedCopying("lstm", 40, columns=500, trained=5, grown=0.6)
    for step in range(1, 11):
        batch = graded.drawn(np.random.default_rng(step), step / 10)
        length = longest[-1]
        shown, due = batch.inputs[:length], batch.targets[length + 1 :]
        assert (shown[..., :-1] == due).all()
        assert (shown[..., -1] == 0).all()
        assert (batch.inputs[length, :, -1] == 1).all()
        blank = (shown == 0).all(-1).float().mean()
        assert 0.03 < blank < 0.09 if step > 6 else blank < 0.01
    assert longest == [2, 2, 3, 4, 5, 5, 5, 5, 5, 5]
