"""Adaptation by command: evaluate --method, tuning, streams."""

import hashlib
import json
import os
import shutil
import threading
from types import SimpleNamespace

import msgspec
import pytest
import torch

import elman
from elman import config
from elman.cli import main
from elman.errors import said
from elman.evaluation import dynamic
from elman.evaluation.dynamic import Rule, gradient_statistics
from elman.evaluation.result import recorded_results
from elman.learning import checkpoint
from elman.network.fast import precision
from elman.tasks import adaptation
from elman.tasks.adaptation import Method, method_figures
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_run
from elman.tasks.tuning import RATES, Tuning, beyond
from support import text_runs

QUICK = ("--statistics-tokens", "600")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    experiment = Experiment(text_runs.recipe(epochs=1), out, data=text_runs.write_corpus(out.parent / "corpus"))
    experiment.train()
    experiment.finish()
    return out


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def answer(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return json.loads(capsys.readouterr().out)


def complaint(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.strip().splitlines()
    return line.removeprefix("elman: ")


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.slow
def test_every_method_has_its_row_and_the_model_stays(capsys, run):
    before, static = digest(run / "model.safetensors"), json.loads((run / "results.json").read_text())
    for method in ("dynamic", "cache", "dynamic+cache", "dynamic"):
        row = answer(capsys, "evaluate", run, "--method", method, *(QUICK if method != "cache" else ()), "--json")
        assert row["method"] == method
        assert row["tokens"] == static[1]["tokens"]
    rows = json.loads((run / "results.json").read_text())
    assert rows[:2] == static
    assert [row["method"] for row in rows[2:]] == ["cache", "dynamic+cache", "dynamic"]
    assert rows[-1]["settings"]["rule"]["segment"] == 5
    assert digest(run / "model.safetensors") == before
    assert main(["report", str(run)]) == 0


def test_methods_that_change_nothing_give_the_static_figure(capsys, run):
    static = answer(capsys, "evaluate", run, "--json")["nll"]
    dynamic = ("--method", "dynamic+cache", "--rule", "sgd", "--lr", 0, "--cache-weight", 0)
    assert answer(capsys, "evaluate", run, *dynamic, "--json")["nll"] == pytest.approx(static, rel=1e-6)


def test_gradient_statistics_are_kept_for_one_precision(monkeypatch, run):
    computed = []

    def compute(*arguments):
        computed.append(precision.chosen())
        return gradient_statistics(*arguments)

    monkeypatch.setattr(dynamic, "gradient_statistics", compute)
    opened = open_run(run)
    for products in ("bf16", "float32", "float32"):
        with precision.products_in(products):
            adaptation.statistics(opened, 600)
    assert computed == ["bf16", "float32"]


def test_eight_bits_are_refused_before_gradient_statistics_are_computed(capsys, run):
    line = complaint(capsys, "evaluate", run, "--method", "dynamic", *QUICK, "--precision", "int8")
    assert line.startswith("--precision int8 runs a model as it is")
    assert not (run / "gradient-statistics.safetensors").exists()


@pytest.mark.slow
def test_a_folder_that_is_read_only_is_left_as_it_is(capsys, monkeypatch, run):
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode == os.W_OK and path == run))
    monkeypatch.setattr("elman.tasks.tuning.RATES", {"sgd": ((0.1,), (0.0,))})
    before = {path: digest(path) for path in run.iterdir() if path.is_file()}
    for how in (QUICK, ("--rule", "sgd", "--tune", "--tune-tokens", "20")):
        assert main(["evaluate", str(run), "--method", "dynamic", *how]) == 0
        assert capsys.readouterr().err.count("cannot be written: results, gradient statistics and") == 1
        said.cache_clear()
    assert {path: digest(path) for path in run.iterdir() if path.is_file()} == before


def test_adapting_to_another_text_writes_no_row(capsys, run, tmp_path):
    before = (run / "results.json").read_text()
    data = text_runs.write_corpus(tmp_path / "other")
    answer(capsys, "evaluate", run, "--method", "cache", "--data", data, "--json")
    assert (run / "results.json").read_text() == before


