"""The linear part of series against numpy, its dates, shares, forecasts and backtests."""

import csv
import json

import numpy as np
import pytest
import torch

import elman
from elman.cli import main
from elman.config.toml import find, load_recipe
from elman.kinds.series.backtest import backtested
from elman.kinds.series.corpus import open_series
from elman.kinds.series.dates import following, frequency, read_dates, usual_seasons, written
from elman.kinds.series.evaluation import mase, seasonal, share_of
from elman.kinds.series.fitting import fit, seasons_of
from elman.kinds.series.linear import Linear
from elman.kinds.series.record import SeriesOptions
from elman.kinds.series.run import SeriesRun
from elman.network.output.density import Density, Rescaled
from elman.network.output.gaussian_mixture import GaussianMixtureChoice
from elman.tasks.evaluating import EvaluationOptions
from support.commands import refusal


def linear(**changes):
    one = {"difference": True, "season": None, "lags": (1, 3), "penalty": 0.0, "groups": ((0, 1),)}
    rng = np.random.default_rng(0)
    weights = tuple(map(tuple, rng.normal(size=(7, 2)).tolist()))
    one |= {"weights": (weights,), "mean": (0.5, -1.0, 2.0), "deviation": (2.0, 3.0, 0.5)}
    return Linear(**one | changes)


@pytest.mark.parametrize("difference", [False, True])
def test_the_prediction_is_the_equation(difference):
    rng = np.random.default_rng(1)
    values, known = rng.normal(size=(9, 2)), rng.normal(size=(9, 1))
    part = linear(difference=difference)
    _, found = part.predict(values, known)
    mean, deviation, weights = (np.array(one) for one in (part.mean, part.deviation, part.weights[0]))
    for t in range(4, 9):
        d = {lag: values[t - lag] - difference * values[t - lag - 1] for lag in (1, 3)}
        features = [1, *(d[1] - mean[:2]) / deviation[:2], *(d[3] - mean[:2]) / deviation[:2]]
        features += [(known[t - 1, 0] - mean[2]) / deviation[2], (known[t, 0] - mean[2]) / deviation[2]]
        expected = difference * values[t - 1] + mean[:2] + deviation[:2] * (np.array(features) @ weights)
        np.testing.assert_allclose(found[t], expected)
        ahead = part.ahead(values[None, t - 4 : t], known[None, t - 1 : t + 1])
        np.testing.assert_allclose(ahead[0], expected)


def test_missing_values_are_read_as_predicted():
    values = np.random.default_rng(2).normal(size=(12, 2))
    holed = values.copy()
    holed[6:8, 1] = np.nan
    filled, found = linear().predict(holed, np.zeros((12, 1)))
    np.testing.assert_array_equal(filled[:6], values[:6])
    np.testing.assert_array_equal(filled[:, 0], values[:, 0])
    np.testing.assert_allclose(filled[6:8, 1], found[6:8, 1])


def test_the_fit_is_ridge_regression_and_finds_a_recurrence():
    rng = np.random.default_rng(3)
    series, known = [0.0, 0.0], (rng.random((600, 1)) < 0.2).astype(float)
    for t in range(2, 600):
        series.append(1.3 * series[-1] - 0.6 * series[-2] + 2 * known[t, 0] + rng.normal(0, 0.3))
    values = np.array(series)[:, None]
    part = fit(values, known)
    assert not part.difference
    assert 2 in part.lags
    d = (values - part.mean[0]) / part.deviation[0]
    x = (known - part.mean[1]) / part.deviation[1]
    rows = np.arange(max(part.lags) + 1, 600)
    features = np.column_stack([np.ones(len(rows)), *(d[rows - lag] for lag in part.lags), x[rows - 1], x[rows]])
    squares = features.T @ features + part.penalty * len(rows) * np.eye(features.shape[1])
    expected = np.linalg.solve(squares, features.T @ d[rows])
    np.testing.assert_allclose(part.weights[0], expected, atol=1e-8)
    assert (values - part.predict(values, known)[1])[10:].std() == pytest.approx(0.3, abs=0.03)


