"""Measures of claims on the constrained GRU: memory and noise, singular values computed, time by either norm."""

import json

import pytest
import torch

from elman import config
from elman.config.toml import find, load_recipe
from elman.network.cores.stack import candidate_hidden, candidate_input
from elman.study.claims.memory_noise import MemoryAndNoise, Recaller
from elman.study.claims.projection_cost import TimedTraining
from elman.study.claims.projection_rank import NormTimes, counts
from support import text_runs
from support.singular_values import sigma_1

TINY = (
    "model.encoder.size=12", "model.core.sizes=[12]", "data.tokenisation=words", "data.train_tokens=600",
    "training.batch_size=4", "training.window.length=10", "training.epochs=4", "training.schedule.factor=1.8",
    "training.optimiser.lr=7.0",
)  # fmt: skip


@pytest.mark.parametrize("delta", [0.2, 0.8, 1.4])
def test_noise_decays_as_the_theorem_says(delta):
    """Before training W_hh = (2 - delta) I, and the state decays by 1 - delta / 4 per step."""
    net = Recaller(MemoryAndNoise(delta, trials=50, steps=10), seed=1)
    assert net.remnant() == pytest.approx((1 - delta / 4) ** 20, rel=1e-2)
    net.train(5)
    (layer,) = net.core.layers
    assert sigma_1(candidate_hidden(layer)) <= (2 - delta) * (1 + 1e-4)
    assert sigma_1(candidate_input(layer)) <= 2 * (1 + 1e-4)


@pytest.mark.slow
def test_the_reach_is_the_longest_delay_that_is_learnt():
    """Without observation noise the sign can be read; noise far above the signal hides it."""
    seen = MemoryAndNoise(0.8, steps=25, trials=200, delays=(2, 4), observation=0.0)(1, None)
    assert seen.figures["reach"] == 4
    assert seen.curves["error rate by delay"] == [0.0, 0.0]
    hidden = MemoryAndNoise(0.8, steps=1, trials=2000, delays=(2, 4), observation=10.0)(1, None)
    assert hidden.figures["reach"] == 1
    assert all(abs(error - 0.5) < 0.05 for error in hidden.curves["error rate by delay"])


def test_counts_are_means_of_epochs(tmp_path):
    """Of all blocks together; the peak, the last epoch, and where the other norm counts more."""
    epochs = {0.5: (0, 0), 1.0: (4, 2), 1.5: (30, 10), 2.0: (10, 20), 3.0: (6, 7)}
    lines = [
        {"kind": "train", "step": number, "epoch": epoch, "loss": 1.0, "lr": 1.0, "grad_norm": 1.0, "tokens_per_s": 1.0}
        | {"phase": 0, "penalty": 0.0, "perplexity": 1.0, "seconds": 1.0, "s": [s - 1, 1], "s_other": [other, 0]}
        for number, (epoch, (s, other)) in enumerate(epochs.items())
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    found = counts(tmp_path)
    assert found.curves["s"] == [2, 20, 6]
    assert found.curves["s by the spectral norm"] == [1, 15, 7]
    assert found.figures == {
        "peak": 20, "last": 6, "half the peak": 10, "frobenius": 28 / 3, "spectral": 23 / 3, "exceeding": 1,
    }  # fmt: skip


def test_timed_training_follows_the_schedule(corpus):
    made = NormTimes(0.2, settings=TINY)
    recipe = load_recipe(find(made.recipe), TINY)
    training = TimedTraining(recipe, str(corpus))
    rates = []
    training.update.apply = rates.append
    for epoch in (0.0, 1.9, 2.0, 3.5):
        training.step(epoch)
    assert rates == pytest.approx([7.0, 7.0, 7 / 1.8, 7 / 1.8**2])


@pytest.mark.slow
def test_both_norms_project_the_same_training(corpus, monkeypatch):
    """Each on its own matrix: the feasible one that training continues from, and a copy with the same steps."""
    seen = {"frobenius": [], "spectral": []}
    project = NormTimes.__call__.__globals__["Timed"].project_

    def watched(self, matrix):
        project(self, matrix)
        seen[self.projector.norm].append(matrix.clone())

    monkeypatch.setattr("elman.study.claims.projection_rank.Timed.project_", watched)
    found = NormTimes(0.95, settings=TINY)(1, str(corpus)).figures
    assert len(seen["frobenius"]) == len(seen["spectral"]) == 1 + 4 * 15
    for norm, matrices in seen.items():
        assert max(map(sigma_1, matrices)) < 2 + 1e-4
        assert found[norm] > 0
    moved = [seen[norm][-1] - seen[norm][0] for norm in seen]
    assert 0 < (moved[0] - moved[1]).norm() < moved[0].norm(), "the copy took the same steps"
    assert 0 < found["s, spectral"] < found["s, frobenius"]
    assert torch.equal(seen["frobenius"][0], seen["spectral"][0])
