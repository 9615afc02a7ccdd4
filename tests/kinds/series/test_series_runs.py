"""Series end to end: train, resume, evaluate, forecast; baselines; every mistake in one line."""

import csv
import json
import math

import msgspec
import numpy as np
import pytest
import torch

import elman
from elman import config
from elman.cli import main
from elman.config.inference import RULES
from elman.config.toml import find
from elman.errors import UserError
from elman.kinds.series.backtest import backtested
from elman.kinds.series.evaluation import autoregression, baseline_prediction, lagged, nrmse, persistence
from elman.kinds.series.run import SeriesRun
from elman.learning import checkpoint
from elman.objective.loss import Objective
from elman.report.folder import read_folder
from elman.tasks.adaptation import Method, method_figures
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_task
from support.commands import refusal
from support.interruption import StopAt


def recipe(choice=None, **data):
    raw = {
        "title": "toy series",
        "seed": 3,
        "data": {"kind": "series", **data},
        "model": {
            "encoder": {"kind": "values", "size": 6},
            "core": {"kind": "stack", "sizes": [12], "output_dropout": 0.05},
            "output": {"choice": choice or {"kind": "gaussian"}},
        },
        "training": {
            "epochs": 3,
            "batch_size": 4,
            "optimiser": {"kind": "adam", "lr": 0.02},
            "window": {"length": 10},
            "log_every": 5,
        },
    }
    return config.parse_recipe(raw, "toy")


def wave(steps=400):
    """Two columns in very different units."""
    time = np.arange(steps)
    noise = np.random.default_rng(0).normal(size=(steps, 2))
    return np.stack([np.sin(time / 3), 1e6 + 50 * np.cos(time / 3)], axis=1) + noise * [0.05, 2.5]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("series") / "wave.csv"
    path.write_text("sine,cosine\n" + "".join(f"{a!r},{b!r}\n" for a, b in wave().tolist()))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, data):
    out = tmp_path_factory.mktemp("runs") / "run"
    file = out.with_suffix(".toml")
    file.write_text(config.dump_recipe(recipe()))
    arguments = ["train", str(file), "--data", str(data), "--out", str(out), "--set", "training.epochs=12"]
    assert main([*arguments, "--baselines", "--json"]) == 0
    return out


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["gaussian", "gaussian-mixture"])
def test_interrupted_run_is_the_same_run_bit_for_bit(choice, data, tmp_path):
    def run(out, stops):
        made = Experiment(recipe({"kind": choice}), out, data=data)
        made.train(stops)
        return made

    run(tmp_path / "whole", [])
    run(tmp_path / "parts", [StopAt(5)])
    Experiment(recipe({"kind": choice}), tmp_path / "parts", data=data, resume=True).train()
    whole, parts = (checkpoint.load(tmp_path / name / "model.safetensors")[0] for name in ("whole", "parts"))
    assert checkpoint.digest_of(whole) == checkpoint.digest_of(parts)


@pytest.mark.slow
def test_files_of_a_run(trained):
    rows = json.loads((trained / "results.json").read_text())
    assert [row["split"] for row in rows] == ["valid", "test"]
    assert set(rows[0]["nrmse_by_column"]) == {"sine", "cosine"}
    names = {row["name"] for row in json.loads((trained / "baselines.json").read_text())}
    assert {"mean", "persistence"} < names
    page = (trained / "report.html").read_text()
    assert "Forecast of cosine" in page
    assert "NRMSE" in page
    forecast = json.loads((trained / "samples.json").read_text())[0]["figure"]
    np.testing.assert_array_equal(forecast["truth"], wave()[-len(forecast["truth"]) :, 0])


def test_a_trained_series_model_beats_the_mean(trained):
    result = elman.evaluate(trained)
    assert result.nrmse < 0.7
    assert result.nll < SeriesRun(trained).uniform_nll() - 0.5


def test_a_reservoir_is_that_of_the_other_run_and_the_standardisation_its_own(data, tmp_path):
    made = recipe()
    model = msgspec.structs.replace(made.model, core=config.Reservoir(size=9))
    made = msgspec.structs.replace(made, model=model)
    other = Experiment(made, tmp_path / "other", data=data)
    other.train()
    lower = tmp_path / "lower.csv"
    np.savetxt(lower, wave() - [5, 0], delimiter=",", header="sine,cosine", comments="")
    again = msgspec.structs.replace(made, seed=4)
    ours = Experiment(again, tmp_path / "ours", data=lower, init=tmp_path / "other").model
    theirs = SeriesRun(tmp_path / "other").model
    assert ours.core.weight_hh.equal(theirs.core.weight_hh)
    assert ours.core.weight_ih.equal(theirs.core.weight_ih)
    np.testing.assert_allclose(ours.encoder.mean, theirs.encoder.mean - np.array([5, 0]), atol=1e-6)


