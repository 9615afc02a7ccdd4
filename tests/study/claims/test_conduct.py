"""From the command line to the verdict: runs planned and trained once, records, pages, and mistakes in one line."""

import dataclasses
import json
from types import SimpleNamespace

import msgspec
import pytest

from elman.cli import main
from elman.errors import UserError
from elman.study import claims as registry
from elman.study import conduct
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.comparison import Bound
from elman.study.measures import by_split
from elman.study.runs import Machine
from elman.study.store import Store
from elman.tasks.open import task_of
from elman.tasks.task import Size
from support import inline
from support.claims import row
from support.recipes import RECIPES

RESULTS_ALONE = by_split("perplexity", "perplexity")
"""The figures in results.json, without a model that scores tokens."""


@pytest.mark.slow
def test_from_the_command_line_to_the_verdict(experiment, corpus, tmp_path, monkeypatch, capsys, drawn):
    """Trained once, told, written; a second call trains nothing and says the same."""
    inline.use(monkeypatch)
    out = tmp_path / "out"
    command = ["reproduce", "toy-claim", "--data", str(corpus), "--out", str(out), "--jobs", "2", "--threads", "1"]
    assert main(command) == 0
    told = capsys.readouterr()
    assert "4 runs, 4 to train" in told.err
    assert told.out.splitlines()[-1].startswith("toy-claim: ")
    assert "57.0" in told.out
    record = json.loads((out / "toy-claim.json").read_text())
    assert record["verdict"] == told.out.splitlines()[-1].removeprefix("toy-claim: ")
    assert len(record["arms"]["softmax"]["figures"]["test perplexity"]["by_seed"]) == 2
    written = (out / "toy-claim.html").read_text()
    assert "http://" not in written.replace("http://www.w3.org", "")
    before = sorted((path, path.stat().st_mtime_ns) for path in out.glob("runs/*/model.safetensors"))
    assert len(before) == 4
    assert main([*command, "--resume", "--json"]) == 0
    again = capsys.readouterr()
    assert "4 runs, 0 to train" in again.err
    assert json.loads(again.out)["verdict"] == record["verdict"]
    assert before == sorted((path, path.stat().st_mtime_ns) for path in out.glob("runs/*/model.safetensors"))


def test_figures_of_seeds_that_diverged_are_written(experiment, corpus, tmp_path):
    """Two seeds of three without a figure: a verdict, a page and JSON all the same."""
    store, plain = Store(tmp_path / "out", str(corpus)), dataclasses.replace(experiment, measure=RESULTS_ALONE)
    planned = conduct.plan(plain, store, "small", range(1, 3), Machine(threads=1))
    for run, ppl in zip((run for each in planned.runs.values() for run in each), (9.0, 9.1, 0, 0), strict=True):
        run.folder.mkdir(parents=True)
        rows = [row(split, perplexity=float(ppl), bits_per_character=1.0) for split in ("valid", "test")]
        name, content = ("results.json", rows) if ppl else ("diverged.json", {"reason": "the loss is not finite"})
        (run.folder / name).write_text(json.dumps(content))
    outcome = conduct.conduct(planned, store, Machine(threads=1), lambda line: None)
    assert outcome.record.line == "toy-claim: does not hold"
    written = json.loads((store.out / "toy-claim.json").read_text())
    assert written["arms"]["sigsoftmax"]["figures"]["test perplexity"] == {
        "mean": None,
        "deviation": None,
        "by_seed": [None, None],
    }
    assert outcome.page.is_file()


def test_a_shared_run_is_planned_once(experiment, corpus, tmp_path):
    store, machine = Store(tmp_path / "out", str(corpus)), Machine(threads=1)
    plain = dataclasses.replace(experiment, measure=RESULTS_ALONE)
    one = conduct.plan(plain, store, "small", range(1, 3), machine)
    renamed = [dataclasses.replace(arm, label=f"{arm.label} again") for arm in experiment.arms]
    twin = dataclasses.replace(plain, name="twin", arms=tuple(renamed), comparisons=(), published={})
    other = conduct.plan(twin, store, "small", range(1, 3), machine)
    assert one.training.keys() == other.training.keys()
    assert conduct.total_minutes([one, other], machine) == conduct.total_minutes([one], machine) > 0


@pytest.mark.parametrize(
    ("name", "settings", "size"),
    [
        ("ptb/awd-lstm", {}, (929_589, 10_000, 0)),
        ("ptb/awd-lstm", {"train_tokens": 5_000, "max_vocabulary": 70}, (5_000, 70, 0)),
        ("ptb/awd-lstm", {"train_tokens": 10**9, "max_vocabulary": 10**6}, (929_589, 10_000, 0)),
        ("shakespeare/residual-mamba2", {}, (1_200_000, 27_000, 0)),
        ("shakespeare/characters", {"corpus": "shakespeare"}, (5_000_000, 100, 0)),
        ("music/nottingham-gru", {}, (176_561, 93, 0)),
        ("series/mackey-glass", {}, (16_000, 1, 0)),
        ("grammar/gru", {}, (210_000, 50, 0)),
        ("translation/small-en-ja", {}, (440_000, 8_000, 570_000)),
        ("translation/small-en-ja", {"train_pairs": 100, "max_vocabulary": 70}, (880, 70, 1_140)),
        ("headlines/small-encdec", {}, (240_000, 4_000, 600_000)),
        ("headlines/encdec", {}, (41_800_000, 5_000, 121_600_000)),
        ("parsing/small-trees", {}, (180_000, 100, 66_000)),
        ("phonemes/small-cmudict", {}, (900_000, 100, 3_000_000)),
    ],
)
def test_sizes_by_which_the_time_of_a_recipe_is_foretold(name, settings, size):
    """Tokens, symbols and tokens of sources, as published or approximate, no more than the recipe takes of them."""
    recipe = RECIPES[name]
    cut = msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, **settings))
    assert task_of(cut).nominal_size(cut) == Size(*size)


