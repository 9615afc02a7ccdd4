"""Whole runs on a GPU, pretended or real: training, checkpoints, resumption, results, adaptation and samples."""

import pytest
import torch

from elman.config.inference import CacheRule, Rule, Sampling
from elman.kinds.trees import baselines
from elman.learning.trainer import StopReason
from elman.tasks.adaptation import Method, method_figures, statistics
from elman.tasks.estimate import peak_mb
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.experiment import Experiment
from support import treebank
from support.every_kind import KINDS
from support.gpus import GPUS
from support.pretended import CUDA

TASKS = KINDS | {
    "trees": (
        lambda folder: treebank.write(folder / "bank.ptb", count=30),
        lambda _: treebank.recipe(leaves={"kind": "stack", "sizes": [3]}),
    )
}


@pytest.fixture(autouse=True)
def named(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "pretended")
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(baselines, "UPDATES", 20)


@pytest.mark.slow
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kind", TASKS)
def test_a_run_of_two_steps(kind, gpu, tmp_path):
    """Saved after the first one and resumed; with the figures of the same weights on the CPU."""
    write, make = TASKS[kind]
    data, out = write(tmp_path), tmp_path / "run"
    with GPUS[gpu]():
        for resume in (False, True):
            experiment = Experiment(make(tmp_path), out, data=data, device=CUDA, resume=resume)
            assert experiment.train(max_minutes=0) is StopReason.OUT_OF_TIME
        assert all(tensor.device == CUDA for tensor in experiment.model.state_dict().values())
        found = experiment.finish(prompts=())
        run = experiment.task.run(out, CUDA)
        if kind == "text":
            assert len(run.words("", count=3, seed=1, sampling=Sampling())) == 3
        if kind == "music":
            assert len(run.compose(steps=2, seed=1)) == 2
        if kind in ("text", "music", "series"):
            source = run.adaptation_source(EvaluationOptions(split="valid"))
            cache = CacheRule(window=9) if source.discrete else None
            method_figures(source, Method(rule=Rule(), cache=cache), statistics(run, tokens=20))
    wanted = experiment.task.finish(out, torch.device("cpu"), (), None)
    for one, other in zip(found, wanted, strict=True):
        assert one.nll == pytest.approx(other.nll, rel=1e-5)


def test_the_peak_of_memory_is_that_of_this_process():
    """In MB: an interpreter with torch has more than 50."""
    assert 50 < peak_mb(torch.device("cpu")) < 100_000
