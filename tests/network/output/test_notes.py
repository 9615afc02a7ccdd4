"""Choices of frames of notes: the papers' equations, normalised alone and in mixtures, drawn as they say."""

import itertools

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.output.bernoulli import BernoulliChoice
from elman.network.output.choice import Choice, Surroundings, log_odds_of_notes
from elman.network.output.nade import NADEChoice
from reference import frames as reference
from support import networks

PITCHES, WIDTH = 4, 3
CHOICES = {
    "bernoulli": lambda: BernoulliChoice(config.Bernoulli(), Surroundings(WIDTH, PITCHES)),
    "nade": lambda: NADEChoice(config.NADE(size=5), Surroundings(WIDTH, PITCHES)),
}
ALL_FRAMES = torch.tensor(list(itertools.product([0, 1], repeat=PITCHES)), dtype=torch.uint8)

choices = pytest.mark.parametrize("name", CHOICES)


def build(name):
    return networks.randomise(CHOICES[name]())


def transcribed(choice, frame, context):
    """The probability of a frame by the papers' equations."""
    arrays = {key: value.detach().numpy() for key, value in choice.named_parameters()}
    if isinstance(choice, BernoulliChoice):
        return reference.bernoulli(frame, arrays["weight"], arrays["bias"], context)
    return reference.rnn_nade(
        frame, arrays["given"], arrays["weight"], arrays["visible.bias"], arrays["visible.weight"],
        arrays["hidden.bias"], arrays["hidden.weight"], context,
    )  # fmt: skip


@choices
def test_choices_of_frames_are_the_papers_distributions(name):
    choice = build(name)
    context = torch.randn(len(ALL_FRAMES), 2, WIDTH).double()
    ours = choice.log_prob(context, ALL_FRAMES).exp().detach().numpy()
    for n, k in itertools.product(range(len(ALL_FRAMES)), range(2)):
        theirs = transcribed(choice, ALL_FRAMES[n].numpy(), context[n, k].numpy())
        np.testing.assert_allclose(ours[n, k], theirs, rtol=1e-10)


@choices
@pytest.mark.parametrize("components", [1, 3])
def test_all_frames_sum_to_one(name, components):
    choice = build(name)
    context = torch.randn(1, components, WIDTH).double().expand(len(ALL_FRAMES), -1, -1)
    log_prior = torch.randn(1, components).double().log_softmax(-1).expand(len(ALL_FRAMES), -1)
    log_probs = choice.mixture_log_prob(context, log_prior, ALL_FRAMES)
    torch.testing.assert_close(log_probs.exp().sum(), torch.tensor(1.0).double())


@choices
def test_the_value_does_not_depend_on_the_frames_beside_it(name):
    choice = build(name)
    context = torch.randn(len(ALL_FRAMES), 2, WIDTH).double()
    together = choice.log_prob(context, ALL_FRAMES)
    alone = torch.cat([choice.log_prob(context[n : n + 1], ALL_FRAMES[n : n + 1]) for n in range(len(ALL_FRAMES))])
    torch.testing.assert_close(together, alone)


@choices
def test_choices_of_frames_have_the_gradients_of_finite_differences(name):
    choice = build(name)
    context = torch.randn(5, 2, WIDTH).double().requires_grad_()
    log_prior = torch.randn(5, 2).double().requires_grad_()
    target, weight = torch.randint(2, (5, PITCHES)), torch.rand(5).double()

    def nll(context, log_prior, *parameters):
        stated = dict(zip(dict(choice.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(Whole(choice), {f"choice.{key}": value for key, value in stated.items()},
                                          (context, log_prior.log_softmax(-1), target, weight))  # fmt: skip

    assert torch.autograd.gradcheck(nll, (context, log_prior, *choice.parameters()))


class Whole(torch.nn.Module):
    """The weighted NLL of a choice as a module's call."""

    def __init__(self, choice):
        super().__init__()
        self.choice = choice

    def forward(self, *args):
        return self.choice.mixture_nll(*args)[0]


@choices
def test_samples_follow_the_distribution(name):
    choice, draws = build(name), 40_000
    context = torch.randn(1, WIDTH).double()
    drawn = choice.sample(context.expand(draws, -1), 1.0, torch.Generator().manual_seed(0)).long()
    counts = torch.bincount((drawn * 2 ** torch.arange(PITCHES - 1, -1, -1)).sum(1), minlength=2**PITCHES)
    expected = choice.log_prob(context.expand(len(ALL_FRAMES), 1, -1), ALL_FRAMES).exp().squeeze(1)
    torch.testing.assert_close(counts / draws, expected.detach(), atol=0.01, rtol=0, check_dtype=False)


@choices
def test_temperature_zero_takes_the_likelier(name):
    choice = build(name)
    context = torch.randn(6, WIDTH).double()
    cold = choice.sample(context, 0.0, None)
    torch.testing.assert_close(choice.sample(context, 1e-6, torch.Generator().manual_seed(0)), cold)
    torch.testing.assert_close(choice.sample(context, 0.0, None), cold)


@pytest.mark.parametrize("name", ["bernoulli", "nade"])
@pytest.mark.parametrize("contexts", ["single", "mos", "doc"])
def test_a_model_over_frames_is_normalised(name, contexts):
    """The whole model over frames is normalised at every position, and its samples are frames."""
    model = networks.music_model(contexts, name, pitches=PITCHES)
    frames = torch.randint(2, (3, 2, PITCHES), dtype=torch.uint8)
    trace, _ = model.trace(frames, model.begin(2))
    total = sum(model.output.log_prob(trace, frame.expand(3, 2, -1)).exp() for frame in ALL_FRAMES)
    torch.testing.assert_close(total, torch.ones(3, 2).double())
    log_prob, _ = model.log_prob(frames, frames, model.begin(2))
    _, nll = model.output.nll(model.output.contexts(trace), frames, torch.ones(3, 2).double())
    torch.testing.assert_close(nll, -log_prob)
    drawn, _ = model.sample(frames, model.begin(2), generator=torch.Generator().manual_seed(0))
    assert drawn.shape == frames.shape
    assert set(drawn.unique().tolist()) <= {0.0, 1.0}
    assert not isinstance(model.output.choice, Choice)


def test_the_log_odds_of_notes_have_one_step_more_of_each_kind():
    sounding = torch.tensor([0, 3, 10])
    np.testing.assert_allclose(log_odds_of_notes(sounding, 10).numpy(), np.log([1 / 11, 4 / 8, 11 / 1]))


@choices
def test_contexts_of_zeros_give_every_note_its_log_odds(name):
    choice, log_odds = build(name), torch.tensor([-3.0, -1.0, 0.5, 2.0]).double()
    choice.begin_at(log_odds)
    silence = torch.zeros(1, PITCHES, dtype=torch.uint8)
    found = choice.log_prob(torch.zeros(1, 1, WIDTH).double(), silence).item()
    assert found == pytest.approx(-np.log1p(np.exp(log_odds.numpy())).sum())


def test_notes_without_biases_cannot_begin_at_their_log_odds():
    choice = BernoulliChoice(config.Bernoulli(bias=False), Surroundings(WIDTH, PITCHES))
    with pytest.raises(UserError, match="output_bias"):
        choice.begin_at(torch.zeros(PITCHES))
