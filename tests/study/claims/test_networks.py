"""Jordan's network and Elman's: what their claim measures."""

from types import SimpleNamespace

import pytest

from elman.evaluation.statistics import Proportion
from elman.study.claims import networks
from elman.study.claims.networks import Movement, language


@pytest.mark.slow
def test_jordans_network_learns_to_move_by_itself_when_the_truth_is_fed_back():
    found = Movement("jordan", "forced", span=12, updates=200)(1, None).figures
    assert found["errors"] == 0
    assert 0 < found["excess"] < 0.05


def test_an_untrained_network_knows_nothing_of_movements():
    """Of 12 places and 6 speeds, about one symbol of 18 is right."""
    found = Movement("elman", "bptt-1", updates=0)(1, None).figures
    assert 2.5 < found["excess"] < 3.5
    assert found["errors"] > 0.75


def test_errors_of_language_are_those_across_embedded_clauses(monkeypatch):
    counts = {"0 levels": (90, 100), "1 level": (30, 40), "2 levels": (5, 10)}
    lines = [SimpleNamespace(label=label, accuracy=Proportion(*count)) for label, count in counts.items()]
    found = SimpleNamespace(by_levels=lines)
    monkeypatch.setattr(networks, "divergence", lambda run: 0.25)
    monkeypatch.setattr(networks, "TextRun", lambda folder: None)
    monkeypatch.setattr(networks, "options_of", lambda run, grammar: None)
    monkeypatch.setattr(networks, "examine", lambda run, options, count: found)
    assert language(None, 7).figures == {"excess": 0.25, "errors": pytest.approx(0.3)}
