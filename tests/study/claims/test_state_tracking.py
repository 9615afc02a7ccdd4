"""What the claim about parity measures."""

from elman.study.claims import bits
from elman.study.claims.bits import PARITY_OF_LINEAR, Tracking

TINY = Tracking("lstm", 6, units=4, columns=3, trained=5, beyond=9, check_every=4, checked=50)


def test_parity_is_measured_before_and_while_it_is_learnt():
    found = TINY(0, None)
    assert set(found.figures) == set(PARITY_OF_LINEAR.measure.metrics)
    assert len(found.curves["error"]) == 3
    assert all(0.3 < error < 0.7 for error in found.curves["error"])
    assert found.figures["error"] == found.curves["error"][-1]
    again, other = TINY(0, None), TINY(1, None)
    assert again == found != other


def test_lengths_beyond_the_trained_ones_are_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(bits, "error_of", lambda model, task, sample: read.append(len(sample.batch.inputs)) or 0.1)
    assert TINY(0, None).figures["beyond"] == 0.1
    assert read == [5, 5, 5, 9]