def test_a_row_that_counts_other_tokens_is_not_kept_beside_the_others(capsys, run):
    before = (run / "results.json").read_text()
    assert main(["evaluate", str(run), "--method", "cache", "--skip-first"]) == 0
    assert "whose rows of the test split count 200 tokens, and this one 199" in capsys.readouterr().err
    assert (run / "results.json").read_text() == before


def test_a_row_has_all_settings_that_its_figures_depend_on(capsys, run):
    row = answer(capsys, "evaluate", run, "--method", "dynamic", *QUICK, "--precision", "bf16", "--json")
    assert (row["settings"]["statistics_tokens"], row["settings"]["precision"]) == (600, "bf16")
    assert json.loads((run / "results.json").read_text())[-1]["settings"] == row["settings"]
    row = answer(capsys, "evaluate", run, "--method", "mc-dropout", "--samples", 1, "--precision", "float32", "--json")
    assert row["settings"].keys() == {"samples", "seed", "length"}


def test_too_few_tokens_for_statistics_are_refused(capsys, run):
    line = complaint(capsys, "evaluate", run, "--method", "dynamic", "--statistics-tokens", 5)
    assert line.startswith("gradient statistics need 6 tokens of the training text, and 5 are read;")


def test_the_beginning_of_a_text_has_the_figures_of_its_tokens_alone(run):
    source = elman.load(run).adaptation_source()
    part, whole = (method_figures(source.beginning(size), Method()) for size in (50, None))
    assert (part.tokens, part.characters, part.word_perplexity, part.bits_per_character) == (50, None, None, None)
    assert (whole.tokens, whole.words) == (200, 200)


@pytest.mark.slow
def test_tuning_on_the_split_that_is_evaluated_is_said(capsys, run, counted):
    command = ("evaluate", run, "--method", "dynamic", "--rule", "sgd", "--tune", "--tune-tokens", 20)
    for split, is_said in (("valid", True), ("test", False)):
        assert main([*map(str, command), "--split", split]) == 0
        assert ("tuned on the beginning of the split that is evaluated" in capsys.readouterr().err) is is_said


@pytest.mark.slow
def test_tuning_goes_on_where_it_was(capsys, run, monkeypatch):
    command = ("evaluate", run, "--method", "dynamic+cache", "--rule", "sgd", "--tune", "--tune-tokens", 50, "--json")
    row = answer(capsys, *command)
    points = json.loads((run / "tuning.json").read_text())
    rules = [point for point in points if point["cache"] is None]
    assert len(rules) >= 12
    best = min(rules, key=lambda point: point["nll"])
    assert row["settings"]["rule"] == best["rule"]
    caches = [point for point in points if point["cache"] is not None]
    assert row["settings"]["cache"] == min(caches, key=lambda point: point["nll"])["cache"]

    done = []
    monkeypatch.setattr("elman.tasks.tuning.method_figures", lambda *_: done.append(1) or SimpleNamespace(nll=99.0))
    assert answer(capsys, *command)["settings"] == row["settings"]
    assert not done
    (run / "tuning.json").write_text(json.dumps(points[5:]))
    answer(capsys, *command)
    assert len(done) == 5


def test_the_grid_is_the_published_one_with_gradient_statistics():
    """Section 4.4.1 of the thesis that `RATES` names; of plain steps half decades, with and without decay."""
    assert RATES["rms"][0] == pytest.approx([3e-5, 4e-5, 5e-5, 6e-5, 7e-5, 1e-4])
    assert RATES["rms"][1] == (0.001, 0.002, 0.003, 0.005)
    assert RATES["sgd"] == ((0.03, 0.1, 0.3, 1.0), (0.0, 0.001, 0.01))


