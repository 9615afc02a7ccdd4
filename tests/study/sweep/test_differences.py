"""Settings whose loss is in nats, which may be negative, are compared by differences; perplexities by ratios."""

import math

import pytest

from elman.config.data import Data, reporting_of
from elman.config.parts import members
from elman.study.statistics import judge
from elman.study.sweep import conduct
from elman.study.sweep.conduct import reading_of_tests
from elman.study.sweep.found import Found, Paired, Row


def row(label, nll, test=None):
    return Row(
        label=label,
        settings={"clip": label},
        state="done",
        seeds=[1, 2],
        states=["done", "done"],
        nll=nll,
        mean=sum(nll) / 2,
        folders=["a", "b"],
        test=test,
    )


@pytest.mark.parametrize("kind", sorted(members(Data)))
def test_the_best_against_another(kind):
    best, other = [-0.5, -0.3], [-0.25, -0.1]
    judged = judge([a - b for a, b in zip(best, other, strict=True)], high=0.0)
    rows = [row("1", best), row("2", other, Paired(judged))]
    found = Found(rows=rows, best=rows[0], best_test=None, scale=reporting_of(kind))
    heading, shown = found.header()[3], found.table()[1][3]
    interval = found.table()[1][4]
    if kind in ("text", "pairs"):
        assert (heading, shown) == ("ratio", f"{math.exp(-0.225):.3f}")
        assert interval == f"{math.exp(judged.low):.3f} to {math.exp(judged.high):.3f}"
        assert "the ratio of their perplexities, best / other" in reading_of_tests(found)
    else:
        assert (heading, shown) == ("difference", "-0.2250")
        assert interval == f"{judged.low:.4f} to {judged.high:.4f}"
        assert "the difference of their nats per" in reading_of_tests(found)
        assert "logarithms" not in reading_of_tests(found)


def test_a_setting_with_a_diverged_seed_has_dots_and_no_mean(monkeypatch):
    """As its table calls it diverged; one whose seeds all diverged is not drawn."""
    drawn = []
    monkeypatch.setattr(conduct, "svg", lambda figure, *_: drawn.append(figure.axes[0]) or "")
    rows = [row("1", [4.0, 4.1]), row("2", [4.2, math.inf]), row("3", [math.inf] * 2)]
    conduct._every_seed(Found(rows=rows, best=rows[0], best_test=None, scale=reporting_of("text")))
    assert [tick.get_text() for tick in drawn[0].get_yticklabels()] == ["1", "2"]
    dots = [len(line.get_xdata()) for line in drawn[0].lines if line.get_marker() == "o"]
    assert (dots, sum(line.get_marker() == "None" for line in drawn[0].lines)) == ([2, 1], 1)
