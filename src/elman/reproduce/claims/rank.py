"""Who is held by the softmax bottleneck, and who breaks it."""

from elman.reproduce.claim import Claim
from elman.reproduce.claims.arms import DOC, MOS, activation
from elman.reproduce.comparison import Bound
from elman.reproduce.measures import RANK

RANK_BOUND = Claim(
    name="rank-bound",
    sentence="log-softmax has rank d + 2 at most; sigsoftmax, mixtures of softmaxes and DOC go beyond it",
    source="Kanai's thesis, Table 4.3 and Fig. 4.4; Takase et al. 2018, Table 5",
    arms=(activation("softmax"), activation("sigsoftmax"), MOS, DOC),
    measure=RANK,
    comparisons=(
        Bound("rank", "softmax", "d + 2"),
        Bound("rank", "sigsoftmax", "d + 2", exceeds=True),
        Bound("rank", MOS.label, "d + 2", exceeds=True),
        Bound("rank", DOC.label, "d + 2", exceeds=True),
    ),
    metric="rank",
    published={
        "softmax": "402 = d + 2 (thesis), 401 = d + 1 (DOC, of the logits)",
        "sigsoftmax": "4,640",
        MOS.label: "9,980 (thesis), 10,000 (DOC)",
        DOC.label: "10,000",
    },
    seeds=1,
    notes="Log-probabilities in float64, singular values by a blockwise QR; lab: d = 64, V = 3,000. A bound is not a"
    " mean: one seed can break it, so one is trained unless more are asked for.",
)
