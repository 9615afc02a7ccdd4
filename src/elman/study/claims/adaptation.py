"""Models that adapt while they are evaluated: dynamic evaluation and the neural cache."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from elman.config.inference import RULES, CacheRule
from elman.study.claim import Arm, Claim, ClaimMeasure, Measurement, Source
from elman.study.claims.output import MIXTURES, SINGLES
from elman.study.comparison import lower, times
from elman.tasks.adaptation import Method, method_figures, statistics
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.text.run import TextRun
from elman.tasks.tuning import Tuning

METHODS = {
    "dynamic": Method(rule=RULES["rms"]),
    "cache": Method(cache=CacheRule()),
    "dynamic+cache": Method(rule=RULES["rms"], cache=CacheRule()),
}


def adapted(
    folder: Path, methods: Sequence[str], tuning_tokens: int, tokens: int, statistics_tokens: int
) -> Measurement:
    """Perplexity of the first test `tokens`, static and by some of `METHODS`.

    Their settings are tuned on the first `tuning_tokens` of the validation text, or the defaults where that is 0; the
    mean squared gradients are those of the first `statistics_tokens` of the training text.
    """
    run = TextRun(folder)
    test = run.adaptation_source(EvaluationOptions(unknown_as_unk=True)).beginning(tokens)
    found = {"static": method_figures(test, Method())}
    for name in methods:
        tuned = METHODS[name]
        if tuning_tokens:
            tuned = Tuning(run, tokens=tuning_tokens, statistics_tokens=statistics_tokens).best(tuned)
        gradients = statistics(run, statistics_tokens) if tuned.rule is not None else None
        found[name] = method_figures(test, tuned, gradients)
    tuned_numbers = {
        f"{method}, {key}": float(value)
        for method, row in found.items()
        for part in (row.settings or {}).values()
        if part is not None
        for key, value in part.items()
        if isinstance(value, int | float)
    }
    return Measurement({name: row.perplexity for name, row in found.items()} | tuned_numbers, {})


def _adaptation(name: str, *methods: str, tuning_tokens: int, statistics_tokens: int) -> ClaimMeasure:
    metrics = {"static": "static perplexity"} | {method: f"perplexity, {method}" for method in methods}
    constants = {
        "methods": methods,
        "tuning_tokens": tuning_tokens,
        "tokens": 10_000,
        "statistics_tokens": statistics_tokens,
    }
    return ClaimMeasure(name, metrics, adapted, constants, minutes=1.0)


ALONE = (
    *(f"training.{phase}.lr=10" for phase in ("optimiser", "fine_tune")),
    "training.epochs=4",
    "training.fine_tune.epochs=2",
)


def alone(arm: Arm) -> Arm:
    """An arm that is compared with itself alone: at small scale trained for 6 epochs instead of 16, without a grid."""
    assert isinstance(arm.small, Source)
    return replace(arm, small=arm.small._replace(settings=(*arm.small.settings, *ALONE), grid=None))


_RANKED = SINGLES["softmax"], MIXTURES["MoS"], MIXTURES["MoSS"]
_FUNCTIONS = (
    *_RANKED,
    *(alone(SINGLES[name]) for name in ("sigsoftmax", "sigmoid", "softplus")),
    *(alone(MIXTURES[name]) for name in ("MoR", "MoSig", "MoSp")),
)

DYNAMIC_EVALUATION = Claim(
    name="dynamic-evaluation",
    sentence="dynamic evaluation lowers the perplexity of every output function, and mixtures stay ahead",
    source="Krause et al. 2018; Kanai's thesis, Tables 4.1 and 4.2", arms=_FUNCTIONS,
    measure=_adaptation("dynamic", "dynamic", tuning_tokens=0, statistics_tokens=50_000),
    comparisons=(
        *(times("static", arm.label, arm.label, 1.0, b_metric="dynamic") for arm in _FUNCTIONS),
        *(lower("dynamic", mixture.label, "softmax") for mixture in _RANKED[1:]),
    ),
    metric="dynamic",
    published={
        "softmax": "57.0 to 50.5 (test)", "sigsoftmax": "56.6 to 49.2", "sigmoid": "56.4 to 48.9",
        "softplus": "56.6 to 49.1", "MoS": "54.7 to 48.0", "MoSS": "54.6 to 47.7", "MoR": "66.2 to 55.5",
        "MoSig": "60.3 to 50.0", "MoSp": "59.4 to 48.8",
    },
    notes="Of the first 10,000 test tokens, with the rule's default rate and decay for every arm; the papers tune them."
    " ReLU alone fails before it can adapt. At small scale softmax, MoS and MoSS, which are compared with each other,"
    " are trained for 16 epochs at the best of three rates, the other six, each compared only with itself, for 6 epochs"
    " at a rate of 10.",
)  # fmt: skip

NEURAL_CACHE = Claim(
    name="neural-cache", sentence="the neural cache lowers perplexity, and adds to dynamic evaluation",
    source="Grave, Joulin & Usunier 2017, section 5; Merity, Keskar & Socher 2018, Table 1", arms=(SINGLES["softmax"],),
    measure=_adaptation("cache", "cache", "dynamic+cache", tuning_tokens=2_000, statistics_tokens=200_000),
    comparisons=(
        times("static", "softmax", "softmax", 1.0, b_metric="cache"),
        times("cache", "softmax", "softmax", 1.0, b_metric="dynamic+cache"),
    ),
    metric="cache", published={"softmax": "82.3 to 72.1 (LSTM, PTB); 57.3 to 52.8 (AWD-LSTM, PTB)"},
    notes="Tuned on 2,000 validation tokens, evaluated on the first 10,000 test tokens.",
)  # fmt: skip
