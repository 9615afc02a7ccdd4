"""Models that adapt while they are evaluated."""

from elman.reproduce.claim import Claim
from elman.reproduce.claims.arms import MOS, activation, mixture_of
from elman.reproduce.comparison import no_higher, times
from elman.reproduce.measures.runs import adaptation

_FUNCTIONS = (activation("softmax"), activation("sigsoftmax"), MOS, mixture_of("sigsoftmax"))

DYNAMIC_EVALUATION = Claim(
    name="dynamic-evaluation",
    sentence="dynamic evaluation lowers the perplexity of every output function, and keeps their order",
    source="Krause et al. 2018; Kanai's thesis, Tables 4.1 and 4.2",
    arms=_FUNCTIONS,
    measure=adaptation("dynamic", "dynamic"),
    comparisons=(
        *(times("static", arm.label, arm.label, 1.03, b_metric="dynamic") for arm in _FUNCTIONS),
        no_higher("dynamic", "sigsoftmax", "softmax", margin=0.005),
        no_higher("dynamic", "MoSS", "MoS", margin=0.005),
    ),
    metric="dynamic",
    published={
        "softmax": "57.0 to 50.5 (test)", "sigsoftmax": "56.6 to 49.2", "MoS": "54.7 to 48.0", "MoSS": "54.6 to 47.7",
    },
    notes="Static perplexity more than 1.03 times the dynamic one. Tuned by the grid of the thesis on 2,000 validation"
    " tokens, read over the first 10,000 test tokens.",
)  # fmt: skip

NEURAL_CACHE = Claim(
    name="neural-cache",
    sentence="the neural cache lowers perplexity, and adds to dynamic evaluation",
    source="Grave, Joulin & Usunier 2017, section 5; Merity, Keskar & Socher 2018, Table 1",
    arms=(activation("softmax"),),
    measure=adaptation("cache", "cache", "dynamic+cache"),
    comparisons=(
        times("static", "softmax", "softmax", 1.03, b_metric="cache"),
        times("cache", "softmax", "softmax", 1.0, b_metric="dynamic+cache"),
    ),
    metric="cache",
    published={"softmax": "82.3 to 72.1 (LSTM, PTB); 57.3 to 52.8 (AWD-LSTM, PTB)"},
    notes="Tuned on 2,000 validation tokens, read over the first 10,000 test tokens.",
)
