"""The training loop: a recipe's trainer step by step, resumption to the bit, and how it ends."""

import numpy as np
import pytest
import torch

import elman
from elman import nn as enn
from elman.data.windows import EvaluationWindows, TrainingWindows
from elman.errors import Diverged, UserError
from elman.evaluation.perplexity import evaluate
from elman.learning import checkpoint
from elman.learning.folder import Folder
from elman.learning.trainer import Trainer
from elman.learning.update import build_update
from elman.nn import penalties
from support import text_runs
from support.words import Words, pair, text

TRAIN, VALID = text(600), text(120, seed=1)


def test_it_trains_as_a_recipe_does(tmp_path):
    """Random windows, rates, schedule, clipping, penalties, averaging and constraint: losses, and the best weights."""
    known, made = pair("gru")
    recipe = text_runs.recipe(
        epochs=14,
        batch_size=4,
        window={"length": 12, "random": True, "max_extra": 4},
        optimiser={"kind": "sgd", "lr": 2.5},
        schedule={"kind": "cosine", "floor": 0.2},
        clip=0.7,
        penalties={"ar": 0.4, "tar": 0.2},
        averaging={"kind": "non-monotone", "interval": 1},
        constraint={"kind": "spectral", "delta": 0.6, "method": "svd"},
    )

    def windows(max_extra):
        return TrainingWindows(TRAIN.numpy(), 4, 12, random=True, max_extra=max_extra, seed=5)

    def validate(model, part):
        return evaluate(model, EvaluationWindows(VALID[1:].numpy(), int(VALID[0]), streams=3, length=12))

    trainer = Trainer(recipe, build_update(recipe, known), windows, validate, Folder(tmp_path, known.device))
    trainer.run()
    history = elman.fit(
        made,
        TRAIN,
        VALID,
        optimiser=torch.optim.SGD(made.parameters(), lr=2.5),
        epochs=14,
        batch_size=4,
        bptt=12,
        max_extra=4,
        schedule=lambda share: 0.6 + 0.4 * np.cos(np.pi * share),
        clip=0.7,
        penalties=[lambda levels: penalties.activation(levels, 0.4), lambda levels: penalties.temporal(levels, 0.2)],
        average=enn.TriggeredAverage(made.parameters(), interval=1),
        bound=enn.SpectralBound(made, delta=0.6, method="svd"),
        valid_columns=3,
        seed=5,
        progress=False,
    )
    assert [epoch.valid_nll for epoch in history.epochs] == pytest.approx(trainer.progress.checks, rel=1e-6)
    assert any(epoch.averaged for epoch in history.epochs)
    assert history.best.number == trainer.progress.best_epoch
    checkpoint.load_model(known, checkpoint.load(tmp_path / "model.safetensors")[0])
    for mine, theirs in zip(made.parameters(), known.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
    assert history.best.valid_nll < history.epochs[0].valid_nll - 0.05
    assert enn.perplexity(made, VALID, columns=3, window=12) == pytest.approx(history.best.perplexity, rel=1e-6)
    assert not made.training


def parts(epochs, **more):
    torch.manual_seed(0)
    model = Words(enn.Softmax, weight_drop=0.3, between_dropout=0.2, recurrence=enn.GRU)
    given = {
        "optimiser": torch.optim.AdamW(model.parameters(), 0.2),
        "average": enn.TriggeredAverage(model.parameters(), 1),
        "bound": enn.SpectralBound(model, delta=1.0),
    }
    return model, {"epochs": epochs, "batch_size": 5, "bptt": 10, "clip": 1.0, "progress": False, **given, **more}


def test_it_resumes_to_the_bit(tmp_path):
    path = tmp_path / "new" / "training.safetensors"
    whole, given = parts(8)
    history = elman.fit(whole, TRAIN, VALID, **given)
    assert {epoch.averaged for epoch in history.epochs} == {True, False}
    for stop in (2, 6, 8):
        model, given = parts(stop)
        torch.manual_seed(stop)  # what is drawn does not depend on torch's random state
        found = elman.fit(model, TRAIN, VALID, **given, checkpoint=path)
    assert [epoch._replace(seconds=0) for epoch in found.epochs] == [e._replace(seconds=0) for e in history.epochs]
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    model, given = parts(8)
    again = elman.fit(model, TRAIN, VALID, **given, checkpoint=path)
    assert again == found, "a training that is over"
    model, given = parts(9, batch_size=4)
    with pytest.raises(UserError, match=r"belongs to a training with .*'batch_size': 5.*another checkpoint"):
        elman.fit(model, TRAIN, VALID, **given, checkpoint=path)
    model, given = parts(9, average=None)
    with pytest.raises(UserError, match=r"'average': 'TriggeredAverage'"):
        elman.fit(model, TRAIN, VALID, **given, checkpoint=path)
    model, given = parts(9)
    model.output = enn.Softmax(6, 12)
    with pytest.raises(UserError, match=r"another model, whose output.bias is another"):
        elman.fit(model, TRAIN, VALID, **given, checkpoint=path)


def test_it_leaves_the_random_state_as_it_was_and_shuffles_nothing():
    model, given = parts(1)
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    elman.fit(model, TRAIN, VALID, **given)
    assert torch.equal(torch.rand(3), expected)
    assert given["optimiser"].param_groups[0]["lr"] == 0.2


def test_patience_ends_it_and_the_best_weights_stay():
    model, given = parts(50, optimiser=None, average=None, bound=None, patience=2)
    given["optimiser"] = torch.optim.SGD(model.parameters(), lr=40.0)
    history = elman.fit(model, TRAIN, VALID, **given)
    assert len(history.epochs) == history.best.number + 2 < 50
    assert history.best.valid_nll == min(epoch.valid_nll for epoch in history.epochs)
    assert enn.perplexity(model, VALID, columns=10, window=10) == pytest.approx(history.best.perplexity)


def test_torchs_own_layers_are_trained_too():
    model, given = parts(4, average=None, bound=None)
    model.core = torch.nn.LSTM(6, 6)
    model.forward = lambda inputs, state=None: model.core(model.encoder(inputs), state)
    given["optimiser"] = torch.optim.Adam(model.parameters(), 0.02)
    history = elman.fit(model, TRAIN, VALID.numpy(), **given)
    assert history.best.valid_nll < history.epochs[0].valid_nll
    assert history.epochs[-1].train_nll < np.log(11)


def test_what_does_not_fit_is_one_line():
    model, given = parts(1, optimiser=None, clip=None)
    with pytest.raises(UserError, match="too few for 5 columns"):
        elman.fit(model, TRAIN[:20], VALID, **given)
    with pytest.raises(ValueError, match="epochs is 0"):
        elman.fit(model, TRAIN, VALID, **(given | {"epochs": 0}))
    with torch.no_grad():
        model.output.weight.fill_(torch.nan)
    with pytest.raises(Diverged, match="the loss of window 1 of epoch 1 is nan; lower the learning rate"):
        elman.fit(model, TRAIN, VALID, **(given | {"bound": None}))


@pytest.mark.parametrize("ids", [[(torch.ones(3, 2), torch.ones(3, 2))], iter([1, 2]), None, torch.rand(90)])
def test_what_is_no_sequence_of_ids_is_one_line(ids):
    with pytest.raises(ValueError, match=r"ids are one sequence \[n\] of whole numbers, and not "):
        elman.fit(Words(), ids, ids)


def test_an_optimiser_of_another_model_is_refused():
    """It would train nothing, in silence."""
    optimiser = torch.optim.SGD(Words().parameters(), 1.0)
    with pytest.raises(ValueError, match="has no parameter of this model"):
        elman.fit(Words(), [1, 2] * 90, [1, 2, 3], optimiser=optimiser, batch_size=2, bptt=5)


def test_an_average_of_another_model_is_refused():
    average = enn.TriggeredAverage(Words().parameters())
    with pytest.raises(ValueError, match="the average has no parameter of this model"):
        elman.fit(Words(), [1, 2] * 90, [1, 2, 3], average=average, batch_size=2, bptt=5)


@pytest.mark.parametrize(
    "wrong",
    [{"batch_size": 0}, {"bptt": -3}, {"valid_columns": 0}, {"patience": 0}, {"clip": -1.0}, {"clip": float("nan")}],
)
def test_numbers_out_of_their_range(wrong):
    """A negative norm to clip to would turn the steps round."""
    with pytest.raises(ValueError, match=r"it must be (1 or more|above 0)"):
        elman.fit(Words(), [1, 2] * 90, [1, 2, 3], **({"batch_size": 2, "bptt": 5} | wrong))
