"""Tuning of arms: alternatives are tried with a seed of their own, and the lowest validation loss is taken."""

import json
import math

import pytest

from elman import config
from elman.study import claim, conduct, runs
from elman.study.claim import Arm, Claim, Grid, Source
from elman.study.comparison import Bound
from elman.study.measures import PERPLEXITY
from elman.study.runs import PlannedRun, Status
from elman.study.store import SEED, Store, Trial, chosen
from support import inline, text_runs
from support.claims import row

RATES = (("training.optimiser.lr=1e-9",), ("training.optimiser.lr=0.02",))


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    """A claim whose only arm has the choice between a rate that learns and one that does not."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "toy.toml").write_text(config.dump_recipe(text_runs.recipe(epochs=2)))
    monkeypatch.setattr(claim, "find", lambda name: tmp_path / name)
    source = Source("toy.toml", quick=("training.epochs=1",), grid=Grid(RATES, shortened=("training.epochs=1",)))
    return Claim(
        name="tuned",
        sentence="it learns",
        source="nowhere",
        arms=(Arm("one", source),),
        measure=PERPLEXITY,
        comparisons=(Bound("test perplexity", "one", 1e9),),
        seeds=2,
    )


@pytest.mark.slow
def test_the_better_alternative_is_trained_in_full(tuned, tmp_path, monkeypatch):
    inline.use(monkeypatch)
    store = Store(tmp_path / "out", str(text_runs.write_corpus(tmp_path / "corpus")))
    machine = runs.Machine(threads=1)
    planned = conduct.plan(tuned, store, "small", None, machine)
    assert [trial.run.recipe.seed for trial in planned.trials["one"]] == [SEED, SEED]
    assert {trial.run.recipe.training.epochs for trial in planned.trials["one"]} == {1}
    assert len(planned.waiting) == 4
    found = conduct.conduct(planned, store, machine, lambda line: None)
    assert [run.recipe.training.optimiser.lr for run in found.plan.runs["one"]] == [0.02, 0.02]
    assert [run.recipe.training.epochs for run in found.plan.runs["one"]] == [2, 2]
    written = json.loads((store.out / "tuned.json").read_text())["arms"]["one"]["grid"]
    assert [tuple(trial["settings"]) for trial in written] == list(RATES)
    assert written[0]["valid loss"] > written[1]["valid loss"] > 0
    assert not conduct.plan(tuned, store, "small", None, machine).waiting
    quick = conduct.plan(tuned, store, "quick", None, machine)
    assert not quick.trials
    assert len(quick.waiting) == 1


def test_a_trial_counts_when_it_is_trained_and_diverged_ones_last(tmp_path):
    def trial(rate, name):
        (tmp_path / name).mkdir()
        return Trial((f"lr={rate}",), PlannedRun("one", text_runs.recipe(), tmp_path / name))

    trials = [trial(1, "a"), trial(2, "b"), trial(3, "c")]
    assert chosen([]) == ()
    assert chosen(trials) == ("lr=1",)
    for number, loss in ((0, 5.0), (1, 4.0)):
        rows = [row("valid", loss), row("test", 0.0)]
        (trials[number].run.folder / "results.json").write_text(json.dumps(rows))
    assert chosen(trials) == ("lr=1",)
    (trials[2].run.folder / "diverged.json").write_text("{}")
    assert trials[2].loss == math.inf
    assert chosen(trials) == ("lr=2",)


@pytest.mark.slow
def test_a_trial_is_judged_by_its_validations_and_not_evaluated(tuned, tmp_path, monkeypatch):
    inline.use(monkeypatch)
    store = Store(tmp_path / "out", str(text_runs.write_corpus(tmp_path / "corpus")))
    trial = store.trials(tuned, "small")["one"][1]
    runs.train(trial.run, runs.Machine(threads=1))
    assert trial.run.status is Status.DONE
    assert not (trial.run.folder / "results.json").exists()
    assert trial.loss == trial.run.metrics.best.nll
    same = store.place("one", trial.run.recipe)
    assert same.folder == trial.run.folder
    assert same.status is Status.INTERRUPTED
    runs.train(same, runs.Machine(threads=1))
    assert same.status is Status.DONE
    assert same.valid_nll == pytest.approx(trial.loss, rel=0.01)
