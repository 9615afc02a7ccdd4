"""Claims on bf16: arms differ in nothing else, and each figure is computed in its own precision."""

from pathlib import Path

import msgspec

from elman.network.fast import precision
from elman.study.claim import Measurement
from elman.study.claims import adaptation
from elman.study.claims.adaptation import BF16_EVALUATION, BF16_TRAINING, by_precision


def test_arms_differ_in_their_precision_alone():
    arms = [arm.small.at(1) for arm in BF16_TRAINING.arms]
    assert [arm.training.precision for arm in arms] == ["float32", "bf16"] * 5
    for exact, rounded in zip(arms[::2], arms[1::2], strict=True):
        training = msgspec.structs.replace(rounded.training, precision="float32")
        assert msgspec.structs.replace(rounded, training=training) == exact
    evaluated = [arm.small.at(1) for arm in BF16_EVALUATION.arms]
    assert evaluated == [arm.at("quick").at(1) for arm in BF16_TRAINING.arms[1::2]], "each beside itself: shortened"


def test_figures_are_computed_in_their_own_precision(monkeypatch):
    def adapted(folder, methods, tuning_tokens, tokens, statistics_tokens):
        value = {"float32": 1.0, "bf16": 2.0}[precision.chosen()]
        assert (folder, tuning_tokens, tokens, statistics_tokens) == (Path("run"), 0, 30, 20)
        return Measurement(
            {name: value + at for at, name in enumerate(("static", *methods))} | {"cache, size": 9.0}, {}
        )

    monkeypatch.setattr(adaptation, "adapted", adapted)
    with precision.products_in("int8"):
        found = by_precision(Path("run"), ("dynamic", "cache"), tokens=30, statistics_tokens=20)
        assert precision.chosen() == "int8"
    exact = {"static": 1.0, "dynamic": 2.0, "cache": 3.0}
    assert found.figures == exact | {f"{name}, bf16": value + 1 for name, value in exact.items()}
    assert set(found.figures) == set(BF16_EVALUATION.measure.metrics)
