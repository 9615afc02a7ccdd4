"""What comparisons of recurrences promise: equal weights, one schedule and grid, the papers' convolutions, margins."""

import pytest
import torch

from elman import config
from elman.network.build import build_model
from elman.study import claims as registry
from elman.study.claims import recurrences
from elman.study.claims.recurrences import CHARACTERS, GRAMMAR, LSTM, MUSIC, RECURRENCES, WORDS
from elman.study.comparison import together
from elman.study.store import trial_recipes

SETTINGS = {
    "recurrences-on-words": (WORDS, 2000),
    "recurrences-on-characters": (CHARACTERS, 65),
    "recurrences-on-music": (MUSIC, 88),
    "recurrences-on-grammar": (GRAMMAR, 24),
}
"""With about the number of symbols of the data."""

CONVOLUTIONS = {"minGRU, blocks", "RG-LRU, blocks", "mLSTM, blocks", "Mamba-2, blocks", "gated DeltaNet, blocks"}


def num_weights(arm, symbols):
    with torch.device("meta"):
        model = build_model(arm.small.at(1).model, symbols)
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize("name", SETTINGS)
def test_every_network_has_as_many_weights_as_the_lstm_within_what_the_notes_say(name):
    setting, symbols = SETTINGS[name]
    weights = {arm.label: num_weights(arm, symbols) for arm in registry.CLAIMS[name].arms}
    assert list(weights) == list(RECURRENCES)
    assert weights == pytest.approx(dict.fromkeys(weights, weights[LSTM]), rel=setting.within / 100)
    assert f"within {setting.within} %" in registry.CLAIMS[name].notes


@pytest.mark.parametrize("name", SETTINGS)
def test_every_network_has_the_same_schedule_and_grid(name):
    for arm in registry.CLAIMS[name].arms:
        recipe = arm.small.at(1)
        assert isinstance(recipe.training.schedule, config.Cosine)
        assert recipe.model.initialisation.output_bias == "unigram"
        tried = [trial for _, trial in trial_recipes(arm.small)]
        assert len(tried) == (12 if name == "recurrences-on-grammar" else 8)
        assert {trial.training.epochs for trial in tried} < set(range(2, recipe.training.epochs))
        assert {trial.model.initialisation.output_bias for trial in tried} == {"unigram", "zeros"}
        assert len({trial.model.initialisation.forget_bias for trial in tried}) == 2
        assert {trial.seed for trial in tried} == {0}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_blocks_have_the_convolutions_of_their_papers(name):
    convolved = set()
    for arm in registry.CLAIMS[name].arms:
        core = arm.small.at(1).model.core
        kernels = [getattr(core, "convolution", 0) or 0, getattr(core.cell, "convolution", 0) or 0]
        assert max(kernels) in (0, 4)
        if max(kernels):
            convolved.add(arm.label)
    assert convolved == CONVOLUTIONS


COMPARISONS = [*SETTINGS, "recurrences-in-equal-time", "recurrences-by-size"]


@pytest.mark.parametrize("name", COMPARISONS)
def test_costs_are_measured_one_at_a_time(name):
    assert registry.CLAIMS[name].measure.timed


def verdict(name, figure_of):
    """Where the metric of an arm is `figure_of` its label, in three seeds that scatter by 1 in 100,000."""
    claim = registry.CLAIMS[name]
    figures = {
        arm.label: [
            {claim.headline: figure_of(arm.label) * (1 + 1e-5 * ((7 * index + 3 * seed) % 5))} for seed in range(3)
        ]
        for index, arm in enumerate(claim.arms)
    }
    return together("", [comparison.verdict(figures) for comparison in claim.comparisons]).answer


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize(("other", "answer"), [(99.2, "holds"), (98.8, "does not hold")])
def test_the_margin_is_one_per_cent_of_the_lstm_of_the_same_size(name, other, answer):
    """Larger networks are better here by far more than the margin."""

    def figure(label):
        name, _, last = label.rpartition(", ")
        size = {"half": 1.5, "twice": 0.7}.get(last)
        return (size or 1.0) * (100.0 if (name if size else label) == LSTM else other)

    assert verdict(name, figure) == answer


def test_recurrences_in_equal_time_differ_from_those_on_words_in_their_epochs_alone():
    tokens = recurrences.WORD_TOKENS
    for label, epochs in recurrences.EPOCHS.items():
        assert 0.87 < 1e-6 * epochs * RECURRENCES[label].microseconds * tokens / WORDS.seconds < 1.13
    on_words, in_time = (registry.CLAIMS[f"recurrences-{name}"].arms for name in ("on-words", "in-equal-time"))
    for one, other in zip(on_words, in_time, strict=True):
        assert set(config.changed_keys(one.small.at(1), other.small.at(1))) <= {"training.epochs"}
        assert trial_recipes(one.small) == trial_recipes(other.small)
        assert other.small.at(1).data.train_tokens == tokens
        assert other.at("quick").at(1).data.train_tokens == tokens // 5


def test_recurrences_by_size_have_half_as_many_weights_and_twice_as_many_and_the_middle_is_that_of_words():
    arms = {arm.label: arm for arm in registry.CLAIMS["recurrences-by-size"].arms}
    on_words = {arm.label: arm.small for arm in registry.CLAIMS["recurrences-on-words"].arms}
    assert {arm.series for arm in arms.values()} == set(recurrences.SIZES)
    for label in recurrences.SIZES:
        found = [num_weights(arms[name], 2000) for name in (f"{label}, half", label, f"{label}, twice")]
        assert found == pytest.approx([350e3, 700e3, 1400e3], rel=0.03)
        assert arms[label].small == on_words[label]
