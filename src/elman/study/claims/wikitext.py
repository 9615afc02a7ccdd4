"""The claims on output functions, mixtures and the constrained GRU at paper scale on WikiText-2.

At small scale the claims on words serve for every text: `elman reproduce NAME --data wikitext-2`.
"""

from elman.study.claim import Arm, Claim, Source
from elman.study.claims.constraint import CLIP, DELTA, DELTAS, DYNAMICS, family
from elman.study.comparison import Bound, lower, no_higher, times
from elman.study.measures import METRIC as TEST
from elman.study.measures import PERPLEXITY

NOTES = "Paper scale only; at small scale give --data wikitext-2 to the claims on words."


def _arms(recipes: dict[str, str]) -> tuple[Arm, ...]:
    return tuple(Arm(label, paper=Source(f"wikitext-2/awd-lstm{end}.toml")) for label, end in recipes.items())


OUTPUTS = Claim(
    name="wikitext-2-outputs",
    sentence="on WikiText-2 sigsoftmax beats softmax, MoSS equals MoS or is better, and the other functions are worse",
    source="Kanai's thesis, Table 4.2",
    arms=_arms({
        **{name: f"-{name}" for name in ("softmax", "sigsoftmax", "sigmoid", "softplus", "relu")}, "MoS": "-mos-thesis",
        **{name: f"-{name.lower()}" for name in ("MoSS", "MoR", "MoSig", "MoSp")},
    }),
    measure=PERPLEXITY,
    comparisons=(
        lower(TEST, "sigsoftmax", "softmax"), no_higher(TEST, "MoSS", "MoS", margin=0.01),
        lower(TEST, "MoS", "softmax"), *(lower(TEST, "softmax", worse) for worse in ("sigmoid", "softplus")),
        *(lower(TEST, "MoS", worse) for worse in ("MoR", "MoSig", "MoSp")), times(TEST, "relu", "softmax", 2.0),
    ),
    published={
        "softmax": "64.7 ± 0.2", "sigsoftmax": "64.2 ± 0.1", "sigmoid": "68.2 ± 0.1", "softplus": "65.8 ± 0.2",
        "relu": "593 ± 8", "MoS": "61.4 ± 0.4", "MoSS": "61.1 ± 0.3", "MoR": "83.9 ± 1", "MoSig": "66.4 ± 0.1",
        "MoSp": "65.3 ± 0.1",
    },
    seeds=5, notes=NOTES,
)  # fmt: skip

DOC = Claim(
    name="wikitext-2-doc", sentence="on WikiText-2 DOC has a lower perplexity than MoS, and MoS than AWD-LSTM",
    source="Takase et al. 2018, Table 4", arms=_arms({"softmax": "", "MoS": "-mos", "DOC": "-doc"}),
    measure=PERPLEXITY, comparisons=(lower(TEST, "DOC", "MoS"), lower(TEST, "MoS", "softmax")),
    published={"softmax": "65.8", "MoS": "61.45", "DOC": "58.55"}, notes=NOTES,
)  # fmt: skip

_CONSTRAINED = tuple(family("delta", DELTA, DELTAS, None, "wikitext-2/gru-constrained.toml").values())
_CLIPPED = family("clip", CLIP, (3.5, 7, 10.5, 14), None, "wikitext-2/gru-clipped.toml")

GRU = Claim(
    name="wikitext-2-gru",
    sentence="on WikiText-2 the constrained GRU never fails, the clipped one does at larger thresholds",
    source="Kanai's thesis, Table 3.2", arms=(*_CONSTRAINED, *_CLIPPED.values()), measure=DYNAMICS,
    comparisons=(
        *(Bound("success", arm.label, 0.5, exceeds=True) for arm in _CONSTRAINED),
        *(Bound("success", arm.label, 0.5) for threshold, arm in _CLIPPED.items() if threshold > 5),
    ),
    published={arm.label: "100 %" for arm in _CONSTRAINED}
    | {arm.label: "100 %" if threshold < 5 else "0 %" for threshold, arm in _CLIPPED.items()},
    notes=NOTES,
)  # fmt: skip

GRU_PERPLEXITY = Claim(
    name="wikitext-2-gru-perplexity",
    sentence="on WikiText-2 the smaller delta, the lower the perplexity, which is lower than with clipping",
    source="Kanai's thesis, Table 3.4", arms=(*_CONSTRAINED, _CLIPPED[3.5]), measure=PERPLEXITY,
    comparisons=tuple(
        lower("valid perplexity", f"delta {better}", worse)
        for better, worse in ((0.2, "delta 0.8"), (0.8, "delta 1.4"), (0.2, "delta 1.4"), (0.2, "clip 3.5"))
    ),
    published={
        "delta 0.2": "130.4 ± 0.7", "delta 0.5": "130.9 ± 0.9", "delta 0.8": "132.0 ± 0.4", "delta 1.1": "134.0 ± 0.6",
        "delta 1.4": "135.0 ± 0.6", "clip 3.5": "140 ± 1",
    },
    notes=NOTES,
)  # fmt: skip