def test_planned_minutes_of_the_list_are_those_of_the_sizes():
    claims = registry.CLAIMS
    assert 5 < conduct.nominal_minutes(claims["mixture-activations"], "small") < 200
    assert conduct.nominal_minutes(claims["doc-components"], "paper") > 1000
    for name, measured in (("music-by-delta", 75), ("music-success-rate", 111), ("recurrences-on-music", 328)):
        assert measured / 2 < conduct.nominal_minutes(claims[name], "small") < 2 * measured, name


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
    assert json.loads(capsys.readouterr().out)["arms"]["a/b"]["figures"]["error"]["by_seed"] == [1.0, 0.5]
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
        assert json.loads(capsys.readouterr().out)["arms"]["a/b"]["figures"]["error"]["by_seed"] == [0.5, 0.25]
    assert calls == [1, 2, 1, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-thing"], "there is no experiment no-such-thing"),
        (["rank-bound", "--scale", "huge"], "--scale huge: choose quick, small or paper"),
        (["rank-bound", "all"], "`elman reproduce all` takes no further names; leave them out"),
        (
            ["rank-bound", "doc-layers", "--arm", "DOC"],
            "--arm belongs to one experiment, not to `elman reproduce rank-b",
        ),
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
def test_list_names_every_claim(monkeypatch, capsys):
    assert main(["reproduce", "list", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(registry.CLAIMS)
    monkeypatch.setattr(registry, "CLAIMS", dict(list(registry.CLAIMS.items())[:4]))
    assert main(["reproduce", "list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in registry.CLAIMS)


@pytest.mark.slow
def test_several_claims_are_trained_side_by_side(experiment, corpus, tmp_path, monkeypatch, capsys):
    """Every run once, before the first verdict; the claims one after another."""
    inline.use(monkeypatch)
    second = dataclasses.replace(experiment, name="second-claim", arms=experiment.arms[::-1])
    monkeypatch.setattr(registry, "CLAIMS", {one.name: one for one in (experiment, second)})
    names, out = ["toy-claim", "second-claim", "toy-claim"], str(tmp_path / "out")
    command = ["reproduce", *names, "--data", str(corpus), "--out", out, "--threads", "1", "--jobs", "2", "--quick"]
    assert main(command) == 0
    shown = capsys.readouterr()
    verdicts = [line for line in shown.out.splitlines() if "-claim: indicates" in line]
    assert [line.partition(":")[0] for line in verdicts] == ["toy-claim", "second-claim"]
    assert len(list((tmp_path / "out" / "runs").glob("*/results.json"))) == 2
    assert shown.err.count("training into") == 2
    assert main([*command, "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["toy-claim", "second-claim"]


@pytest.mark.parametrize(
    ("jobs", "sizes"),
    [(1, [[0], [9], [20], [3], [12], [1]]), (2, [[0, 9, 20], [3, 12, 1]]), (3, [[0, 9, 20], [3, 12, 1]])],
)
def test_claims_are_trained_together_in_batches(jobs, sizes):
    """One by one with one job; otherwise so many that there are eight runs for every job."""
    plans = [SimpleNamespace(waiting=[None] * size) for size in (0, 9, 20, 3, 12, 1)]
    found = list(conduct.batches(plans, jobs))
    assert [[len(one.waiting) for one in batch] for batch in found] == sizes


@pytest.mark.slow
def test_all_trains_claims_together_and_reports_a_failure_with_its_claim(
    experiment, corpus, tmp_path, monkeypatch, capsys
):
    inline.use(monkeypatch)
    second = dataclasses.replace(experiment, name="second-claim", arms=experiment.arms[::-1])
    monkeypatch.setattr(registry, "CLAIMS", {one.name: one for one in (experiment, second)})
    together = conduct.train_together
    batches = []

    def failing(plans, *others):
        batches.append([one.claim.name for one in plans])
        if len(plans) > 1:
            raise UserError("a run failed")
        return together(plans, *others)

    monkeypatch.setattr(conduct, "train_together", failing)
    command = ["reproduce", "all", "--data", str(corpus), "--out", str(tmp_path / "out"), "--threads", "1", "--quick"]
    assert main([*command, "--jobs", "2"]) == 0
    assert batches == [["toy-claim", "second-claim"], ["toy-claim"], ["second-claim"]]
    assert capsys.readouterr().out.count("-claim: indicates") == 2


@pytest.mark.slow
def test_all_goes_on_where_one_claim_cannot_be_planned(experiment, corpus, tmp_path, monkeypatch, capsys):
    inline.use(monkeypatch)
    broken = dataclasses.replace(experiment, name="broken", needs=("no-such-pairs",))
    monkeypatch.setattr(registry, "CLAIMS", {"broken": broken, experiment.name: experiment})
    command = ["reproduce", "all", "--data", str(corpus), "--out", str(tmp_path / "out"), "--threads", "1", "--quick"]
    assert main(command) == 1
    shown = capsys.readouterr()
    assert "broken: left out: no-such-pairs" in shown.err
    assert shown.err.splitlines()[-1] == "left out: broken"
    assert "toy-claim: indicates" in shown.out
    assert (tmp_path / "out" / "index-quick.html").is_file()