def test_two_tunings_at_once_keep_the_points_of_both(run, monkeypatch):
    monkeypatch.setattr("elman.tasks.tuning.RATES", {"sgd": ((0.1, 0.2), (0.0,)), "rms": ((1e-4,), (1e-3,))})
    monkeypatch.setattr("elman.tasks.tuning.STRIDES", 0)
    monkeypatch.setattr("elman.tasks.tuning.method_figures", lambda *_: SimpleNamespace(nll=1.0))
    monkeypatch.setattr("elman.tasks.tuning.Tuning._statistics", lambda *_: None)
    first, second = Tuning(open_run(run), 50), Tuning(open_run(run), 50)
    first.best(Method(rule=Rule(kind="sgd")))
    second.best(Method(rule=Rule(kind="rms")))
    kept = [(point["rule"]["kind"], point["rule"]["lr"]) for point in json.loads((run / "tuning.json").read_text())]
    assert sorted(kept) == [("rms", 1e-4), ("sgd", 0.1), ("sgd", 0.2)]


@pytest.fixture
def counted(monkeypatch):
    """One point of a grid, and how often a point was computed."""
    done = []
    monkeypatch.setattr("elman.tasks.tuning.RATES", {"sgd": ((0.1,), (0.0,))})
    monkeypatch.setattr("elman.tasks.tuning.STRIDES", 0)
    monkeypatch.setattr("elman.tasks.tuning.method_figures", lambda *_: done.append(1) or SimpleNamespace(nll=1.0))
    return done


def test_points_are_kept_by_all_they_depend_on(run, counted):
    rule = Rule(kind="sgd")

    def computed(rule, tokens=50, shift=0.0):
        loaded, before = elman.load(run), len(counted)
        with torch.no_grad():
            next(loaded.model.parameters()).add_(shift)
        Tuning(loaded, tokens).best(Method(rule=rule))
        return len(counted) - before

    assert [computed(rule), computed(rule)] == [1, 0]
    assert [computed(rule, tokens=60), computed(rule, tokens=60)] == [1, 0]
    assert [computed(rule, shift=0.01), computed(rule, shift=0.01)] == [1, 0]
    assert computed(Rule(kind="sgd", segment=3)) == 1
    with precision.products_in("bf16"):
        assert [computed(rule), computed(rule)] == [1, 0]
    assert computed(rule) == 0


@pytest.mark.slow
def test_what_was_tuned_before_a_stop_is_kept(capsys, run, counted, monkeypatch):
    monkeypatch.setattr("elman.tasks.tuning.RATES", {"sgd": ((0.1, 0.2, 0.3), (0.0,))})

    def stopped(*_):
        if len(counted) == 2:
            raise KeyboardInterrupt
        counted.append(1)
        return SimpleNamespace(nll=1.0)

    monkeypatch.setattr("elman.tasks.tuning.method_figures", stopped)
    command = ("evaluate", run, "--method", "dynamic", "--rule", "sgd", "--tune", "--tune-tokens", 50, "--json")
    assert main([str(part) for part in command]) == 130
    assert len(json.loads((run / "tuning.json").read_text())) == 2
    monkeypatch.setattr("elman.tasks.tuning.method_figures", lambda *_: counted.append(1) or SimpleNamespace(nll=1.0))
    capsys.readouterr()
    answer(capsys, *command)
    assert len(counted) == 3


