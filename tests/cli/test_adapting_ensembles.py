"""elman evaluate --ensemble and --mix whose networks adapt to what they read."""

import json
import shutil

import msgspec
import numpy as np
import pytest

from elman.cli import main
from elman.config.inference import CacheRule, Rule
from elman.evaluation.perplexity import average_probabilities
from elman.learning import checkpoint
from elman.tasks.adaptation import Method, method_figures, method_log_probs, statistics
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.text.ensemble import own_counts
from elman.tasks.text.run import TextRun
from support.commands import output, refusal, trained

SGD_RULE = Rule(kind="sgd", lr=0.3, decay=0.01)
SGD = ("--method", "dynamic", "--rule", "sgd", "--lr", "0.3", "--decay", "0.01")
BOTH = ("--method", "dynamic+cache", "--cache-weight", "0.2", "--cache-window", "50")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, and the same network with weights of half the size."""
    run = trained("words", tmp_path_factory)
    other = shutil.copytree(run, tmp_path_factory.mktemp("other") / "other")
    tensors, facts = checkpoint.load(other / "model.safetensors")
    checkpoint.save(other / "model.safetensors", {name: 0.5 * value for name, value in tensors.items()}, facts)
    return run, other


def evaluated(capsys, *arguments):
    return json.loads(output(capsys, "evaluate", *arguments, "--json"))


def log_probs(run, method, split="test"):
    """Of the tokens of a split under a run that adapts."""
    loaded = TextRun(run)
    source = loaded.adaptation_source(EvaluationOptions(split=split))
    rms = method.rule is not None and method.rule.kind == "rms"
    return method_log_probs(source, method, statistics(loaded) if rms else None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "method"),
    [
        (SGD, Method(rule=SGD_RULE)),
        (BOTH, Method(rule=Rule(), cache=CacheRule(weight=0.2, window=50))),
        (("--method", "cache"), Method(cache=CacheRule())),
    ],
)
def test_each_network_adapts_by_itself(capsys, runs, options, method):
    """Each member is the run alone under the method, and the whole the mean of probabilities with those of counts."""
    alone = [evaluated(capsys, run, *options) for run in runs]
    static = evaluated(capsys, runs[0])
    found = evaluated(capsys, *runs, "--ensemble", "--weights", "3", "1", "--mix", "3-gram=0.2", *options)
    *networks, together, counts = found["members"]
    for member, one, run in zip(networks, alone, runs, strict=True):
        assert member["run"] == str(run)
        assert member["nll"] == pytest.approx(one["nll"], rel=1e-6)
        assert (member["method"], member["settings"]) == (one["method"], one["settings"])
    assert networks[0]["nll"] != pytest.approx(static["nll"], rel=1e-4)
    of_runs = [log_probs(run, method) for run in runs]
    first = TextRun(runs[0])
    test = first.corpus().split("test").tokens
    of_counts = own_counts(first, 3).log_prob(test, [first.first])
    mean = np.log(0.75 * np.exp(of_runs[0]) + 0.25 * np.exp(of_runs[1]))
    assert together["nll"] == pytest.approx(-mean.mean(), rel=1e-5)
    assert counts["nll"] == pytest.approx(-of_counts.mean(), rel=1e-5)
    assert found["nll"] == pytest.approx(-np.log(0.8 * np.exp(mean) + 0.2 * np.exp(of_counts)).mean(), rel=1e-5)
    assert found["method"] == f"{method.name} ensemble"
    assert found["settings"]["weights"] == [0.6, 0.2, 0.2]


def test_the_weights_are_those_of_networks_that_adapt(capsys, runs):
    """With nearly all of its weight in the cache a network deserves another part of the mixture."""
    mixed = ("evaluate", runs[0], "--mix", "1-gram", "--json")
    static = json.loads(output(capsys, *mixed))["settings"]["weights"]
    assert main([*map(str, mixed), "--method", "cache", "--cache-weight", "0.95"]) == 0
    captured = capsys.readouterr()
    weights = json.loads(captured.out)["settings"]["weights"]
    assert abs(weights[1] - static[1]) > 0.03
    assert f"network {weights[0]:.4f}, 1-gram {weights[1]:.4f} (EM on 200 tokens, valid)" in captured.err
    loaded = TextRun(runs[0])
    valid = loaded.corpus().split("valid").tokens
    counts = own_counts(loaded, 1).log_prob(valid, [loaded.first])
    network = log_probs(runs[0], Method(cache=CacheRule(weight=0.95)), "valid")

    def nll(share):
        return -average_probabilities([network, counts], [1 - share, share]).mean()

    assert weights[1] == pytest.approx(min(np.linspace(0.001, 0.999, 999), key=nll), abs=0.01)


@pytest.mark.slow
def test_each_network_is_tuned_by_itself(capsys, runs, tmp_path):
    copies = [shutil.copytree(run, tmp_path / name) for run, name in zip(runs, "ab", strict=True)]
    tune = ("--method", "cache", "--tune", "--tune-tokens", "60")
    found = evaluated(capsys, *copies, "--ensemble", *tune)
    alone = [evaluated(capsys, run, *tune) for run in copies]
    assert [row["settings"] for row in found["members"]] == [row["settings"] for row in alone]
    assert main(["evaluate", *map(str, copies), "--ensemble", *tune, "--split", "valid"]) == 0
    line = "the settings are tuned on the beginning of the split that is evaluated"
    assert capsys.readouterr().err.count(line) == 1


@pytest.mark.slow
def test_what_is_skipped_does_not_count(capsys, runs):
    whole, part = (evaluated(capsys, *runs, "--ensemble", *SGD, *more) for more in ((), ("--skip-first",)))
    assert part["tokens"] == whole["tokens"] - 1
    mean = average_probabilities([log_probs(run, Method(rule=SGD_RULE)) for run in runs])
    assert part["nll"] == pytest.approx(-mean[1:].mean(), rel=1e-5)


def test_a_network_that_diverges_is_no_member(capsys, runs):
    line = refusal(capsys, "evaluate", *runs, "--ensemble", "--method", "dynamic", "--rule", "sgd", "--lr", "1e38")
    assert "dynamic evaluation diverged; give a lower --lr" in line


def test_a_network_that_diverges_has_no_perplexity(runs):
    """What is not a number is not left out of the figures of one network."""
    source = TextRun(runs[0]).adaptation_source()
    assert np.isnan(method_figures(source, Method(rule=msgspec.structs.replace(SGD_RULE, lr=1e38))).nll)


def test_a_network_that_diverges_is_refused_and_not_kept(capsys, runs):
    before = [path.read_text() for path in runs[0].glob("results.json")]
    line = refusal(capsys, "evaluate", runs[0], "--method", "dynamic", "--rule", "sgd", "--lr", "1e38")
    assert "dynamic evaluation diverged; give a lower --lr" in line
    assert [path.read_text() for path in runs[0].glob("results.json")] == before


def test_log_probs_are_those_of_the_figures(runs):
    source = TextRun(runs[0]).adaptation_source()
    method = Method(rule=SGD_RULE, cache=CacheRule())
    assert -method_log_probs(source, method).mean() == pytest.approx(method_figures(source, method).nll, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--method", "mc-dropout", "--mix", "3-gram"), "--method mc-dropout is of one network"),
        (("--method", "mc-dropout", "--ensemble"), "--method mc-dropout is of one network"),
        (("--method", "cache", "--ensemble", "--streams", "2"), "reads one stream; leave out --streams and --warm-up"),
        (("--method", "cache", "--mix", "3-gram", "--warm-up", "2"), "leave out --streams and --warm-up"),
        (("--method", "cache", "--mix", "3-gram", "--beam", "2"), "--beam does not belong to --mix"),
    ],
)
def test_mistakes(capsys, runs, options, line):
    assert line in refusal(capsys, "evaluate", runs[0], *options)