def test_seasons_differences_and_columns_are_found():
    rng, time = np.random.default_rng(4), np.arange(400)
    season = 0.3 * time + 9 * rng.normal(size=40)[time % 40] + rng.normal(0, 1, 400)  # longer than the largest order
    assert 40 in seasons_of(season[:, None])
    part = fit(season[:, None], np.empty((400, 0)))
    assert part.season == 40
    assert (season[130:] - part.predict(season[:, None], np.empty((400, 0)))[1][130:, 0]).std() < 1.5
    walk = np.cumsum(rng.normal(size=(800, 1)), axis=0)
    assert fit(walk, np.empty((800, 0))).predict(walk, np.empty((800, 0)))[1][1:] == pytest.approx(walk[:-1], abs=0.5)
    cause = rng.normal(size=400)
    both = np.stack([cause, np.concatenate([[0], cause[:-1]]) + 0.1 * rng.normal(size=400)], axis=1)
    assert fit(both, np.empty((400, 0))).groups == ((0, 1),)
    assert fit(rng.normal(size=(400, 2)), np.empty((400, 0))).groups == ((0,), (1,))


def choice_by_numpy(v):
    """Differences, order and penalty of a column without seasons, by ridge regression on the rows before each part."""
    found = []
    for difference in (False, True):
        d = np.diff(v, prepend=v[0]) if difference else v
        mean, deviation = (np.diff(v) if difference else v).mean(), (np.diff(v) if difference else v).std()
        z, reach = (d - mean) / deviation, max(2, len(v) // 4)
        orders = [p for p in (0, 1, 2, 4, 8, 16, 32) if p < reach]
        parts = np.array_split(np.arange(min(orders[-1] + 1, len(v) // 3), len(v)), 8)
        for p in orders:
            x = np.stack([np.ones(len(v)), *(np.roll(z, lag) for lag in range(1, p + 1))], 1)
            for penalty in (1e-8, 1e-4, 1e-2, 0.1, 1.0, 1e4):
                errors = []
                for k in range(1, 8):
                    before = np.concatenate(parts[:k])
                    a, b = x[before], z[before]
                    w = np.linalg.solve(a.T @ a + penalty * len(before) * np.eye(p + 1), a.T @ b)
                    errors.append(np.mean((z[parts[k]] - x[parts[k]] @ w) ** 2))
                score = np.log(np.mean(errors)) + 2 * np.log(deviation)
                found.append((round(score / 0.002), 1 + p, difference, p, penalty))
    return min(found, key=lambda one: one[:2])[2:]


@pytest.mark.parametrize("seed", [3, 5, 8, 9, 11, 12])  # without seasons, differences or not
def test_the_choice_is_by_each_part_predicted_from_those_before(seed):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=90)
    for t in range(2, 90):
        v[t] += (0.4 + 0.1 * (seed % 6)) * v[t - 1] - 0.4 * v[t - 2]
    v = np.cumsum(v) if seed % 2 else v
    part = fit(v[:, None], np.zeros((90, 0)))
    difference, order, penalty = choice_by_numpy(v)
    assert (part.difference, part.lags, part.penalty) == (difference, tuple(range(1, order + 1)), penalty)


@pytest.mark.parametrize("rows", range(2, 14))
def test_a_few_rows_have_a_linear_part(rows):
    values = np.random.default_rng(rows).normal(size=(rows, 2))
    assert np.isfinite(fit(values, np.zeros((rows, 0))).predict(values, np.zeros((rows, 0)))[1]).all()
    holed = np.concatenate([values, np.full((60, 2), np.nan), values[:1]])
    known = np.zeros((len(holed), 0))
    assert np.isfinite(fit(holed, known).predict(holed, known)[1]).all()


def test_the_share_of_a_network_that_does_not_help_is_none():
    rng = np.random.default_rng(5)
    signal, noise = rng.normal(size=(2, 500, 1))
    assert share_of(signal, 0.5 * signal + 0.1 * noise) == pytest.approx(0.5, abs=0.02)
    assert share_of(signal, noise).tolist() == [0.0]
    assert share_of(-signal, signal).tolist() == [0.0]


def test_a_density_is_moved_to_a_share_of_its_mean():
    from types import SimpleNamespace

    from elman.network.output.choice import Surroundings
    from elman.network.output.gaussian import Gaussian

    torch.manual_seed(0)
    choice = Gaussian().build(Surroundings(3, 2))
    units = SimpleNamespace(mean=torch.tensor([1.0, 2.0]).double(), deviation=torch.tensor([2.0, 3.0]).double())
    share, context, target = torch.tensor([0.0, 0.5]), torch.randn(4, 2, 3), torch.randn(4, 2).double()
    moved, plain = Rescaled(choice, units, share), Rescaled(choice, units)
    np.testing.assert_allclose(
        moved.mean(context).detach(), (units.mean + units.deviation * share * choice.mean(context)).detach()
    )
    by = plain.mean(context) - moved.mean(context)
    each = [plain.log_prob(context[:, k : k + 1], target + by[:, k]) for k in range(2)]
    np.testing.assert_allclose(moved.log_prob(context, target).detach(), torch.cat(each, 1).detach(), rtol=1e-5)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["2020-01-31", "2020-02-29", "2020-03-31"], "2020-04-30"),
        (["31.1.2020", "1.2.2020"], "2020-02-02"),
        (["1/30/20", "1/31/20"], "2020-02-01"),
        (["2020Q1", "2020Q2"], "2020-07-01"),
        (["202001", "202002"], "2020-03-01"),
        (["1999", "2000", "2001"], "2002-01-01"),
        ([f"2020-05-{day:02}" for day in (4, 5, 6, 7, 8, 11, 12, 13, 14, 15)], "2020-05-18"),
        (["2020-01-01 22:00", "2020-01-01 22:30", "2020-01-01 23:00"], "2020-01-01 23:30"),
        (["1/1/2020 11:00 PM", "1/2/2020 12:00 AM"], "2020-01-02 01:00"),
    ],
)
def test_dates_are_continued(cells, expected):
    dates = read_dates(cells)[0]
    assert written(following(dates, 1)) == [expected]