@pytest.mark.slow
def test_tuning_in_several_processes_finds_the_same(capsys, run, tmp_path, monkeypatch):
    monkeypatch.setattr("elman.tasks.tuning.RATES", {"sgd": ((0.1,), (0.0, 1e-3))})
    monkeypatch.setattr("elman.tasks.tuning.beyond", lambda *_: [])  # every call in other processes costs their start
    other = shutil.copytree(run, tmp_path / "other")
    for folder, jobs in ((run, 1), (other, 2)):
        answer(capsys, "evaluate", folder, "--method", "dynamic", "--rule", "sgd", "--tune", "--tune-tokens", 20,
               "--jobs", jobs, "--json")  # fmt: skip
    ours, theirs = (
        {json.dumps(point["rule"]): point["nll"] for point in json.loads((folder / "tuning.json").read_text())}
        for folder in (run, other)
    )
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_a_best_point_at_the_border_is_followed_outwards():
    rates, decays = RATES["rms"]
    middle = Rule(kind="rms", lr=rates[2], decay=decays[1])
    assert beyond(middle, rates, decays) == []
    corner = Rule(kind="rms", lr=rates[-1], decay=decays[-1])
    assert [(rule.lr, rule.decay) for rule in beyond(corner, rates, decays)] == [
        (pytest.approx(1.5e-4), decays[-1]),
        (rates[-1], pytest.approx(7.5e-3)),
    ]
    lowest = Rule(kind="rms", lr=rates[0], decay=decays[0])
    assert [(rule.lr, rule.decay) for rule in beyond(lowest, rates, decays)] == [
        (pytest.approx(2e-5), decays[0]),
        (rates[0], pytest.approx(1e-3 / 1.5)),
    ]
    outside = Rule(kind="sgd", lr=2.0, decay=0.0)
    assert [rule.lr for rule in beyond(outside, *RATES["sgd"])] == [3.0]


@pytest.mark.slow
def test_a_stream_in_two_parts_is_the_stream(capsys, run, tmp_path):
    lines = [" ".join(f"w{(3 * row + column) % 7}" for column in range(8)) for row in range(6)]
    files = {name: tmp_path / name for name in ("whole", "one", "two", "state")}
    for name, part in (("whole", lines), ("one", lines[:2]), ("two", lines[2:])):
        files[name].write_text("\n".join(part) + "\n")

    def scores(name, *more):
        assert main(["score", str(run), str(files[name]), "--adapt", *QUICK, "--json", *map(str, more)]) == 0
        return [json.loads(line)["log_prob"] for line in capsys.readouterr().out.splitlines()]

    whole = scores("whole", "--lr", "1e-2")
    one = scores("one", "--lr", "1e-2", "--save-state", files["state"])
    two = scores("two", "--load-state", files["state"])
    assert one + two == whole
    assert two != pytest.approx(scores("two"), abs=1e-3)
    line = complaint(
        capsys, "score", run, files["two"], "--adapt", *QUICK, "--lr", "1e-3", "--load-state", files["state"]
    )
    assert line.startswith("--load-state: the stream adapts by kind=rms lr=0.01")
    assert main(["score", str(run), str(files["two"]), "--adapt", "--load-state", str(files["state"])]) == 2
    assert "other gradient statistics; give --statistics-tokens 600" in capsys.readouterr().err
    assert "add --adapt" in complaint(capsys, "generate", run, "--state", files["state"])
    assert main(["generate", str(run), "--adapt", *QUICK, "--load-state", str(files["state"]), "--tokens", "3"]) == 0


def test_generation_adapts_to_its_prompt_and_goes_on(capsys, run, tmp_path):
    state = tmp_path / "state.safetensors"
    adapt = ("--adapt", "--rule", "sgd", "--lr", 0.5, "--temperature", 0, "--prompt", "w1 w2 w3 w1 w2 w3 w1")
    whole = answer(capsys, "generate", run, *adapt, "--tokens", 8, "--json")["words"]
    part = answer(capsys, "generate", run, *adapt, "--tokens", 3, "--save-state", state, "--json")["words"]
    rest = answer(capsys, "generate", run, "--adapt", "--state", state, "--temperature", 0, "--tokens", 5, "--json")
    assert part + rest["words"] == whole
    for command in (("generate", run), ("score", run, __file__)):
        line = complaint(capsys, *command, "--adapt", "--rule", "sgd", "--lr", 1e300)
        assert "--lr is 1e+300; it must be 0 or more and at most 1e+38" in line
    (tmp_path / "text").write_text("w1 w2 w3 w1 w2 w3 w1 w2 w3 w1 w2 w3\n")
    for rate in (1e8, 1e30, 1e38):
        line = complaint(capsys, "score", run, tmp_path / "text", "--adapt", "--rule", "sgd", "--lr", rate)
        assert "dynamic evaluation diverged; give a lower --lr" in line


