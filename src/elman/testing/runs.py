"""What every kind of data and every claim must fulfil."""

import math
import tempfile
from pathlib import Path
from typing import get_args

import msgspec

from elman.config.recipe import Recipe
from elman.learning.checkpoint import digest_of, load
from elman.learning.folder import Watcher
from elman.learning.progress import Progress
from elman.study.claim import Claim, Computation, Scale, Source
from elman.tasks.evaluating import DEFAULT
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_run, task_of


class _StopAt(Watcher):
    """Interrupts training after `step` steps, as a signal does."""

    def __init__(self, step: int) -> None:
        self.at = step

    def step(self, progress: Progress, tokens: int, loss: float) -> None:  # noqa: ARG002 - the position decides
        if progress.step >= self.at:
            raise KeyboardInterrupt


def check_task(recipe: Recipe, source: Path | str) -> None:
    """A kind of data: trained, killed and resumed with equal weights, evaluated and opened again with equal results.

    The recipe should be small, since it is trained twice, and have at least two windows per epoch.
    """
    kind, data = task_of(recipe), str(source)
    with tempfile.TemporaryDirectory() as folder:
        whole, cut = Path(folder, "whole"), Path(folder, "cut")
        first = Experiment(recipe, whole, data=data)
        assert first.task.digest == Experiment(recipe, cut, data=data).task.digest, "the digest belongs to the data"
        assert first.recipe.data.digest == first.task.digest, "the recipe of a run names the digest of its data"
        spans = first.task.windows(recipe.training.window.max_extra).spans(0)
        assert len(spans) > 1, "an epoch has two windows or more"
        first.train()
        results = first.finish()
        interrupted = Experiment(recipe, cut, data=data)
        try:
            interrupted.train([_StopAt(len(spans) // 2)])  # type: ignore[abstract]
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("training ends before the middle of an epoch")
        Experiment(recipe, cut, data=data, resume=True).train()
        ours, theirs = (digest_of(load(one / "model.safetensors")[0]) for one in (whole, cut))
        assert ours == theirs, "a resumed run has the weights of one that was not stopped"
        run = open_run(whole)
        assert isinstance(run, kind.run), "a run folder opens as the run of its kind"
        assert [row.split for row in results] == ["valid", "test"], "the valid and the test split have results"
        for row in results:
            assert math.isfinite(row.nll), "the NLL of every split is finite"
            again = run.evaluate(msgspec.structs.replace(DEFAULT, split=row.split))
            assert math.isclose(again.nll, row.nll, rel_tol=1e-5), "an open run gives the results of its training"


def check_claim(claim: Claim) -> None:
    """A claim: its recipes can be read, at every scale some arm exists, what is compared is measured.

    Nothing is trained.
    """
    assert all([claim.sentence, claim.source]), "a claim is a sentence, with the place in the paper that supports it"
    assert claim.comparisons, "a claim is decided by comparisons"
    for comparison in claim.comparisons:
        assert comparison.metric in claim.measure.metrics, f"{comparison.metric!r} is compared, and not measured"
    for arm in claim.arms:
        forms = [form for scale in get_args(Scale) if (form := arm.at(scale)) is not None]
        assert forms, f"the arm {arm.label!r} exists at no scale"
        for form in forms:
            if isinstance(form, Source):
                assert claim.measure.function is not None, f"nothing measures the runs of the arm {arm.label!r}"
                form.at(0)
            else:
                assert isinstance(form, Computation)
                assert callable(form.function), f"the function of the arm {arm.label!r} is called with a seed"
                assert isinstance(form.constants, dict), "the fields of a computation are what can be set"
