"""Experiments: claims that parse, verdicts by figures, runs that are trained once, pages, and mistakes in one line."""

import dataclasses
import json
import math
import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

from elman import config
from elman.cli import main
from elman.errors import UserError
from elman.files import FolderLock
from elman.network.build import build_model
from elman.reproduce import arm as arms_module
from elman.reproduce import claims as registry
from elman.reproduce import conduct, training
from elman.reproduce.arm import Arm, Computation, Measurement, Source, recipe_of
from elman.reproduce.claim import Claim, ClaimMeasure, CurveAxes
from elman.reproduce.claims.output import RANK
from elman.reproduce.comparison import Bound, lower, no_difference, no_higher, times, together
from elman.reproduce.perplexity import PERPLEXITY
from elman.reproduce.planned import Status
from elman.reproduce.runs import Store, canonical, measured
from support import text_runs


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return text_runs.write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def experiment(tmp_path, monkeypatch, corpus):
    """A claim on two toy recipes: that sigsoftmax is lower than softmax."""
    recipe = tmp_path / "text_runs.toml"
    recipe.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    monkeypatch.setattr(arms_module, "find", lambda name: tmp_path / name)
    arms = (
        Arm("softmax", Source("text_runs.toml")),
        Arm("sigsoftmax", Source("text_runs.toml", ("model.output.activation=sigsoftmax",))),
    )
    made = Claim(
        name="toy-claim",
        sentence="sigsoftmax is lower",
        source="nowhere",
        arms=arms,
        measure=PERPLEXITY,
        comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
        metric="test perplexity",
        published={"softmax": "57.0"},
        seeds=2,
    )
    monkeypatch.setitem(registry.CLAIMS, made.name, made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.CLAIMS)
@pytest.mark.parametrize("scale", arms_module.SCALES)
def test_every_arm_of_every_claim_is_a_recipe_that_builds(name, scale):
    found = registry.CLAIMS[name]
    if not found.has(scale):
        pytest.skip("no recipes at this scale")
    for arm in found.arms:
        source = found.origin(arm, scale)
        if isinstance(source, Computation):
            assert json.loads(json.dumps(source.constants)) is not None, "its fields are kept beside its result"
            continue
        recipe = recipe_of(source, seed=7)
        assert recipe.seed == 7
        large = scale == "paper" and isinstance(recipe.model.output.choice, config.Adaptive)
        with torch.device("meta"):
            build_model(recipe.model, 800_000 if large else 10_000)


WHOLE_SYSTEMS = {"music-nll", "elman-agreement", "reversed-source"}
"""Claims that compare systems, each as it is trained best, or data."""


EQUAL_WEIGHTS = ("model.core.sizes", "model.encoder.size")


def test_lab_arms_differ_in_what_the_claim_is_about_alone():
    for found in registry.CLAIMS.values():
        if found.name in WHOLE_SYSTEMS:
            continue
        recipes = [recipe_of(arm.small, 1) for arm in found.arms if isinstance(arm.small, Source)]
        for other in recipes[1:]:
            changed = set(config.changed_keys(recipes[0], other))
            outputs = ("model.output", "data.max_vocabulary", "training.penalties.balance", *EQUAL_WEIGHTS)
            stability = ("training.constraint", "training.clip", "training.log_spectrum", "training.patience")
            if found.name == "elman-starting-small":
                outputs = ("data.grammar", "training.memory")
            spelling = ("model.encoder", "model.initialisation.embedding")
            allowed = stability if found.name.startswith("gru-") else outputs
            allowed = spelling if found.name.startswith("character-aware") else allowed
            assert all(key.startswith(("title", "notes", "citation", *allowed)) for key in changed), (
                found.name,
                changed,
            )


def figures(**arms):
    return {arm: [{"ppl": value, "limit": 4.0} for value in values] for arm, values in arms.items()}