@pytest.mark.parametrize("adapt", [(), ("--adapt", "--rule", "sgd", "--lr", 0.5)], ids=["static", "adapt"])
def test_draws_go_on_where_they_were_left(capsys, run, tmp_path, adapt):
    state = tmp_path / "state.safetensors"
    begin = ("generate", run, "--prompt", "w1 w2 w3 w1", "--seed", 7, "--json", *adapt)
    whole = answer(capsys, *begin, "--tokens", 30)["words"]
    part = answer(capsys, *begin, "--tokens", 12, "--save-state", state)["words"]
    more = ("generate", run, *adapt[:1], "--state", state, "--tokens", 18, "--json")
    rest = answer(capsys, *more)
    assert part + rest["words"] == whole
    assert rest["seed"] == 7
    assert answer(capsys, *more, "--seed", 1)["words"] != rest["words"]


@pytest.mark.parametrize("tokens", [0, 1, 4])
def test_a_saved_state_does_not_read_a_symbol_twice(capsys, run, tmp_path, tokens):
    states = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    begin = ("generate", run, "--prompt", "w1 w2 w3", "--temperature", 0, "--json")
    whole = answer(capsys, *begin, "--tokens", 5, "--save-state", states[0])["words"]
    part = answer(capsys, *begin, "--tokens", tokens, "--save-state", states[1])["words"]
    more = ("--state", states[1], "--temperature", 0, "--tokens", 5 - tokens, "--save-state", states[1], "--json")
    assert part + answer(capsys, "generate", run, *more)["words"] == whole
    (one, facts), (two, others) = map(checkpoint.load, states)
    assert facts["unread"] == others["unread"]
    assert all(one[name].allclose(two[name], atol=1e-6) for name in one)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lr", "1e-4"], "--lr belongs to --method dynamic"),
        (["--method", "cache", "--segment", "4"], "--segment belongs to --method dynamic"),
        (["--method", "dynamic", "--cache-theta", "1"], "--cache-theta belongs to --method cache"),
        (["--method", "dynamic", "--jobs", "2"], "--jobs belongs to --tune; add it"),
        (["--tune"], "--tune needs something to tune; give --method dynamic, cache or dynamic+cache"),
        (
            ["--method", "dynamic", "--tune", "--lr", "1"],
            "--lr is chosen by --tune; leave one of the two out",
        ),
        (
            ["--method", "cache", "--streams", "2"],
            "--method cache reads one stream; leave out --streams and --warm-up",
        ),
        (["--method", "dynamic", "--segment", "0"], "--segment is 0; it must be 1 or more"),
        (["--method", "dynamic", "--lr", "-1"], "--lr is -1; it must be 0 or more and at most 1e+38"),
        (["--method", "cache", "--cache-weight", "1"], "--cache-weight is 1; it must be 0 or more and below 1"),
        (["--method", "cache", "--tune", "--tune-tokens", "0"], "--tune-tokens is 0; it must be 1 or more"),
        (["--method", "dynamic", "--rule", "sgd", "--eps", "1"], "--eps belongs to --rule rms"),
        (["--method", "dynamic", "--statistics-tokens", "0"], "--statistics-tokens is 0; it must be 1 or more"),
    ],
)
def test_evaluate_arguments(capsys, trained, arguments, message):
    assert complaint(capsys, "evaluate", trained, *arguments) == message


