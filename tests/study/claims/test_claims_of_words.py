"""Measures of the claims on spelling and on large vocabularies, each against a computation of its own."""

import itertools
import math
import statistics
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.data.batches import Whole
from elman.network.state import leaves
from elman.report.metrics import Valid, read_metrics
from elman.study.claims import speed
from elman.study.claims.output import perplexity_and_cost
from elman.study.claims.spelling import parameters_and_rare_words, unknown_words
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_task, recorded_source
from elman.tasks.text.run import TextRun
from support import text_runs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on a corpus whose test split has words that the vocabulary lacks, with another encoder or choice."""
    corpus = text_runs.write_corpus(tmp_path_factory.mktemp("words") / "corpus")
    with (corpus / "train.txt").open("a") as file:
        file.write("w1 once w2\n")
    with (corpus / "test.txt").open("a") as file:
        file.write("w1 anew w2 w3 other w4\n" * 4)

    def train(name, encoder=None, choice=None):
        raw = msgspec.to_builtins(text_runs.recipe(epochs=1), str_keys=True)
        raw["data"] = {"kind": "text", "tokenisation": "words", "min_count": 2}
        raw["model"]["encoder"] = encoder or {"kind": "lookup", "size": 8}
        raw["model"]["output"]["choice"] = choice or {"kind": "flat"}
        folder = tmp_path_factory.mktemp("runs") / name
        experiment = Experiment(config.parse_recipe(raw, "toy"), folder, data=corpus)
        experiment.train()
        experiment.finish()
        return folder

    return train


@pytest.fixture(scope="module")
def spelled(trained):
    return trained("spelled", encoder={"kind": "characters", "size": 4, "widths": [1, 2], "filters": [4, 4]})


def nlls(run, split):
    """The negative log-likelihood of every token, in one pass over the split."""
    tokens = torch.from_numpy(np.array(split.tokens)).long()
    model = run.model.eval()
    with torch.no_grad():
        inputs = torch.cat([torch.tensor([run.first]), tokens[:-1]]).unsqueeze(1)
        log_probs, _ = model.log_probs(inputs, model.begin(1))
    return -log_probs[:, 0].gather(-1, tokens.unsqueeze(-1)).squeeze(-1).double().numpy()


def test_rare_words_and_those_after_them(spelled):
    """Both models read an unknown word as <unk>."""
    run = TextRun(spelled)
    corpus = run.corpus()
    split, train = corpus.split("test"), np.array(corpus.split("train").tokens)
    found, curves = parameters_and_rare_words(spelled, below=60, block=20, streams=1)
    losses, tokens = nlls(run, split), np.array(split.tokens)
    rare = (np.bincount(train, minlength=len(run.vocabulary)) < 60)[tokens] & (tokens != run.vocabulary.unk)
    assert 0 < rare.sum() < len(tokens) / 2
    after = math.exp(losses[1:][rare[:-1]].mean())
    assert found["test perplexity"] == pytest.approx(math.exp(losses.mean()), rel=4e-6)
    assert found["rare words"] == pytest.approx(math.exp(losses[rare].mean()), rel=4e-6)
    assert found["after rare words"] == pytest.approx(after, rel=4e-6)
    assert found["after rare words / all"] == pytest.approx(after / found["test perplexity"], rel=4e-6)
    assert sum(curves["test nats by block"]) == pytest.approx(losses.sum(), rel=4e-6)
    assert found["parameters"] == sum(parameter.numel() for parameter in run.model.parameters())


def test_what_follows_unknown_words_read_in_two_ways(spelled):
    run = TextRun(spelled)
    split = run.corpus().split("test")
    found = unknown_words(spelled, streams=1).figures
    losses = nlls(run, split)
    after = losses[1:][np.array(split.tokens[:-1]) == run.vocabulary.unk]
    assert len(after) == 8
    assert found["after unknown words, as <unk>"] == pytest.approx(math.exp(after.mean()), rel=4e-6)
    assert found["test perplexity, as <unk>"] == pytest.approx(math.exp(losses.mean()), rel=4e-6)
    assert found["after unknown words, spelled"] != pytest.approx(found["after unknown words, as <unk>"], rel=4e-6)


def test_the_cost_of_an_output_is_that_of_the_words_of_the_training_text(trained):
    flat, tree = (trained(kind, choice={"kind": kind, "tied": True}) for kind in ("flat", "tree"))
    found = {
        folder.name: perplexity_and_cost(folder, positions=50, repetitions=2, block=20, streams=1).figures
        for folder in (flat, tree)
    }
    run = TextRun(tree)
    choice, train = run.model.output.choice, torch.from_numpy(np.array(run.corpus().split("train").tokens)).long()
    sizes = choice.starts.diff()
    per_token = len(sizes) + sizes[choice.cluster_of(train)].double().mean().item()
    assert found["flat"]["multiply-adds per token"] == 8 * len(run.vocabulary)
    assert found["tree"]["multiply-adds per token"] == pytest.approx(8 * per_token)
    assert all(figures["microseconds per token"] > 0 for figures in found.values())
    assert found["tree"]["test perplexity"] > 1


def test_the_time_of_a_token_is_that_of_the_windows_after_the_first(trained, monkeypatch):
    """By a clock that shows 5 s for the first window and 2 s for each of the others."""
    folder = trained("timed")
    run = TextRun(folder)
    task = open_task(run.recipe, recorded_source(folder, run.recipe))
    lengths = [span.length for span in task.windows(None).spans(0)[1:5]]
    times = itertools.chain((0.0, 5.0), itertools.count(10.0, 2.0))
    monkeypatch.setattr(speed.time, "process_time", lambda: next(times))
    found = speed.training_time(run.model, task, windows=4)
    rows = run.recipe.training.batch_size
    assert found == pytest.approx(statistics.median(2e6 / (rows * length) for length in lengths))


def test_the_costs_of_a_model(trained):
    """Sizes by count, times above 0, and the perplexity in a time beyond the training that of the best validation."""
    run = TextRun(trained("costs"))
    found = speed.perplexity_and_costs(run.path, windows=4, seconds=1e6, block=20, streams=1).figures
    assert found[speed.PARAMETERS] == sum(parameter.numel() for parameter in run.model.parameters())
    assert found[speed.STATE] == sum(part.numel() for part in leaves(run.model.begin(1)))
    assert found[speed.TRAINING] > 0
    assert found[speed.STREAMING] > 0
    lowest = min(one.perplexity for one in read_metrics(run.path / "metrics.jsonl").valid)
    assert found[speed.in_time("perplexity")] == pytest.approx(lowest)
    assert speed.perplexity_and_costs(run.path, 4, 0.0, 20, 1).figures[speed.in_time("perplexity")] == math.inf


def test_what_is_reached_in_a_time_is_read_between_the_epochs_that_fit(trained, monkeypatch):
    """A step costs 2 ms per token, so that three epochs of the tokens take so many seconds; a validation after each."""
    run = TextRun(trained("paced"))
    task = open_task(run.recipe, recorded_source(run.path, run.recipe))
    tokens = sum(int(Whole.of(task.windows(None).batch(span)).counted) for span in task.windows(None).spans(0))
    checks = [Valid(0, epoch, nll, math.exp(nll), 0.0) for epoch, nll in ((1.0, 5.0), (2.0, 4.0), (3.0, 3.0))]
    monkeypatch.setattr(speed, "training_time", lambda *_: 2000.0)
    monkeypatch.setattr(speed, "read_metrics", lambda _: SimpleNamespace(valid=checks))
    found = speed.perplexity_and_costs(run.path, windows=4, seconds=1.5 * tokens * 2e-3, block=20, streams=1)
    assert found.figures[speed.in_time("perplexity")] == pytest.approx(math.exp(4.5))
    x, y = speed.course("perplexity")
    assert found.curves[x] == pytest.approx([epoch * tokens * 2e-3 for epoch in (1, 2, 3)])
    assert found.curves[y] == pytest.approx([math.exp(5.0), math.exp(4.0), math.exp(3.0)])


def test_nats_after_so_many_epochs_are_the_lowest_so_far():
    checks = [Valid(0, epoch, nll, math.exp(nll), 0.0) for epoch, nll in ((1.0, 5.0), (2.0, 4.0), (3.0, 6.0))]
    found = [speed.nats_after(checks, epochs) for epochs in (0.5, 1.0, 1.25, 2.0, 2.5, 9.0)]
    assert found == [math.inf, 5.0, 4.75, 4.0, 4.0, 4.0]