def test_what_are_no_dates():
    assert read_dates(["2020-02-30", "2020-03-01"])[0] is None
    assert read_dates(["2020-03-02", "2020-03-01"])[0] is None
    assert read_dates(["1", "2", "3"])[0] is None
    hours = read_dates([f"2020-01-01 {hour:02}:00" for hour in range(24)])[0]
    assert (frequency(hours), usual_seasons(hours)) == (("seconds", 3600), [24, 168])
    assert usual_seasons(read_dates(["2020-01", "2020-02"])[0]) == [12]


def test_seasonal_prediction():
    before, values = np.arange(5.0)[:, None], np.arange(10.0, 13)[:, None]
    assert seasonal(2)(values, before).ravel().tolist() == [3, 4, 10]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("dated") / "visits.csv"
    rng, time = np.random.default_rng(6), np.arange(420)
    holiday = rng.random(420) < 0.1
    visits = 50 + 9 * np.sin(time * 2 * np.pi / 7) - 20 * holiday + rng.normal(size=420)
    days = np.datetime64("2020-01-01") + time
    rows = [
        f"{day},{'' if n % 50 == 9 else value},{closed:d}"
        for n, (day, value, closed) in enumerate(zip(days, visits, holiday, strict=True))
    ]
    path.write_text("\n".join(["day,visits,holiday", *rows]))
    return path


@pytest.fixture(scope="module")
def run(table):
    out = table.parent / "run"
    size = ["training.epochs=2", "model.core.sizes=[6]", "training.batch_size=2", "training.window.length=20"]
    recipe = load_recipe(find("series/table.toml"), [*size, "data.missing=mask", 'data.covariates=["holiday"]'])
    elman.train(recipe, out, data=table)
    return out


