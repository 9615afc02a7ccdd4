"""Mixtures, and direct output connection."""

from elman.reproduce.claim import Claim
from elman.reproduce.claims.arms import (
    ACTIVATIONS,
    DOC,
    DOC_BALANCED,
    DOC_SHALLOW,
    MOS,
    MOS_MORE,
    activation,
    mixture_of,
)
from elman.reproduce.comparison import Bound, lower, no_higher, times
from elman.reproduce.measures.runs import GRADIENTS, PERPLEXITY, RANK

# FOLDED reproduce/claims/rank.py: Who is held by the softmax bottleneck, and who breaks it.
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


# TARGET
MIXTURE_ACTIVATIONS = Claim(
    name="mixture-activations",
    sentence="MoSS is as good as MoS or better; mixtures of ReLU, sigmoid and softplus are worse than MoS",
    source="Kanai's thesis, Tables 4.1 and 4.2",
    arms=tuple(map(mixture_of, ACTIVATIONS)),
    measure=PERPLEXITY,
    comparisons=(
        no_higher("test perplexity", "MoSS", "MoS", margin=0.005),
        *(lower("test perplexity", "MoS", worse) for worse in ("MoR", "MoSig", "MoSp")),
    ),
    metric="test perplexity",
    published={
        "MoS": "54.7 ± 0.08", "MoSS": "54.6 ± 0.2", "MoR": "66.2 ± 0.4", "MoSig": "60.3 ± 0.3", "MoSp": "59.4 ± 0.2",
    },
    notes="Three components at the lab, fifteen at paper scale.",
)  # fmt: skip

DOC_COMPONENTS = Claim(
    name="doc-components",
    sentence="DOC beats MoS with as many components; more components do not help MoS; shallow layers help DOC less",
    source="Takase et al. 2018, Table 3",
    arms=(MOS, MOS_MORE, DOC, DOC_SHALLOW),
    measure=PERPLEXITY,
    comparisons=(
        lower("test perplexity", DOC.label, MOS.label),
        lower("test perplexity", DOC.label, MOS_MORE.label),
        no_higher("test perplexity", MOS.label, MOS_MORE.label, margin=0.005),
        lower("test perplexity", DOC.label, DOC_SHALLOW.label),
    ),
    metric="test perplexity",
    published={MOS.label: "54.44", MOS_MORE.label: "54.79", DOC.label: "53.15", DOC_SHALLOW.label: "54.28"},
    notes="The lab has MoS 3, MoS 4, DOC 3 + 1 from layer 1, and DOC 3 + 1 from the word vector.",
)

GRADIENT_SHORTCUT = Claim(
    name="gradient-shortcut",
    sentence="DOC's components on lower layers are a short-cut for the gradient: more of it arrives there than in MoS",
    source="Takase et al. 2018, section 3",
    arms=(MOS_MORE, DOC),
    measure=GRADIENTS,
    comparisons=(times("lowest / top", DOC.label, MOS_MORE.label, 1.0),),
    metric="lowest / top",
    notes="The paper hopes for it and measures nothing; here the norms of trained models on validation text, without"
    " dropout, of as many components.",
)

BALANCE_LOSS = Claim(
    name="balance-loss",
    sentence="the balance penalty lowers the perplexity of DOC",
    source="Takase et al. 2018, Table 3",
    arms=(DOC, DOC_BALANCED),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", DOC_BALANCED.label, DOC.label),),
    metric="test perplexity",
    published={DOC.label: "53.15", DOC_BALANCED.label: "52.87"},
)