def test_comparisons_answer_by_their_figures():
    clear = figures(a=[100.0, 101.0, 99.0], b=[110.0, 111.0, 109.5])
    assert lower("ppl", "a", "b").verdict(clear).answer == "holds"
    assert lower("ppl", "b", "a").verdict(clear).answer == "does not hold"
    assert times("ppl", "b", "a", 1.05).verdict(clear).answer == "holds"
    assert no_higher("ppl", "b", "a", 0.2).verdict(clear).answer == "holds"
    assert no_difference("ppl", "a", "b", 0.01).verdict(clear).answer == "does not hold"
    unclear = figures(a=[100.0, 120.0, 90.0], b=[105.0, 100.0, 101.0])
    verdict = lower("ppl", "a", "b").verdict(unclear)
    assert verdict.answer == "undecided"
    assert verdict.line == f"undecided (needs {verdict.needs} seeds)"


def test_bounds_hold_in_every_seed_or_not_at_all():
    assert Bound("ppl", "a", "limit").verdict(figures(a=[3.0, 4.0])).answer == "holds"
    assert Bound("ppl", "a", 3.5).verdict(figures(a=[3.0, 4.0])).answer == "does not hold"
    assert Bound("ppl", "a", "limit", exceeds=True).verdict(figures(a=[5.0, 4.0])).answer == "does not hold"


def test_a_claim_holds_when_all_of_it_does():
    yes = Bound("ppl", "a", 5.0).verdict(figures(a=[3.0]))
    no = Bound("ppl", "a", 1.0).verdict(figures(a=[3.0]))
    open_ = lower("ppl", "a", "b").verdict(figures(a=[1.0, 2.0], b=[2.0, 1.0]))
    assert together("", [yes, yes]).answer == "holds"
    assert together("", [yes, open_]).line.startswith("undecided (needs")
    assert together("", [no, open_]).answer == "does not hold"


@pytest.mark.slow
def test_from_the_command_line_to_the_verdict(experiment, corpus, tmp_path, capsys):
    """Trained once, told, written; a second call trains nothing and says the same."""
    out = tmp_path / "out"
    command = ["reproduce", "toy-claim", "--data", str(corpus), "--out", str(out), "--jobs", "2", "--threads", "1"]
    assert main(command) == 0
    told = capsys.readouterr()
    assert "4 runs, 4 to train" in told.err
    assert told.out.splitlines()[-1].startswith("toy-claim: ")
    assert "57.0" in told.out
    record = json.loads((out / "toy-claim.json").read_text())
    assert record["verdict"] == told.out.splitlines()[-1].removeprefix("toy-claim: ")
    assert len(record["arms"]["softmax"]["test perplexity"]["by_seed"]) == 2
    page = (out / "toy-claim.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    before = sorted((path, path.stat().st_mtime_ns) for path in out.glob("runs/*/model.safetensors"))
    assert len(before) == 4
    assert main([*command, "--resume", "--json"]) == 0
    again = capsys.readouterr()
    assert "4 runs, 0 to train" in again.err
    assert json.loads(again.out)["verdict"] == record["verdict"]
    assert before == sorted((path, path.stat().st_mtime_ns) for path in out.glob("runs/*/model.safetensors"))


@pytest.mark.slow
def test_an_interrupted_run_goes_on(experiment, corpus, tmp_path):
    store = Store(tmp_path / "out", str(corpus))
    planned = conduct.plan(experiment, store, "small", 1, training.Machine(threads=1))
    (first, second) = planned.waiting
    training.train_all([first], training.Machine(threads=1), lambda line: None)
    assert (first.status, second.status) == (Status.DONE, Status.MISSING)
    (first.folder / "results.json").unlink()
    assert first.status is Status.INTERRUPTED
    lines = []
    outcome = conduct.conduct(planned, store, training.Machine(threads=1), lines.append)
    assert (first.status, second.status) == (Status.DONE, Status.DONE)
    assert outcome.verdict.answer == "undecided"


@pytest.mark.slow
def test_a_training_that_diverges_is_a_result(experiment, corpus, tmp_path):
    store = Store(tmp_path / "out", str(corpus))
    recipe = recipe_of(experiment.arms[0].small, 1)
    wild = config.load_recipe(tmp_path / "text_runs.toml", ['training.optimiser={kind = "sgd", lr = 1e39}'])
    run = store.place("wild", wild)
    training.train_all([run], training.Machine(threads=1), lambda line: None)
    assert run.status is Status.DIVERGED
    assert measured(run, PERPLEXITY).figures["test perplexity"] == math.inf
    with pytest.raises(UserError, match="diverged"):
        measured(run, RANK)
    assert store.place("other label", recipe).folder != run.folder


def test_figures_of_seeds_that_diverged_are_written(experiment, corpus, tmp_path):
    """Two seeds of three without a figure: a verdict, a page and JSON all the same."""
    store = Store(tmp_path / "out", str(corpus))
    planned = conduct.plan(experiment, store, "small", 2, training.Machine(threads=1))
    for run, ppl in zip((run for each in planned.runs.values() for run in each), (9.0, 9.1, 0, 0), strict=True):
        run.folder.mkdir(parents=True)
        rows = [{"split": split, "perplexity": ppl, "bits_per_character": 1.0} for split in ("valid", "test")]
        name, content = ("results.json", rows) if ppl else ("diverged.json", {"reason": "the loss is not finite"})
        (run.folder / name).write_text(json.dumps(content))
    outcome = conduct.conduct(planned, store, training.Machine(threads=1), lambda line: None)
    assert outcome.line == "toy-claim: does not hold"
    written = json.loads((store.out / "toy-claim.json").read_text())
    assert written["arms"]["sigsoftmax"]["test perplexity"] == {
        "mean": None,
        "deviation": None,
        "by_seed": [None, None],
    }
    assert outcome.page.is_file()


@pytest.mark.slow
def test_a_signal_saves_every_run(experiment, corpus, tmp_path):
    """SIGTERM to the parent: the child saves, and a second call continues the same run."""
    store = Store(tmp_path / "out", str(corpus))
    run = store.place("long", config.load_recipe(tmp_path / "text_runs.toml", ["training.epochs=400"]))

    def stop_soon():
        while not (run.folder / "metrics.jsonl").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop_soon)
    stopper.start()
    with pytest.raises(training.Stopped):
        training.train_all([run], training.Machine(threads=1), lambda line: None)
    stopper.join()
    assert run.status is Status.INTERRUPTED
    assert (run.folder / "checkpoint.safetensors").is_file()