def test_nll_is_in_the_units_of_the_data(trained, data, tmp_path):
    """The training loss, the validation loss and the results have one unit, whatever the scale of a column."""
    run = SeriesRun(trained)
    assert run.saved["valid_nll"] == pytest.approx(run.evaluate(EvaluationOptions(split="valid")).nll, abs=1e-4)
    rows = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if row["kind"] == "train"]
    assert losses[-1] == pytest.approx(run.saved["valid_nll"], abs=1.0)


def test_the_report_counts_parameters_without_buffers(trained):
    """The mean and the deviation of each column are in the file of the model, and are not trained."""
    assert read_folder(trained).parameters == sum(one.numel() for one in SeriesRun(trained).model.parameters())


def test_nll_shifts_by_the_logarithm_of_the_scale(tmp_path):
    """A column in units 1,000 times smaller has log 1,000 more nats per step, and the same NRMSE."""
    np.save(tmp_path / "one.npy", wave()[:, :1])
    np.save(tmp_path / "thousand.npy", 1000 * wave()[:, :1])
    one, thousand = (
        elman.train(recipe(), tmp_path / name, data=tmp_path / f"{name}.npy").results[1] for name in ("one", "thousand")
    )
    assert thousand.nll - one.nll == pytest.approx(math.log(1000), abs=1e-3)
    assert thousand.nrmse == pytest.approx(one.nrmse, rel=1e-3)


def test_streams_with_warm_up_come_near_one_stream(trained):
    run = SeriesRun(trained)
    one = run.evaluate()
    several = run.evaluate(EvaluationOptions(streams=4, warm_up=10))
    assert several.tokens == one.tokens
    assert several.nll == pytest.approx(one.nll, abs=0.3)


def test_forecast_depends_on_its_seed_and_starts_near_the_series(trained):
    run = SeriesRun(trained)
    drawn = run.forecast(steps=7, samples=5, seed=1)
    assert drawn.shape == (5, 7, 2)
    np.testing.assert_array_equal(drawn, run.forecast(steps=7, samples=5, seed=1))
    assert not np.array_equal(drawn, run.forecast(steps=7, samples=5, seed=2))
    assert abs(drawn[..., 1].mean() - 1e6) < 200
    still = run.forecast(steps=4, samples=2, temperature=0)
    np.testing.assert_allclose(still[0], still[1], rtol=1e-6)
    with pytest.raises(UserError, match=r"--temperature is -1; it must be 1e-06 to 1e\+06, or 0"):
        run.forecast(steps=1, temperature=-1.0)
    for temperature in (1e-40, 1e300):
        with pytest.raises(UserError, match=r"--temperature is 1e.*; it must be"):
            run.forecast(steps=2, samples=2, temperature=temperature)


def test_forecast_in_pieces_continues_its_own_steps(trained):
    """A forecast without noise, continued with what it has drawn as history, is one forecast."""
    run, history = SeriesRun(trained), wave()[:50]
    whole = run.forecast(steps=6, history=history, temperature=0)[0]
    begun = run.forecast(steps=3, history=history, temperature=0)[0]
    rest = run.forecast(steps=3, history=np.concatenate([history, begun]), temperature=0)[0]
    np.testing.assert_allclose(whole[3:], rest, rtol=1e-5)


def test_a_forecast_may_begin_without_a_history(trained):
    assert SeriesRun(trained).forecast(steps=3, samples=2, history=wave()[:0]).shape == (2, 3, 2)


