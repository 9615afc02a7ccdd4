"""Products in bf16: whether a model trained or evaluated with them is as good as in float32."""

from collections.abc import Sequence
from pathlib import Path

from elman.network.fast.precision import products_in
from elman.study.claim import Arm, Claim, ClaimMeasure, Measurement, Source
from elman.study.claims.adaptation import adapted
from elman.study.claims.characters import CHARACTER_BOTTLENECK
from elman.study.claims.constraint import CONSTRAINED
from elman.study.claims.output import DOC, MIXTURES, SINGLES
from elman.study.comparison import no_difference
from elman.study.measures import METRIC as TEST
from elman.study.measures import PERPLEXITY

SOURCE = "Kalamkar et al. 2019, A study of BFLOAT16 for deep learning training"
MARGIN = 0.005
BF16 = ", bf16"
"""Behind what is trained or measured in bf16."""


def _source(arm: Arm, *settings: str) -> Source:
    """The small recipe of an arm, with settings in place of its grid."""
    assert isinstance(arm.small, Source)
    return arm.small._replace(settings=(*arm.small.settings, *settings), grid=None)


RATE = "training.optimiser.lr=20", "training.fine_tune.lr=20"
"""The middle one of the three rates of networks of words."""

NETWORKS = {
    "softmax": _source(SINGLES["softmax"], *RATE),
    "MoS": _source(MIXTURES["MoS"], *RATE),
    "DOC": _source(DOC, *RATE),
    "characters": _source(CHARACTER_BOTTLENECK.arms[0], "training.optimiser.lr=2.5e-3"),
    "constrained GRU": _source(CONSTRAINED[0.2]),
}

IN_BF16 = {
    label: source._replace(settings=(*source.settings, "training.precision=bf16")) for label, source in NETWORKS.items()
}
"""The same networks, trained in bf16."""

BF16_TRAINING = Claim(
    name="bf16-training",
    sentence="training with products in bf16 reaches the perplexity of training in float32, at the same settings",
    source=SOURCE,
    arms=tuple(arm for label in NETWORKS for arm in (Arm(label, NETWORKS[label]), Arm(label + BF16, IN_BF16[label]))),
    measure=PERPLEXITY, comparisons=tuple(no_difference(TEST, label + BF16, label, MARGIN) for label in NETWORKS),
    notes="The source trains recurrent translation, images and speech. Here the factors of large products are rounded"
    " to bf16 (`training.precision`), weights and everything else are float32, and all arms are evaluated in float32."
    " Networks of words as in doc-components, at a rate of 20 for all; characters as in character-bottleneck; the GRU"
    " as in gru-perplexity-by-delta. Networks that begin alike soon differ as two seeds do, by about 1 %, so that the"
    " margin of .5 %, fixed beforehand, may take tens of seeds.",
)  # fmt: skip


def by_precision(folder: Path, methods: Sequence[str], tokens: int, statistics_tokens: int) -> Measurement:
    """Perplexity of the first test `tokens`, static and by `methods` at their defaults, in both precisions."""
    figures = dict[str, float]()
    with products_in("float32"):
        exact = adapted(folder, methods, 0, tokens, statistics_tokens).figures
    with products_in("bf16"):
        rounded = adapted(folder, methods, 0, tokens, statistics_tokens).figures
    for name in ("static", *methods):
        figures |= {name: exact[name], name + BF16: rounded[name]}
    return Measurement(figures, {})


METHODS = "dynamic", "cache"

BF16_EVALUATION = Claim(
    name="bf16-evaluation",
    sentence="evaluation with products in bf16, static, dynamic and with the cache, has the perplexity of float32",
    source=SOURCE, arms=tuple(Arm(label, source) for label, source in IN_BF16.items()),
    measure=ClaimMeasure(
        "by-precision",
        {name + ending: f"perplexity, {name}{ending}" for name in ("static", *METHODS) for ending in ("", BF16)},
        by_precision, {"methods": METHODS, "tokens": 10_000, "statistics_tokens": 50_000}, minutes=1.5,
    ),
    comparisons=tuple(
        no_difference(name + BF16, label, label, MARGIN, b_metric=name)
        for label in NETWORKS
        for name in ("static", *METHODS)
    ),
    notes="The runs of bf16-training that were trained in bf16, evaluated in both precisions on the first 10,000 test"
    " tokens; the settings of dynamic evaluation and of the cache are the defaults.",
)  # fmt: skip
