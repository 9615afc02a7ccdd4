"""Dynamic evaluation of every output layer, and of music: what is scored first, what stays, what is exact."""

import copy

import numpy as np
import pytest
import torch

from elman.data.windows import EvaluationWindows
from elman.evaluation.dynamic import (
    DynamicModel,
    Rule,
    adaptive_stream,
    gradient_statistics,
    read_static,
    statistics_windows,
)
from elman.evaluation.perplexity import stream
from elman.kinds.music.windows import PieceWindows
from support import networks
from support.pairwise import every_value

RULES = [Rule(lr=1e-3, decay=0.5, eps=1e-3, segment=4), Rule(kind="sgd", lr=0.1, decay=0.2, segment=4)]
TEXT = np.random.default_rng(0).integers(len(networks.COUNTS), size=23)
PITCHES, LENGTHS = 3, np.array([6, 3, 11])
ROLL = np.random.default_rng(0).integers(2, size=(LENGTHS.sum(), PITCHES)).astype(np.uint8)

MODELS = {name: lambda name=name: networks.choice_model(name) for name in networks.CHOICES} | {
    f"music-{choice}-{contexts}": lambda choice=choice, contexts=contexts: networks.music_model(
        contexts, choice, PITCHES
    )
    for choice in ("bernoulli", "nade")
    for contexts in ("single", "mos")
}


def windows_of(name, length, text=TEXT, roll=ROLL):
    if name.startswith("music"):
        return PieceWindows(roll, LENGTHS, 1, length)
    return EvaluationWindows(text, 0, length=length)


def training_of(name):
    draw = np.random.default_rng(1)
    if name.startswith("music"):
        return PieceWindows(draw.integers(2, size=(40, PITCHES)).astype(np.uint8), np.array([19, 21]), 2, 5)
    return statistics_windows(draw.integers(len(networks.COUNTS), size=90))


def statistics_of(name, model):
    return gradient_statistics(model, training_of(name))


def scored(name, model, rule, statistics, **other):
    learner = DynamicModel(model, rule, statistics)
    parts = adaptive_stream(learner.read, model, windows_of(name, rule.segment, **other))
    return torch.cat([part for part, _ in parts]).numpy()


@pytest.mark.slow
@every_value(rule=RULES, name=MODELS)
def test_dynamic_evaluation_learns_and_the_model_stays_bitwise(name, rule):
    torch.manual_seed(0)
    model = MODELS[name]()
    before = copy.deepcopy(model.state_dict())
    static = torch.cat([part for part, _ in stream(model, windows_of(name, 4))]).numpy()
    adapted = scored(name, model, rule, statistics_of(name, model) if rule.kind == "rms" else None)
    np.testing.assert_allclose(adapted[:4], static[:4], rtol=1e-6)
    assert np.abs(adapted[4:] - static[4:]).max() > 1e-4
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


@pytest.mark.slow
@every_value(
    at=[0, 5, 6, 12], name=["adaptive", "tree", "rare-class", "mixtape", "music-bernoulli-mos", "music-nade-single"]
)
def test_nothing_is_scored_by_a_model_that_has_seen_it(name, at):
    """What stands at a position changes nothing before it, and all that could stand there has probability one."""
    torch.manual_seed(0)
    model, each = MODELS[name](), []
    statistics = statistics_of(name, model)
    music = name.startswith("music")
    choices = range(2**PITCHES) if music else range(len(networks.COUNTS))
    for choice in choices:
        text, roll = TEXT[: at + 5].copy(), ROLL.copy()
        text[at], roll[at] = choice, [choice >> bit & 1 for bit in range(PITCHES)]
        each.append(scored(name, model, RULES[0], statistics, **({"roll": roll} if music else {"text": text})))
    for one in each:
        np.testing.assert_allclose(one[:at], each[0][:at], rtol=1e-12)
    assert np.exp([one[at] for one in each]).sum() == pytest.approx(1, abs=1e-5)


def test_every_piece_begins_with_a_state_of_its_own():
    model = MODELS["music-bernoulli-single"]()
    alone = []
    for piece in np.split(ROLL, np.cumsum(LENGTHS)[:-1]):
        windows = PieceWindows(piece, np.array([len(piece)]), 1, 70)
        alone += [part for part, _ in stream(model, windows)]
    read = adaptive_stream(
        lambda *given: read_static(model, *given), model, windows_of("music-bernoulli-single", length=4)
    )
    together = torch.cat([part for part, _ in read])
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-6, atol=1e-9)