def test_forecast_command(trained, data, tmp_path, capsys):
    out = tmp_path / "forecast.csv"
    arguments = ["forecast", str(trained), "--steps", "4", "--samples", "3", "--from", str(data)]
    assert main([*arguments, "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"]
    assert set(rows[0]) == {
        "step",
        *(f"{name} {what}" for name in ("sine", "cosine") for what in ("mean", "q0.1", "q0.5", "q0.9")),
    }
    capsys.readouterr()
    assert main([*arguments, "--every-sample", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["forecast"]) >= {"sine sample 3", "cosine sample 1"}


def test_evaluate_info_and_dry_run(trained, data, capsys):
    assert main(["evaluate", str(trained), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nrmse"] > 0
    assert main(["evaluate", str(trained)]) == 0
    assert "NRMSE" in capsys.readouterr().out
    assert main(["info", str(trained), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == 2
    assert main(["train", str(trained / "recipe.toml"), "--data", str(data), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] > 0


def test_dynamic_evaluation_runs_through_the_protocol(trained):
    source = SeriesRun(trained).adaptation_source()
    static = method_figures(source, Method())
    dynamic = method_figures(source, Method(rule=RULES["sgd"]))
    assert static.nll == pytest.approx(SeriesRun(trained).evaluate().nll, abs=1e-4)
    assert dynamic.nll != static.nll


def test_the_neural_cache_is_refused_for_series(trained, capsys):
    assert "cache" in refusal(capsys, "evaluate", str(trained), "--method", "cache")


def test_other_columns_are_refused(trained, tmp_path, capsys):
    np.save(tmp_path / "three.npy", np.random.default_rng(0).normal(size=(50, 3)))
    line = refusal(capsys, "evaluate", str(trained), "--data", str(tmp_path / "three.npy"))
    assert "3 columns" in line
    assert "sine, cosine" in line


@pytest.mark.parametrize("header", ["cosine,sine", "sine,other"])
@pytest.mark.parametrize("command", [["evaluate", "--data"], ["forecast", "--from"]])
def test_columns_of_other_names_are_refused(trained, tmp_path, capsys, header, command):
    path = tmp_path / "other.csv"
    path.write_text(header + "\n" + "".join(f"{a!r},{b!r}\n" for a, b in wave(60).tolist()))
    line = refusal(capsys, command[0], str(trained), command[1], str(path))
    assert f"2 columns ({header.replace(',', ', ')}), but the run was trained on 2 (sine, cosine)" in line


def test_columns_without_a_header_are_taken_in_their_order(trained, data, tmp_path, capsys):
    path = tmp_path / "plain.csv"
    path.write_text(data.read_text().partition("\n")[2])
    figures = []
    for source in (path, data):
        assert main(["evaluate", str(trained), "--data", str(source), "--json"]) == 0
        figures.append(json.loads(capsys.readouterr().out)["nll"])
    assert figures[0] == figures[1]


def test_command_for_other_data_names_forecast(trained, capsys):
    assert "elman forecast" in refusal(capsys, "generate", str(trained))


def test_encoder_of_other_data_is_refused():
    raw = msgspec.to_builtins(recipe())
    raw["model"]["encoder"] = {"kind": "lookup", "size": 3}
    with pytest.raises(UserError, match=r"model\.encoder\.kind"):
        config.parse_recipe(raw, "toy")


def test_series_too_short_for_the_windows(tmp_path):
    np.save(tmp_path / "short.npy", np.arange(30.0))
    with pytest.raises(UserError, match="batch_size"):
        Experiment(recipe(), tmp_path / "run", data=tmp_path / "short.npy")


def test_autoregression_recovers_a_linear_recurrence():
    series = [1.0, 0.5]
    for _ in range(60):
        series.append(0.3 + 1.2 * series[-1] - 0.5 * series[-2])
    values = np.array(series)[:, None]
    fitted = autoregression(values, 2)
    np.testing.assert_allclose(fitted(values[10:], values[:10]), values[10:], atol=1e-8)
    pulse, silence = np.array([[0.0], [1.0], [0.0], [0.0]]), np.zeros((2, 1))
    np.testing.assert_allclose(fitted(pulse, silence)[:, 0], [0.3, 0.3, 1.5, -0.2], atol=1e-8)
    np.testing.assert_array_equal(lagged(values, 2)[0], [1, values[1, 0], values[0, 0]])


def test_a_column_that_is_constant_in_a_split_has_no_nrmse():
    values = np.stack([np.full(100, 0.1), np.arange(100.0)], 1)  # the rounded deviation of the first is not 0
    assert values.std(axis=0)[0] > 0
    assert np.isnan(nrmse(values + 0.1, values)).tolist() == [True, False]


def test_a_backtest_reads_what_precedes_the_split(trained):
    """Without a linear part too, as persistence does; its only origin is the beginning of the test split."""
    run = SeriesRun(trained)
    corpus = run.corpus()
    before = np.concatenate([corpus.split(name).values for name in ("train", "valid")])
    test = corpus.split("test").values
    origins, (row, _) = backtested(run, corpus, 1, 5, 20, 3)
    error = run.forecast(steps=5, samples=20, seed=3, history=before).mean(axis=0) - test[:5]
    scale = np.abs(np.diff(corpus.split("train").values, axis=0)).mean(axis=0)
    assert origins == 1
    assert row["nrmse"] == pytest.approx(np.sqrt(np.square(error / test.std(axis=0)).mean()))
    assert row["mase"] == pytest.approx((np.abs(error) / scale).mean())


def test_a_constant_column_that_nrmse_leaves_out_is_named(trained, tmp_path, capsys):
    file = tmp_path / "flat.csv"
    file.write_text("sine,cosine\n" + "".join(f"{a!r},1e6\n" for a in wave()[:, 0].tolist()))
    assert main(["evaluate", str(trained), "--data", str(file), "--json"]) == 0
    found = capsys.readouterr()
    assert set(json.loads(found.out)["nrmse_by_column"]) == {"sine"}
    assert "constant in the test split, so that NRMSE leaves out: cosine" in found.err


def test_nrmse_of_the_mean_is_one():
    values = wave()
    np.testing.assert_allclose(nrmse(np.tile(values.mean(axis=0), (len(values), 1)), values), 1)


def test_baselines_of_a_random_walk(tmp_path):
    walk = np.cumsum(np.random.default_rng(1).normal(size=3000))
    np.save(tmp_path / "walk.npy", walk)
    rows = {row.name: row for row in open_task(recipe(), str(tmp_path / "walk.npy")).baselines(5, ["test"])}
    entropy = 0.5 * math.log(2 * math.pi * math.e)
    assert rows["persistence"].nll == pytest.approx(entropy, abs=0.1)
    assert rows["mean"].nll > entropy + 1


def test_shipped_recipe_builds():
    loaded = config.load_recipe(find("series/mackey-glass.toml"))
    assert loaded.kind == "series"
    assert loaded.data.corpus == "mackey-glass"


def test_a_baseline_has_the_normal_density_of_its_errors_in_training():
    """Persistence on 0, 2, 4 errs by 2 twice: after 4 the values 5 and 9 have densities under N(4, 4) and N(5, 4)."""
    train, values = np.array([[0.0], [2.0], [4.0]]), np.array([[5.0], [9.0]])
    found = baseline_prediction(persistence, train, 1, values, train)
    assert found.mean.tolist() == [[4.0], [5.0]]
    expected = [-0.5 * (error**2 / 4 + math.log(2 * math.pi * 4)) for error in (1, 4)]
    assert found.log_density.tolist() == pytest.approx(expected)


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """A table with missing values, and the same without the rows that have them."""
    folder, missing = tmp_path_factory.mktemp("gaps"), {20, 21, 150, 333, *range(372, 378), 390}
    rows = [f"{a!r};{b!r}".replace(".", ",") for a, b in wave().tolist()]
    for name, kept in {"gaps": [], "whole": missing}.items():
        lines = [row if n not in missing else f";{row.split(';')[1]}" for n, row in enumerate(rows) if n not in kept]
        (folder / f"{name}.csv").write_text("\n".join(["sine;cosine", *lines]))
    return folder


@pytest.fixture(scope="module")
def masked(tmp_path_factory, gaps):
    out = tmp_path_factory.mktemp("runs") / "masked"
    file = out.with_suffix(".toml")
    file.write_text(config.dump_recipe(recipe()))
    arguments = ["train", str(file), "--data", str(gaps / "gaps.csv"), "--out", str(out), "--set", "training.epochs=12"]
    assert main([*arguments, "--missing", "mask", "--baselines", "--json"]) == 0
    return out


def test_missing_values_are_refused_without_a_rule_and_named(gaps, tmp_path, capsys):
    file = tmp_path / "recipe.toml"
    file.write_text(config.dump_recipe(recipe()))
    line = refusal(capsys, "train", str(file), "--data", str(gaps / "gaps.csv"), "--out", str(tmp_path / "run"))
    assert "11 values missing (column sine at lines 22 to 23, 152, 335, 374 to 379, 392); fill them in" in line
    assert "--missing interpolate, previous, drop or mask" in line


def test_a_run_remembers_its_rule_and_counts_no_masked_step(masked, capsys):
    run = SeriesRun(masked)
    assert run.recipe.data.missing == "mask"
    assert 'missing = "mask"' in (masked / "recipe.toml").read_text()
    assert run.corpus().symbols.mean[0] == pytest.approx(np.delete(wave()[:320], [20, 21, 150], axis=0)[:, 0].mean())
    result = elman.evaluate(masked)
    assert result.tokens == 40 - 7
    assert result.nrmse < 0.8
    values = run.corpus().split("test").values
    log_probs = run.model.log_prob(*read_by_hand(run, values))[0].detach().double().ravel()
    density = -math.fsum(log_probs[~np.isnan(values[:, 0])])
    assert result.nll * result.tokens == pytest.approx(density, abs=1e-3)
    assert main(["evaluate", str(masked), "--missing", "interpolate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == 40
    assert main(["evaluate", str(masked), "--missing", "drop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] < 40
    forecast = json.loads((masked / "samples.json").read_text())[0]["figure"]
    assert forecast["truth"][12:18] == [None] * 6
    assert "Forecast of sine" in (masked / "report.html").read_text()


def read_by_hand(run, values):
    """Inputs, targets and the beginning: every step reads the last known value of each column."""
    read, last = [], np.array(run.inputs.mean)
    for row in values:
        last = np.where(np.isnan(row), last, row)
        read.append(last)
    inputs = np.array([run.inputs.mean, *read[:-1]])
    shaped = (torch.from_numpy(one).unsqueeze(1) for one in (inputs, np.array(read)))
    return *shaped, run.model.begin(1)


def test_a_masked_step_has_no_part_in_the_loss(gaps):
    """The gradient of a window does not depend on what would have been read as the target of a masked step."""
    task = open_task(recipe(missing="mask"), str(gaps / "gaps.csv"))
    windows = task.windows(None)
    batch = windows.batch(windows.spans(0)[2])
    assert not batch.mask[:, 0].all()
    hidden = batch.targets.clone()
    hidden[~batch.mask] += 1000
    model = SeriesRun.build(recipe(), task.inputs)
    objective = Objective()
    losses = []
    for targets in (batch.targets, hidden):
        trace, _ = model.eval().trace(batch.inputs, model.begin(4))
        losses.append(objective.of_trace(model, trace, batch._replace(targets=targets)).objective)
    assert losses[0].equal(losses[1])
    none = objective.of_trace(model, trace, batch._replace(mask=batch.mask & False)).objective
    assert none == 0


def test_baselines_of_a_series_with_gaps():
    """Persistence after a gap predicts the value before it; the gap itself is not counted."""
    train = np.array([[0.0], [2.0], [np.nan], [4.0]])
    found = baseline_prediction(persistence, train, 1, np.array([[5.0], [np.nan], [9.0]]), train)
    assert found.mean.tolist() == [[4.0], [5.0]]
    expected = [-0.5 * (error**2 / 4 + math.log(2 * math.pi * 4)) for error in (1, 4)]
    assert found.log_density.tolist() == pytest.approx(expected)
    series = np.array([1.0, 0.5, *np.zeros(60)])
    for n in range(2, 62):
        series[n] = 0.3 + 1.2 * series[n - 1] - 0.5 * series[n - 2]
    holed = np.where(np.arange(62) == 9, np.nan, series)[:, None]
    fitted = autoregression(holed, 2)
    np.testing.assert_allclose(fitted(series[10:, None], series[:10, None]), series[10:, None], atol=1e-8)


@pytest.mark.parametrize("command", [["evaluate", "--data"], ["forecast", "--from"]])
def test_other_data_with_gaps(trained, gaps, capsys, command):
    line = refusal(capsys, command[0], str(trained), command[1], str(gaps / "gaps.csv"))
    assert "11 values missing" in line
    for rule in ("interpolate", "mask"):
        assert main([command[0], str(trained), command[1], str(gaps / "gaps.csv"), "--missing", rule, "--json"]) == 0
    capsys.readouterr()


def test_a_run_that_learnt_a_column_of_row_numbers_still_reads_it(tmp_path, monkeypatch):
    path = tmp_path / "numbered.csv"
    path.write_text("day,x\n" + "".join(f"{n},{value!r}\n" for n, value in enumerate(wave()[:, 0].tolist())))
    with monkeypatch.context() as patch:
        patch.setattr("elman.kinds.series.table.is_numbering", lambda _: False)
        elman.train(recipe(), tmp_path / "run", data=path)
    run = SeriesRun(tmp_path / "run")
    assert run.inputs.names == ("day", "x")
    assert run.series(path).values.shape == (400, 2)
    assert run.evaluate().tokens == 40
