"""The registry of claims: recipes that build, published figures that support their claims, measures."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import torch

from elman import config
from elman.network.build import build_model
from elman.study import claim as arms_module
from elman.study import claims as registry
from elman.study.claim import Computation, Source
from elman.study.claims import recurrences
from elman.study.comparison import together
from elman.study.store import trial_recipes
from support.commands import refusal


@pytest.mark.slow
@pytest.mark.parametrize("scale", arms_module.SCALES)
def test_every_arm_of_every_claim_is_a_recipe_that_builds(scale):
    """What several claims share is built once."""
    built = set()
    for found in registry.CLAIMS.values():
        if found.has(scale):
            build_arms(found, scale, built)


def build_arms(found, scale, built):
    for arm in found.arms:
        source = found.origin(arm, scale)
        if isinstance(source, Computation):
            assert json.loads(json.dumps(source.constants)) is not None, "its fields are kept beside its result"
            continue
        recipe = source.at(seed=7)
        assert recipe.seed == 7
        large = scale == "paper" and isinstance(recipe.model.output.choice, config.Adaptive)
        key = repr(recipe.model)
        if key not in built:
            with torch.device("meta"):
                build_model(recipe.model, 800_000 if large else 10_000)
            built.add(key)


WHOLE_SYSTEMS = {"music-nll", "elman-agreement", "bf16-training", "bf16-evaluation"}
"""Claims that compare systems, each as it is trained best, or data, or each of several systems in two precisions."""


EQUAL_WEIGHTS = ("model.core.sizes", "model.encoder.size")

ABOUT = {
    **dict.fromkeys(("elman-starting-small", "starting-large"), ("data.grammar", "training.memory")),
    "kneser-ney": ("data.train_tokens",),
    "dropout": (
        "model.encoder.dropout",
        *(f"model.core.{name}_dropout" for name in ("between", "output", "recurrent")),
    ),
    "jordan-and-elman": ("model.core",),
    "dynamic-evaluation": (
        "model.output",
        *EQUAL_WEIGHTS,
        *("training.epochs", "training.optimiser.lr", "training.fine_tune"),
    ),
    "minimal-gru": ("model.core",),
    **{f"recurrences-on-{data}": ("model.core",) for data in ("words", "characters", "music", "grammar")},
    "recurrences-in-equal-time": ("model.core", "training.epochs"),
    "recurrences-by-size": ("model.core",),
}
"""What differs between the arms of a claim that is not about the output layer."""


def test_lab_arms_differ_in_what_the_claim_is_about_alone():
    for found in registry.CLAIMS.values():
        if found.name in WHOLE_SYSTEMS or found.data is not None:  # the latter: test_claims_of_pairs.py
            continue
        recipes = [arm.small.at(1) for arm in found.arms if isinstance(arm.small, Source)]
        for other in recipes[1:]:
            changed = set(config.changed_keys(recipes[0], other))
            outputs = ("model.output", "data.max_vocabulary", "training.penalties.balance", *EQUAL_WEIGHTS)
            stability = ("training.constraint", "training.clip", "training.log_spectrum", "training.patience")
            outputs = ABOUT.get(found.name, outputs)
            spelling = ("model.encoder", "model.initialisation.embedding")
            allowed = stability if found.name.startswith(("gru-", "projection-", "music-")) else outputs
            allowed = "training.optimiser" if found.name == "gru-optimiser" else allowed
            allowed = spelling if found.name.startswith("character-aware") else allowed
            assert all(key.startswith(("title", "notes", "citation", *allowed)) for key in changed), (
                found.name,
                changed,
            )


def test_every_file_of_claims_is_registered():
    folder = Path(registry.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {*registry.MODULES, "__init__"}
    assert len(registry.CLAIMS) >= 35


PUBLISHED = {
    "gru-success-rate": {
        "success": dict.fromkeys(("delta 0.2", "delta 0.5", "delta 0.8", "delta 1.1", "delta 1.4", "clip 5"), 1.0)
        | dict.fromkeys(("clip 10", "clip 15", "clip 20"), 0.0)
    },
    "gru-perplexity-by-delta": {
        "valid perplexity": {"delta 0.2": 102.0, "delta 0.5": 102.8, "delta 0.8": 103.7, "delta 1.1": 105.2}
        | {"delta 1.4": 107.0, "clip 5": 109.3}
    },
    "gru-state-decay": {"decay": {"delta 0.2": 0.94, "delta 0.8": 0.7, "delta 1.4": 0.5, "clip 5": 1.0}},
    "gru-gradient-spikes": {
        "largest radius": {"delta 0.2": 0.95, "clip 20": 1.1},
        "largest gradient norm": {"delta 0.2": 5.0, "clip 20": 300.0},
    },
    "gru-optimiser": {"valid perplexity": {"SGD": 102.0, "Adam": 110.0, "RMSprop": 111.0}},
    "projection-rank": {
        "last": {"delta 0.2": 20.0, "delta 0.8": 5.0},
        "half the peak": {"delta 0.2": 300.0, "delta 0.8": 150.0},
        "frobenius": {"delta 0.2": 200.0, "delta 0.8": 80.0},
    },
    "delta-memory-noise": {
        "reach": {"delta 0.2": 40.0, "delta 0.8": 10.0, "delta 1.4": 5.0},
        "remnant": {"delta 0.2": 0.36, "delta 0.8": 0.012, "delta 1.4": 0.0002},
    },
    "music-constraint": {"test nats per step": {"delta 0.2": 3.53, "clip 15": 3.64, "clip 60": 5.36}},
    "music-by-delta": {"test nats per step": {"delta 0.2": 3.53, "delta 0.8": 3.64, "delta 1.4": 4.62}},
    "music-nll": {"test nats per step": {"GRU, clip 15": 3.63, "LSTM-NADE": 2.31}},
    "mixture-activations": {"test perplexity": {"MoS": 54.7, "MoSS": 54.6, "MoR": 66.2, "MoSig": 60.3, "MoSp": 59.4}},
    "doc-components": {"test perplexity": {"softmax": 57.3, "MoS": 54.44, "DOC": 53.15}},
    "mos-components": {
        "test perplexity": {"MoS, 6 components": 56.0, "MoS, 15 components": 54.44, "MoS, 20 components": 54.79}
    },
    "doc-layers": {"test perplexity": {"DOC": 53.15, "DOC, 2 of layer 1": 53.52, "DOC, 2 of the vector": 54.28}},
    "balance-loss": {"test perplexity": {"DOC": 53.15, "DOC, balanced": 52.87}},
    "relu-fails": {"test perplexity": {"softmax": 57.0, "relu": 1240.0}},
    "character-bottleneck": {"test bits per character": {"softmax": 1.56, "sigsoftmax": 1.56}},
    "gradient-shortcut": {metric: {"MoS": 0.5, "DOC": 0.9} for metric in ("beginning", "mean")},
    "starting-large": {"divergence": {"SRN": 0.016, "SRN, by complexity": 0.027, "SRN, by memory": 0.042}},
    "elman-starting-small": {"divergence": {"SRN": 0.2, "SRN, by complexity": 0.1, "SRN, by memory": 0.15}},
    "character-aware-twins": {
        metric: {"characters": 92.3, "words": 97.6}
        for metric in ("test perplexity", "after rare words", "after rare words / all")
    },
    "hierarchical-softmax": {
        "test perplexity": {"flat softmax": 123.0, "tree": 136.0, "adaptive softmax": 123.0 * 147 / 144},
        "multiply-adds per token": {"flat softmax": 154.0, "tree": 9.1, "adaptive softmax": 20.0},
    },
    "adaptive-sigsoftmax": {"test perplexity": {"adaptive softmax": 33.8, "adaptive sigsoftmax": 33.62}},
    "kneser-ney": {
        "perplexity, 5-gram": {"8,000 tokens": 336.0, "24,000 tokens": 287.0, "72,000 tokens": 221.0},
        "perplexity, both": {"8,000 tokens": 271.0, "24,000 tokens": 225.0, "72,000 tokens": 156.0},
        "both / 5-gram": {"8,000 tokens": 0.81, "24,000 tokens": 0.78, "72,000 tokens": 0.71},
    },
    "dropout": {"test perplexity": {"none": 114.5, "between layers": 82.7, "between layers and between steps": 100.0}},
    "jordan-and-elman": {
        "excess": {"Jordan, movement": 0.004, "Elman, movement": 0.5, "Elman, whole sequences, movement": 0.004}
        | {"Jordan, language": 0.2, "Elman, language": 0.1}
    },
    "lstm-long-lag": {"error": {"lstm": 0.001, "elman": 0.167}},
    "echo-state": {"NRMSE": {"reservoir": 6e-5}},
    "linear-parity": {
        "beyond": {"lstm": 1e-4, "slstm": 1e-4, "min-gru": 0.5, "lru": 0.5, "mamba2": 0.48},
    },
    "minimal-gru": {
        "test perplexity": {"GRU, blocks": 100.0, "minGRU, blocks": 99.0, "GRU": 100.0, "minGRU": 120.0},
        "microseconds per token": {"GRU, blocks": 50.0, "minGRU, blocks": 40.0, "GRU": 40.0, "minGRU": 30.0},
    },
    **{
        f"recurrences-on-{data}": {
            metric: {label: 100.0 if label == "LSTM" else 104.0 for label in recurrences.RECURRENCES}
        }
        for data, metric in (
            ("words", "test perplexity"),
            ("characters", "test bits per character"),
            ("music", "test nats per step"),
            ("grammar", "divergence"),
        )
    },
    "recurrences-in-equal-time": {
        "test perplexity": {label: 100.0 if label == "LSTM" else 104.0 for label in recurrences.RECURRENCES}
    },
    "recurrences-by-size": {
        "test perplexity": {
            f"{label}{size}": 100.0 if label == "LSTM" else 104.0
            for label in recurrences.SIZES
            for size in (", half", "", ", twice")
        }
    },
    "ntm-copy": {
        "sequences": {"ntm": 3e4, "lstm": 1e6},
        "seconds": {"ntm": 60.0, "lstm": 600.0},
        "error": {"ntm": 1e-4, "lstm": 0.1},
        "beyond": {"ntm": 1e-3, "lstm": 0.3},
    },
    "ntm-feed-forward": {
        "error": {"ntm-feed-forward": 1e-4, "lstm": 0.1},
        "beyond": {"ntm-feed-forward": 1e-3, "lstm": 0.3},
    },
}
"""Figures as the papers report them (or as their claims describe them), by claim, metric and arm."""


def judged(name, published):
    """The verdict on three seeds that scatter by one in a thousand around some figures."""
    made = registry.CLAIMS[name]
    figures = {
        arm.label: [
            {metric: values[arm.label] * (1 + 1e-3 * scatter) for metric, values in published.items()}
            for scatter in (-1, 0, 1)
        ]
        for arm in made.arms
    }
    for index, each in enumerate(figures.values()):  # differences between arms scatter too
        for seed, row in enumerate(each):
            row |= {metric: value * (1 + 1e-5 * ((index * 7 + seed * 3) % 5)) for metric, value in row.items()}
    return together("", [comparison.verdict(figures) for comparison in made.comparisons]).answer


def test_published_figures_support_their_claim():
    assert {name: judged(name, figures) for name, figures in PUBLISHED.items()} == dict.fromkeys(PUBLISHED, "holds")


def opposite(values):
    """The figures with the arms in reverse order."""
    ranked = sorted(values, key=values.get)
    return {arm: values[other] for arm, other in zip(ranked, reversed(ranked), strict=True)}


def test_the_opposite_figures_do_not():
    answers = {
        name: judged(name, {metric: opposite(values) for metric, values in figures.items()})
        for name, figures in PUBLISHED.items()
        if name not in ("character-bottleneck", "echo-state")
    }
    assert answers == dict.fromkeys(answers, "does not hold")


def test_some_arms_are_a_claim_of_their_own():
    whole = registry.CLAIMS["recurrences-on-words"]
    some = whole.among(["LSTM", "LSTM, blocks", "GRU"])
    assert some.name == "recurrences-on-words-LSTM-GRU-LSTM-blocks"
    assert [arm.label for arm in some.arms] == ["LSTM", "GRU", "LSTM, blocks"]
    assert [one.b for one in some.comparisons] == ["GRU", "LSTM, blocks"]
    assert some.headline == whole.headline
    assert whole.among([arm.label for arm in whole.arms]) is whole
    published = registry.CLAIMS["doc-components"].among(["MoS", "DOC"]).published
    assert set(published) == {"MoS", "DOC"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["recurrences-on-words", "--arm", "Hopfield"], "--arm Hopfield.*GRU"),
        (["recurrences-on-words", "--arm", "GRU", "--arm", "SRU"], "compares none.*LSTM and GRU"),
        (["all", "--arm", "GRU"], "--arm belongs to one experiment"),
    ],
)
def test_arms_that_cannot_be_compared_are_refused(arguments, words, capsys):
    assert re.search(words, refusal(capsys, "reproduce", *arguments))


@pytest.mark.parametrize("data", ["words", "characters", "music", "grammar"])
def test_recurrences_begin_at_the_frequencies_or_try_both_beginnings(data):
    for found in registry.CLAIMS[f"recurrences-on-{data}"].arms:
        assert found.at("quick").at(1).model.initialisation.output_bias == "unigram"
        tried = Counter(recipe.model.initialisation.output_bias for _, recipe in trial_recipes(found.small))
        assert set(tried) == {"unigram", "zeros"}
        assert tried["unigram"] == tried["zeros"]