def test_a_model_is_never_worse_than_its_linear_part(run, table):
    made = SeriesRun(run)
    corpus = open_series(table, made.options)
    for name in ("valid", "test"):
        split = corpus.split(name)
        still = made.inputs.linear.means(split.values, split.known, split.before, np.array(made.inputs.mean))
        there = ~np.isnan(split.values[:, 0])
        error = np.sqrt(np.square(split.values - still)[there].mean()) / split.values[there].std()
        row = next(one for one in json.loads((run / "results.json").read_text()) if one["split"] == name)
        assert row["nrmse"] <= error * (1 if name == "valid" else 1.02) + 1e-6
        assert row["nrmse"] < 0.4
        assert 0.5 < row["coverage_80"] <= 1
        assert row["tokens"] == there.sum()


def test_a_density_that_has_no_probabilities_below_values_has_no_share_within_80_percent(run, monkeypatch):
    before = SeriesRun(run).evaluate()
    monkeypatch.setattr(GaussianMixtureChoice, "below", Density.below)
    found = SeriesRun(run).evaluate()
    assert (found.coverage_80, found.nrmse, found.nll) == (None, before.nrmse, before.nll)
    assert before.coverage_80 is not None


def test_the_share_within_80_percent_is_exact(run):
    """It is the share of values between the .1 and .9 quantiles, whatever is read side by side."""
    made = SeriesRun(run)
    split = made.corpus().split("test")
    found = made.evaluate(EvaluationOptions(streams=3, warm_up=len(split.values)))
    assert found.coverage_80 == made.evaluate().coverage_80
    ((batch, _),) = made.windows(split)
    trace, _ = made.model.trace(batch.inputs, made.model.begin(1))
    drawn = torch.stack([made.model.output.sample(trace)[batch.mask] for _ in range(4000)])
    below = (drawn < batch.targets[batch.mask]).double().mean(0)
    np.testing.assert_allclose(made.predict(split).below, below, atol=0.04)


def test_masked_values_do_not_change_the_training_loss(table):
    """A missing value is no target, and what stands in its place is predicted from what precedes it."""
    options = SeriesOptions(linear=True, missing="mask", covariates=("holiday",))
    corpus = open_series(table, options)
    split = corpus.split("train")
    rest = corpus.symbols.rest(split)
    assert rest.gaps[1:].tolist() == np.isnan(split.values[:, 0]).tolist()
    assert np.abs(rest.targets[rest.gaps][1:]).max() < 1e-9


