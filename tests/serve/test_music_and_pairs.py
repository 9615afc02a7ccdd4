"""Answers of runs on music and on pairs."""

import math

import numpy as np
import pytest
import torch

import elman
from elman.errors import UserError
from elman.serve import answers, questions
from elman.serve.limits import Limits
from elman.serve.tabs import Tabs
from support.served import answer, drawn, music_folder, pairs_folder, service

ROLL = [[60, 64, 67], [60], [], [62, 65]]


@pytest.fixture(scope="module", params=["bernoulli", "nade"])
def music(request, tmp_path_factory):
    return music_folder(tmp_path_factory.mktemp("runs") / request.param, request.param)


def tab():
    return Tabs(Limits()).use(None)


def frames(run, roll):
    array = np.zeros((len(roll), 88), np.uint8)
    for step, notes in enumerate(roll):
        array[step, np.array(notes, dtype=int) - 21] = 1
    return array


def test_every_step_has_its_surprisal(music):
    run = elman.load(music)
    found = answer(service(music).ask("score", questions.Score(roll=ROLL), tab()))
    assert [step.notes for step in found.steps] == ROLL
    targets = torch.from_numpy(frames(run, ROLL)).float().unsqueeze(1)
    inputs = torch.cat([torch.zeros(1, 1, 88), targets[:-1]])
    with torch.inference_mode():
        log_prob, _ = run.model.log_prob(inputs, targets, run.model.begin(1))
    np.testing.assert_allclose([step.bits for step in found.steps], -log_prob[:, 0] / math.log(2), rtol=1e-4)


def test_a_continuation_is_that_of_the_library(music):
    run = elman.load(music)
    events = drawn(service(music).ask("generate", questions.Generate(roll=ROLL, drawn=6, seed=4), tab()))
    expected = run.inputs.sounding(run.compose(steps=6, seed=4, prompt=frames(run, ROLL)))
    assert [event.notes for event in events if isinstance(event, answers.DrawnStep)] == expected
    split = drawn(
        service(music).ask("generate", questions.Generate(roll=ROLL[:2], after_roll=ROLL[2:], drawn=6, seed=4), tab())
    )
    assert split == events


def test_what_may_sound_next(music):
    found = answer(service(music).ask("next", questions.Next(roll=ROLL), tab()))
    run = elman.load(music)
    with torch.inference_mode():
        read = torch.cat([torch.zeros(1, 1, 88), torch.from_numpy(frames(run, ROLL)).float().unsqueeze(1)])
        trace, _ = run.model.trace(read.expand(-1, 2000, -1), run.model.begin(2000))
        last = trace._replace(levels=tuple(level[-1:] for level in trace.levels))
        many = run.model.output.sample(last, 1.0)[0].mean(0)
    shares = torch.zeros(88)
    shares[torch.tensor(found.pitches) - 21] = torch.tensor(found.shares)
    assert (shares - many).abs().max() < 0.15
    assert found.draws == 200


def test_pitches_out_of_range_and_settings_of_text_are_refused(music):
    served = service(music)
    with pytest.raises(UserError, match="step 2: note 5 is outside the 88 pitches"):
        answer(served.ask("score", questions.Score(roll=[[60], [5]]), tab()))
    for other in ({"top_k": 3}, {"top_p": 0.5}, {"text": "a"}, {"after": [1]}):
        with pytest.raises(UserError, match=f"{next(iter(other))} is not for runs on music; leave it out"):
            served.ask("generate", questions.Generate(roll=ROLL, **other), tab())
    with pytest.raises(UserError, match="does not answer components"):
        served.ask("components", questions.Components(), tab())


def test_targets_and_attention(tmp_path):
    folder = pairs_folder(tmp_path / "pairs")
    found = answer(service(folder).ask("translate", questions.Translate(text="a b\nd", beam=4, targets=3), tab()))
    assert found.source == ["a", "b", "d"]
    assert len(found.targets) == 3
    (expected,) = elman.load(folder).translate(["a b d"], elman.config.inference.Beam(size=4, nbest=3, max_length=16))
    assert [one.words for one in found.targets] == [one.words for one in expected]
    for one in found.targets:
        assert np.shape(one.attention) == (len(one.words) + 1, 3)
        np.testing.assert_allclose(np.sum(one.attention, axis=1), 1, atol=1e-3)
    unknown = answer(service(folder).ask("translate", questions.Translate(text="x y"), tab()))
    assert not unknown.targets
    assert "none of the 2 symbols is in the source vocabulary" in unknown.note
    assert "attention" in service(folder).facts().panels
