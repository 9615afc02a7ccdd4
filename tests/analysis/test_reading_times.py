"""Regressions of reading times beside statsmodels by hand, and simulated readers whose effects are known."""

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("statsmodels")
import pandas as pd
import statsmodels.formula.api as smf

from elman.analysis.reading_times import (
    SURPRISAL,
    Regression,
    Term,
    analyse,
    choose,
    fit,
    folds_of,
    frequencies,
    lagged,
    lags_of,
    random_design,
)
from elman.data.reading_times import ReadingTimes, Word
from elman.errors import UserError

TRUE = {SURPRISAL: 5.0, f"{SURPRISAL}, 1 before": 2.0, "length": 3.0}


def simulated(seed, readers=12, items=24, size=9):
    """Predictors of the words, items and readers of times, and times in ms."""
    rng = np.random.default_rng(seed)
    words = [Word(str(item), item, place == 0, "w") for item in range(items) for place in range(size)]
    bits, length = rng.gamma(2.0, 3.0, len(words)), rng.integers(1, 11, len(words)).astype(float)
    predictors = {**lags_of(SURPRISAL, bits, words, 1), "length": length}
    at = np.tile(np.flatnonzero(~np.isnan(predictors[f"{SURPRISAL}, 1 before"])), readers)
    reader = np.repeat(np.arange(readers), len(at) // readers)
    x = {name: values[at] for name, values in predictors.items()}
    item = at // size
    random = rng.normal(0, 40, readers)[reader] + rng.normal(0, 15, items)[item]
    y = 300 + sum(TRUE[name] * values for name, values in x.items()) + random + rng.normal(0, 60, len(at))
    return x, item, reader, y


def terms_of(reader, item, by=None):
    one = np.ones(len(reader))
    terms = [Term("subject", reader, one), Term("item", item, one)]
    return terms if by is None else [*terms, Term("slope", reader, by)]


def by_hand(x, item, reader, y, part=slice(None), slope=""):
    """The same model by the formulas of statsmodels, of all rows."""
    frame = pd.DataFrame({"y": y, "item": item, "reader": reader, **{f"x{n}": v for n, v in enumerate(x.values())}})[
        part
    ]
    parts = {"subject": "0 + C(reader)", "item": "0 + C(item)"} | ({"slope": slope} if slope else {})
    formula = "y ~ " + " + ".join(f"x{n}" for n in range(len(x)))
    return smf.mixedlm(formula, frame, groups=np.zeros(len(frame)), vc_formula=parts).fit(
        reml=False, method=["powell"], ftol=1e-11
    )


@pytest.mark.parametrize("slopes", [False, True])
def test_a_fit_is_that_of_statsmodels_on_all_rows(slopes):
    x, item, reader, y = simulated(0)
    by = x[SURPRISAL] - x[SURPRISAL].mean()
    y = y + np.random.default_rng(9).normal(0, 3, 12)[reader] * by
    regression = Regression(x, terms_of(reader, item, by if slopes else None))
    ours = regression.fitted(y)
    theirs = by_hand(x, item, reader, y, slope="0 + C(reader):I(x0 - x0.mean())" if slopes else "")
    np.testing.assert_allclose(ours.coefficients, theirs.fe_params, rtol=1e-4)
    np.testing.assert_allclose(ours.errors, theirs.bse_fe, rtol=3e-3)  # theirs are not for given variances
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-3)
    assert ours.residual == pytest.approx(theirs.scale, rel=1e-4)
    named = dict(zip(theirs.model.exog_vc.names, theirs.vcomp, strict=True))
    for name, variance in ours.variances.items():
        assert variance == pytest.approx(named[name], rel=5e-3, abs=0.05)


def test_items_left_out_are_predicted_by_the_others_alone():
    x, item, reader, y = simulated(1, readers=6, items=9)
    regression = Regression(x, terms_of(reader, item))
    folds = folds_of([str(one) for one in item], 3, seed=0)
    assert np.array_equal(sum(folds), np.ones(len(y)))
    assert all(not set(item[one]) & set(item[~one]) for one in folds)
    assert [len(set(item[one])) for one in folds] == [3, 3, 3]
    assert len(folds_of([str(one) for one in item], 20, seed=0)) == 9
    found = regression.held_out(y, folds)
    inside = folds[0]
    theirs = by_hand(x, item, reader, y, part=~inside)
    effects = theirs.random_effects[0.0]
    readers = np.array([effects[f"subject[C(reader)[{one}]]"] for one in range(6)])
    mean = theirs.fe_params.to_numpy() @ regression.x.T + readers[reader]
    variances = dict(zip(theirs.model.exog_vc.names, theirs.vcomp, strict=True))
    density = stats.norm.logpdf(y, mean, np.sqrt(theirs.scale + variances["item"]))
    np.testing.assert_allclose(found[inside], density[inside], atol=2e-3)
    # Other times of the items of a part change nothing in what is expected of them.
    moved = np.where(inside, y + 100.0, y)
    again = regression.held_out(moved, folds)
    shift = stats.norm.logpdf(moved, mean, np.sqrt(theirs.scale + variances["item"]))
    np.testing.assert_allclose(again[inside], shift[inside], atol=2e-3)