def test_forecast_with_dates_a_drawing_and_a_backtest(run, tmp_path, capsys):
    out, plot = tmp_path / "forecast.csv", tmp_path / "forecast.svg"
    future = tmp_path / "future.csv"
    future.write_text("holiday\n" + "1\n0\n0\n")
    capsys.readouterr()
    command = ["forecast", str(run), "--steps", "3", "--covariates", str(future)]
    assert main([*command, "--plot", str(plot), "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [row["date"] for row in rows] == ["2021-02-24", "2021-02-25", "2021-02-26"]
    assert len(rows[0]["visits mean"].split(".")[1]) <= 4
    assert float(rows[0]["visits mean"]) < float(rows[1]["visits mean"]) - 5
    assert "80 %" in plot.read_text()
    assert "2021-0" in plot.read_text()
    capsys.readouterr()
    assert main([*command, "--quantiles", "0.1234567", "--quantiles", "0.1234568", "--quantiles", "1", "--json"]) == 0
    names = ["visits mean", "visits q0.1234567", "visits q0.1234568", "visits q1"]
    assert list(json.loads(capsys.readouterr().out)["forecast"]) == names
    (tmp_path / "mine.svg").write_text("mine")
    assert "is there already" in refusal(capsys, *command, "--plot", str(tmp_path / "mine.svg"))
    assert (tmp_path / "mine.svg").read_text() == "mine"
    others = [["--plot", str(tmp_path / "x.svg")], ["--from", str(tmp_path)], ["--quantiles", "0.3"]]
    others += [["--every-sample"], ["--temperature", "0"]]
    for refused in (["--backtest", "0"], *(["--backtest", "3", *one] for one in others)):
        assert main(["forecast", str(run), *refused]) == 2
        assert "--backtest" in capsys.readouterr().err
    assert main(["forecast", str(run), "--steps", "5", "--samples", "9", "--backtest", "3", "--json"]) == 0
    rows = {row["model"]: row for row in json.loads(capsys.readouterr().out)["backtest"]}
    assert set(rows) == {"this model", "persistence", "seasonal, 7 steps", "linear part"}
    assert rows["this model"]["nrmse"] < rows["persistence"]["nrmse"]
    assert 0 <= rows["this model"]["coverage_80"] <= 1
    assert "too few for --steps 4" in refusal(capsys, *command[:3], "4", *command[4:])
    assert "ends in .svg or .png" in refusal(capsys, *command, "--plot", "forecast.gif")


def test_a_backtest_without_what_is_not_defined(run, table, tmp_path, capsys):
    """NRMSE of a column that is constant in the test split, in a table whose origins are fewer than asked for."""
    lines = table.read_text().splitlines()
    made = SeriesRun(run)
    at = lines[0].split(",").index("visits")
    size = len(made.corpus().split("test").values)
    kept = [line.split(",") for line in lines]
    for cells in kept[-size:]:
        cells[at] = "7"
    (tmp_path / "flat.csv").write_text("\n".join(map(",".join, kept)))
    corpus = made.corpus(tmp_path / "flat.csv")
    origins, rows = backtested(made, corpus, 10_000, size - 2, 5, 1)
    assert origins == 3
    assert all("nrmse" not in row for row in rows)
    assert "constant in the test split, so that NRMSE leaves out: visits" in capsys.readouterr().err
    assert all(np.isfinite(row["mase"]) for row in rows)


def test_the_range_of_samples_has_80_percent_of_such_values(run, monkeypatch):
    """Of 99 samples the tenth and the ninetieth, since a value is below the k-th of n with probability k / (n + 1)."""
    made = SeriesRun(run)
    corpus = made.corpus()
    values = np.nan_to_num(corpus.split("test").values)

    def forecast(_, *, steps, samples, history, **others):
        begin = len(history.values)
        return values[begin : begin + steps] + np.arange(samples)[:, None, None] - 9.05

    monkeypatch.setattr(SeriesRun, "forecast", forecast)
    assert backtested(made, corpus, 3, 4, 99, 1)[1][0]["coverage_80"] == 1


def test_columns_that_repeat_exactly_have_no_scaled_error():
    error = np.array([[1.0, 2.0], [3.0, np.nan]])
    assert mase(error, np.array([2.0, 1e-300])) == 1.0
    assert mase(error, np.array([2.0, 4.0])) == pytest.approx((0.5 + 1.5 + 0.5) / 3)
    assert mase(error, np.full(2, 1e-300)) is None


def test_a_forecast_in_pieces_continues_its_own_steps(run):
    made = SeriesRun(run)
    split = made.corpus().split("test")
    still = made.linear_path(split.part(0, 20), 4, split.known[20:24])
    again = made.inputs.linear.means(
        np.concatenate([split.values[:20], still[:1]]), split.known[:21], split.before, np.array(made.inputs.mean)
    )
    np.testing.assert_allclose(still[0], again[20])


def test_a_column_known_ahead_must_be_there(table, tmp_path, capsys):
    arguments = ["train", "recipes/series/table.toml", "--data", str(table), "--out", str(tmp_path / "run")]
    assert main([*arguments, "--missing", "mask", "--set", 'data.covariates=["rain"]']) == 2
    assert "data.covariates: no column 'rain'" in capsys.readouterr().err


def test_a_linear_part_without_lags_is_described():
    assert str(linear(lags=())) == "an autoregression of differences on no steps before, penalty 0"
    assert str(linear(difference=False)) == "an autoregression on steps 1, 3 before, penalty 0"