def test_a_shared_run_is_planned_once(experiment, corpus, tmp_path):
    store, machine = Store(tmp_path / "out", str(corpus)), training.Machine(threads=1)
    one = conduct.plan(experiment, store, "small", 2, machine)
    renamed = [dataclasses.replace(arm, label=f"{arm.label} again") for arm in experiment.arms]
    twin = dataclasses.replace(experiment, name="twin", arms=tuple(renamed), comparisons=(), published={})
    other = conduct.plan(twin, store, "small", 2, machine)
    assert one.training.keys() == other.training.keys()
    assert conduct.total_minutes([one, other], machine) == conduct.total_minutes([one], machine) > 0


def test_planned_minutes_of_the_list_are_those_of_the_sizes():
    claims = registry.CLAIMS
    assert 5 < conduct.nominal_minutes(claims["mixture-activations"], "small") < 200
    assert conduct.nominal_minutes(claims["doc-components"], "paper") > 1000


def test_what_is_left_at_its_default_is_not_in_a_digest():
    """So the runs of an older elman are found by one whose configuration has more keys."""
    plain = canonical(text_runs.recipe())
    assert plain["training"]["clip"] == 0.5
    assert "constraint" not in plain["training"]
    assert plain["model"]["core"] == {
        "kind": "stack", "sizes": (8, 8), "weight_drop": 0.2, "between_dropout": 0.1, "output_dropout": 0.1,
    }  # fmt: skip


def test_a_changed_measure_is_measured_again(experiment, corpus, tmp_path):
    run = Store(tmp_path / "out", str(corpus)).place("one", recipe_of(experiment.arms[0].small, 1))
    run.folder.mkdir(parents=True)
    (run.folder / "results.json").write_text("[]")
    calls = []

    def tokens(folder, count):
        calls.append(count)
        return Measurement({"tokens": float(count)}, {})

    measure = ClaimMeasure("tokens", {"tokens": "tokens"}, tokens, {"count": 3})
    for _ in range(2):
        assert measured(run, measure).figures == {"tokens": 3.0}
    assert measured(run, dataclasses.replace(measure, constants={"count": 4})).figures == {"tokens": 4.0}
    assert calls == [3, 4]