def test_streams_are_refused_without_adapt(capsys, trained, tmp_path):
    assert complaint(capsys, "generate", trained, "--lr", "1") == "--lr belongs to --adapt; add it"
    line = complaint(capsys, "score", trained, tmp_path / "x", "--save-state", tmp_path / "y")
    assert line == "--save-state belongs to --adapt; add it"
    line = complaint(capsys, "generate", trained, "--state", tmp_path / "none")
    assert line == f"{tmp_path}/none: no such state file; give one that --save-state wrote"


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1]", '[{"nll": "x"}]', "[{}]"])
def test_damaged_tuning(capsys, run, content):
    (run / "tuning.json").write_text(content)
    line = complaint(capsys, "evaluate", run, "--method", "cache", "--tune")
    assert line.startswith(f"{run}/tuning.json: damaged")


def test_damaged_results(capsys, run):
    (run / "results.json").write_text("[1]")
    line = complaint(capsys, "evaluate", run, "--method", "cache")
    assert line == f"{run}/results.json: damaged (Expected `object`, got `int` - at `$[0]`); restore or remove the file"


def test_a_loss_that_is_no_number_is_refused_and_not_kept(capsys, run):
    before = (run / "results.json").read_bytes()
    assert main(["evaluate", str(run), "--method", "dynamic", "--rule", "sgd", "--lr", "1e38", "--json"]) == 2
    said = capsys.readouterr()
    assert "dynamic evaluation diverged; give a lower --lr, or another --rule" in said.err
    assert (said.out, (run / "results.json").read_bytes()) == ("", before)


def test_two_commands_at_once_keep_both_rows(run, monkeypatch):
    """The second one reads the results only when the first has written its row."""
    loaded, row = elman.load(run), recorded_results(run)[-1]
    first, second = (msgspec.structs.replace(row, method=method) for method in ("dynamic", "cache"))
    other = threading.Thread(target=adaptation.record, args=(loaded, second))

    def write(path, rows):
        monkeypatch.undo()
        other.start()
        other.join(0.5)
        adaptation.write_json(path, rows)

    monkeypatch.setattr(adaptation, "write_json", write)
    adaptation.record(loaded, first)
    other.join()
    assert [one.method for one in recorded_results(run)][-2:] == ["dynamic", "cache"]


@pytest.mark.slow
def test_monte_carlo_dropout_says_how_many_passes(capsys, run):
    static = json.loads((run / "results.json").read_text())[1]
    row, again, other = (
        answer(capsys, "evaluate", run, "--method", "mc-dropout", "--samples", "3", *seed, "--json")
        for seed in ((), ("--seed", "0"), ("--seed", "1"))
    )
    assert row["settings"] == {"samples": 3, "seed": 0, "length": 10}
    assert row == again
    assert other["nll"] != row["nll"] != static["nll"]
    assert row["tokens"] == static["tokens"]
    kept = json.loads((run / "results.json").read_text())
    assert [one["method"] for one in kept[2:]] == ["mc-dropout"]
    assert main(["evaluate", str(run), "--method", "mc-dropout", "--samples", "2"]) == 0
    assert "2 passes, seed 0, masks held for 10 steps" in " ".join(capsys.readouterr().out.split())
    more = ("evaluate", run, "--method", "mc-dropout")
    assert complaint(capsys, "evaluate", run, "--samples", "3") == "--samples belongs to --method mc-dropout"
    assert complaint(capsys, *more, "--streams", "2").startswith("--method mc-dropout reads one stream")
    assert complaint(capsys, *more, "--segment", "2") == "--segment belongs to --method dynamic"
    assert complaint(capsys, *more, "--tune").startswith("--tune needs something to tune")
    assert "--samples" in complaint(capsys, *more, "--samples", "0")


def test_monte_carlo_dropout_needs_dropout(capsys, run, tmp_path):
    still = text_runs.recipe(epochs=1)
    plain = msgspec.structs.replace(
        still.model, encoder=config.Lookup(size=8), core=config.Stack(sizes=(8,), cell=config.Elman())
    )
    out = tmp_path / "still"
    source = json.loads((run / "data.json").read_text())["source"]
    Experiment(msgspec.structs.replace(still, model=plain), out, data=source).train()
    assert f"the network of {out} has no dropout" in complaint(capsys, "evaluate", out, "--method", "mc-dropout")