def test_known_effects_are_recovered():
    x, item, reader, y = simulated(2, readers=20, items=30)
    terms, rng = terms_of(reader, item), np.random.default_rng(0)
    base = {"length": x["length"]}
    order = rng.permutation(len(y))
    wrong = {name: values[order] for name, values in x.items() if name != "length"}
    models = {"true": Regression(base | x, terms), "permuted": Regression(base | wrong, terms)}
    facts, fits = analyse(Regression(base, terms), models, y, [str(one) for one in item], 5, 0)
    found = fits["true"]
    effects = zip(models["true"].predictors, found.coefficients[1:], found.errors[1:], strict=True)
    true = {name: (value, error) for name, value, error in effects}
    for name, value in TRUE.items():
        assert abs(true[name][0] - value) < 3 * true[name][1]
    assert fits["true"].coefficients[0] == pytest.approx(300, abs=45)
    for name, spread in (("subject", 40), ("item", 15)):
        assert fits["true"].variances[name] == pytest.approx(spread**2, rel=0.6)
    good, bad = facts["held_out"]
    assert good["low"] > 0.01
    assert good["p_holm"] < 0.02
    assert bad["low"] < 0
    assert abs(bad["difference"]) < 0.002
    (pair,) = facts["pairs"]
    assert (pair["a"], pair["b"]) == ("true", "permuted")
    assert pair["high"] < 0
    row = facts["models"][0]
    assert row["df"] == 2
    assert row["delta"] * len(y) == pytest.approx(fits["true"].log_likelihood - fits["baseline"].log_likelihood)


def test_intervals_hold_the_true_effect():
    """Of 95 % they do in most of some simulations."""
    held = 0
    for seed in range(12):
        x, item, reader, y = simulated(100 + seed, readers=8, items=12)
        found = Regression(x, terms_of(reader, item)).fitted(y)
        held += abs(found.coefficients[1] - TRUE[SURPRISAL]) < 1.96 * found.errors[1]
    assert held >= 10


def test_predictors_that_say_the_same_are_refused():
    x, item, reader, y = simulated(3, readers=4, items=4)
    twice = {**x, "again": 2 * x[SURPRISAL] + 1}
    terms = terms_of(reader, item)
    with pytest.raises(UserError, match="sum of others"):
        Regression(twice, terms).fitted(y)
    with pytest.raises(UserError, match="constant"):
        fit(np.ones((len(y), 2)), random_design(terms), y, terms)
    with pytest.raises(UserError, match="there is one"):
        folds_of(["1"] * 5, 3, 0)


def test_lags_stay_within_a_text():
    words = [Word("1", 0, True, "a"), Word("1", 0, False, "b"), Word("2", 1, True, "c"), Word("2", 1, False, "d")]
    values = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(lagged(values, words, 1), [np.nan, 1, np.nan, 3])
    np.testing.assert_array_equal(lagged(values, words, 2), [np.nan] * 4)
    assert list(lags_of("x", values, words, 1)) == ["x", "x, 1 before"]


def test_times_are_left_out_for_one_reason_each():
    words = [Word("1", 0, place == 0, str(place)) for place in range(4)]
    times = ReadingTimes(words, {}, np.array([0, 1, 1, 2, 3, 3]), [], np.array([300, 50, np.nan, 300, 300, 5000.0]))
    used, left = choose(times, [np.array([1, 1, np.nan, 1.0])], 1, 100, 3000)
    assert used.tolist() == [False] * 4 + [True, False]
    assert list(left.values()) == [1, 2, 1, 1]


def test_frequencies_are_found_without_marks_and_capitals():
    words = [Word("1", 0, False, one) for one in ("The", "end,", "Bob's", "(zebra)", "--")]
    assert frequencies(words, {"the": 9, "end": 3, "Bob's": 2}).tolist() == [9, 3, 2, 0, 0]