def test_a_run_that_another_process_trains_is_waited_for(experiment, corpus, tmp_path):
    run = Store(tmp_path / "out", str(corpus)).place("one", recipe_of(experiment.arms[0].small, 1))
    lines, lock = [], FolderLock(run.folder)
    lock.__enter__()

    def hear(line):
        lines.append(line)
        if "waiting" in line:
            (run.folder / "results.json").write_text("[]")
            lock.__exit__(None, None, None)

    training.train_all([run], training.Machine(threads=1), hear)
    assert [line.split(": ")[1].split(" in ")[0] for line in lines] == [
        "another process trains it", "done by another process",
    ]  # fmt: skip


def test_one_run_serves_every_label(experiment, corpus, tmp_path):
    store = Store(tmp_path / "out", str(corpus))
    recipe = recipe_of(experiment.arms[0].small, 1)
    first = store.place("softmax", recipe)
    first.folder.mkdir(parents=True)
    assert store.place("twin", recipe).folder == first.folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-thing"], "there is no experiment no-such-thing"),
        (["rank-bound", "--scale", "huge"], "--scale huge: choose quick, small or paper"),
        (["rank-bound", "--scale", "lab"], "lab is now called small"),
        (["rank-bound", "--seeds", "0"], "--seeds is 0; it must be 1 or more"),
        (["rank-bound", "--jobs", "0"], "--jobs is 0"),
        (["rank-bound", "--data", "nowhere.txt"], "nowhere.txt"),
        (["rank-bound", "--resume", "--out", "nowhere"], "there is no folder nowhere"),
        (["delta-memory-noise", "--scale", "paper"], "has no recipes at --scale paper; use --scale small"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert message in told[0]


def test_out_may_not_be_a_file(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "rank-bound", "--out", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err


@pytest.mark.slow
def test_list_names_every_claim(capsys):
    assert main(["reproduce", "list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in registry.CLAIMS)
    assert main(["reproduce", "list", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(registry.CLAIMS)


@pytest.mark.slow
def test_computations_are_made_once_and_kept(tmp_path, monkeypatch, capsys):
    """Arms that train nothing: their results are kept until the file is removed or a constant changes."""
    calls = []

    @dataclasses.dataclass(frozen=True)
    class Quotient:
        above: float = 1.0

        def __call__(self, seed, data):
            assert data is None
            calls.append(seed)
            return Measurement({"error": self.above / seed}, {"curve": [1.0, 0.5]})

    made = Claim(
        name="toy-computation",
        sentence="the error is small",
        source="nowhere",
        arms=(Arm("a/b", Computation(Quotient(), 0.1)),),
        measure=ClaimMeasure("error", {"error": "error"}, curve=CurveAxes("curve", "step", relative=False)),
        comparisons=(Bound("error", "a/b", 2.0),),
        metric="error",
        seeds=2,
    )
    monkeypatch.setitem(registry.CLAIMS, made.name, made)
    command = ["reproduce", "toy-computation", "--out", str(tmp_path), "--threads", "1"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "toy-computation: holds"
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arms"]["a/b"]["error"]["by_seed"] == [1.0, 0.5]
    assert calls == [1, 2]
    next(tmp_path.glob("computed/toy-computation/*-1.json")).unlink()
    assert main(command) == 0
    assert calls == [1, 2, 1]
    assert conduct.nominal_minutes(made, "small") == pytest.approx(0.2)
    changed = dataclasses.replace(made, arms=(Arm("a/b", Computation(Quotient(above=0.5), 0.1)),))
    monkeypatch.setitem(registry.CLAIMS, made.name, changed)
    capsys.readouterr()
    for _ in range(2):
        assert main([*command, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["arms"]["a/b"]["error"]["by_seed"] == [0.5, 0.25]
    assert calls == [1, 2, 1, 1, 2]


def test_every_file_of_claims_is_registered():
    folder = Path(registry.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {*registry.MODULES, "__init__"}
    assert len(registry.CLAIMS) >= 35


PUBLISHED = {
    "gru-success-rate": {
        "success": dict.fromkeys(("delta 0.2", "delta 0.5", "delta 0.8", "delta 1.1", "delta 1.4", "clip 5"), 1.0)
        | dict.fromkeys(("clip 10", "clip 15", "clip 20"), 0.0)
    },
    "gru-perplexity-by-delta": {
        "valid perplexity": {"delta 0.2": 102.0, "delta 0.5": 102.8, "delta 0.8": 103.7, "delta 1.1": 105.2}
        | {"delta 1.4": 107.0, "clip 5": 109.3}
    },
    "gru-state-decay": {"decay": {"delta 0.2": 0.94, "delta 0.8": 0.7, "delta 1.4": 0.5, "clip 5": 1.0}},
    "gru-gradient-spikes": {
        "largest radius": {"delta 0.2": 0.95, "clip 20": 1.1},
        "largest gradient norm": {"delta 0.2": 5.0, "clip 20": 300.0},
    },
    "music-constraint": {"test nats per step": {"GRU, delta 0.2": 3.53, "GRU, clip 15": 3.64}},
    "music-nll": {"test nats per step": {"GRU, clip 15": 3.63, "LSTM-NADE": 2.31}},
    "mixture-activations": {"test perplexity": {"MoS": 54.7, "MoSS": 54.6, "MoR": 66.2, "MoSig": 60.3, "MoSp": 59.4}},
    "doc-components": {"test perplexity": {"softmax": 57.3, "MoS": 54.44, "DOC": 53.15}},
    "mos-components": {"test perplexity": {"MoS, 4 components": 54.44, "MoS": 54.79}},
    "doc-layers": {"test perplexity": {"DOC": 53.15, "DOC, 2 of layer 1": 53.52, "DOC, 2 of the vector": 54.28}},
    "balance-loss": {"test perplexity": {"DOC": 53.15, "DOC, balanced": 52.87}},
    "relu-fails": {"test perplexity": {"softmax": 57.0, "relu": 1240.0}},
    "character-bottleneck": {"test bits per character": {"softmax": 1.56, "sigsoftmax": 1.56}},
    "gradient-shortcut": {metric: {"MoS": 0.5, "DOC": 0.9} for metric in ("beginning", "mean")},
    "elman-starting-small": {"KL divergence": {"SRN": 0.2, "SRN, by complexity": 0.1, "SRN, by memory": 0.15}},
    "character-aware-twins": {
        metric: {"characters": 92.3, "words": 97.6}
        for metric in ("test perplexity", "after rare words", "after rare words / all")
    },
    "hierarchical-softmax": {
        "test perplexity": {"flat softmax": 123.0, "tree": 136.0, "adaptive softmax": 123.0 * 147 / 144},
        "multiply-adds per token": {"flat softmax": 154.0, "tree": 9.1, "adaptive softmax": 20.0},
    },
    "adaptive-sigsoftmax": {"test perplexity": {"adaptive softmax": 33.8, "adaptive sigsoftmax": 33.62}},
    "lstm-long-lag": {"error": {"lstm": 0.001, "elman": 0.167}},
    "echo-state": {"NRMSE": {"reservoir": 6e-5}},
}
"""Figures as the papers report them (or as their claims describe them), by claim, metric and arm."""


def judged(name, published):
    """The verdict on three seeds that scatter by one in a thousand around some figures."""
    made = registry.CLAIMS[name]
    figures = {
        arm.label: [
            {metric: values[arm.label] * (1 + 1e-3 * scatter) for metric, values in published.items()}
            for scatter in (-1, 0, 1)
        ]
        for arm in made.arms
    }
    for index, each in enumerate(figures.values()):  # differences between arms scatter too
        for seed, row in enumerate(each):
            row |= {metric: value * (1 + 1e-5 * ((index * 7 + seed * 3) % 5)) for metric, value in row.items()}
    return together("", [comparison.verdict(figures) for comparison in made.comparisons]).answer


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_figures_support_their_claim(name):
    assert judged(name, PUBLISHED[name]) == "holds"


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in ("character-bottleneck", "echo-state")])
def test_the_opposite_figures_do_not(name):
    """With the arms in reverse order of their figures."""
    opposite = {}
    for metric, values in PUBLISHED[name].items():
        ranked = sorted(values, key=values.get)
        opposite[metric] = {arm: values[other] for arm, other in zip(ranked, reversed(ranked), strict=True)}
    assert judged(name, opposite) == "does not hold"
