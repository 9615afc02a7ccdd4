"""Output functions other than softmax, alone and as components of a mixture, in one small network of words."""

from pathlib import Path

from elman.analysis.rank import find_rank, spectrum
from elman.study.claim import Arm, Claim, ClaimMeasure, CurveAxes, Measurement, Source, rates
from elman.study.comparison import Bound, lower, no_higher, times
from elman.study.measures import PERPLEXITY
from elman.tasks.text.run import TextRun

WORDS = "reproduce/small-words.toml"

ACTIVATIONS = {"softmax": "MoS", "sigsoftmax": "MoSS", "relu": "MoR", "sigmoid": "MoSig", "softplus": "MoSp"}
"""Activations, and the names of mixtures of each (Kanai's thesis, section 4.4)."""

RATES = rates(
    10, 20, 30, of=("training.optimiser.lr", "training.fine_tune.lr"),
    shortened=("training.epochs=4", "training.fine_tune.epochs=2"),
)  # fmt: skip
"""The same three learning rates for every arm, tried for 6 of 16 epochs."""

QUICK = (
    "data.train_tokens=60000", "data.max_vocabulary=800", "training.epochs=6", "training.fine_tune.epochs=2"
)  # fmt: skip

SINGLE = (
    'model.output.contexts={kind = "single"}', "model.core.sizes=[176, 176, 48]", "model.encoder.size=48"
)  # fmt: skip
"""One distribution, in a network as large as those with a mixture: 549,712 weights against 547,000."""


def words(*settings: str) -> Source:
    """The small network of words, whose output is a mixture of 6 components, with settings laid over it."""
    return Source(WORDS, settings, QUICK, RATES)


def heads(*counts: tuple[int, int]) -> str:
    """A setting: (level, components) of the small network, whose layers are 1 to 3; level 0 is the word vector."""
    inner = ", ".join(f"{level} = {count}" for level, count in counts)
    return f"model.output.contexts.heads={{{inner}}}"


def activation(name: str) -> Arm:
    """One output function without a mixture."""
    settings = SINGLE if name == "softmax" else (*SINGLE, f"model.output.activation={name}")
    return Arm(name, words(*settings), Source(f"ptb/awd-lstm-{name}.toml"))


def mixture_of(name: str) -> Arm:
    """A mixture of 6 components at small scale, 15 at paper scale; sigsoftmax also weighs its components (4.43)."""
    settings = [] if name == "softmax" else [f"model.output.activation={name}"]
    if name == "sigsoftmax":
        settings.append("model.output.contexts.prior=same")
    label = ACTIVATIONS[name]
    paper = "mos-thesis" if name == "softmax" else label.lower()
    return Arm(label, words(*settings), Source(f"ptb/awd-lstm-{paper}.toml"))


SINGLES = {name: activation(name) for name in ACTIVATIONS}
MIXTURES = {label: mixture_of(name) for name, label in ACTIVATIONS.items()}


def rank(folder: Path, tokens: int) -> Measurement:
    """Numerical rank of the log-output matrix of the first test tokens, its singular values, and d + 2.

    d + 2 bounds log-softmax: d from the contexts, one from the bias, one from the normaliser (thesis, section 4.1).
    In float64: by the threshold of float32 the outputs of a model that has not converged lose nearly all their rank.
    """
    run = TextRun(folder)
    model = run.model.double()
    found = find_rank(model, spectrum(model, run.corpus().split("test").tokens, run.first, max_tokens=tokens))
    figures = {"rank": float(found.rank), "d + 2": float(found.size + 2), "words": float(found.spectrum.num_words)}
    return Measurement(figures, {"singular values": found.spectrum.singular_values.tolist()})


RANK = ClaimMeasure(
    "rank",
    {"rank": "numerical rank", "d + 2": "bound of log-softmax, d + 2", "words": "words"},
    rank,
    {"tokens": 4_000},  # twice the vocabulary at small scale
    minutes=0.5,
    curve=CurveAxes("singular values", "index"),
)

DOC = Arm("DOC", words(heads((3, 4), (2, 2))), Source("ptb/awd-lstm-doc-15-5-0-0.toml"))
"""Direct output connection: 4 components of the last layer, 2 of the one below it; 551,800 weights."""

_NONLINEAR = tuple(SINGLES[name] for name in ("sigmoid", "softplus", "sigsoftmax"))

RANK_BOUND = Claim(
    name="rank-bound",
    sentence="log-softmax has rank d + 2 at most; other output functions, mixtures and DOC exceed it",
    source="Kanai's thesis, Table 4.3 and Fig. 4.4; Takase et al. 2018, Table 5",
    arms=(SINGLES["softmax"], *_NONLINEAR, *MIXTURES.values(), DOC), measure=RANK,
    comparisons=(
        Bound("rank", "softmax", "d + 2"),
        *(Bound("rank", arm.label, "d + 2", exceeds=True) for arm in (*_NONLINEAR, *MIXTURES.values(), DOC)),
    ),
    published={
        "softmax": "402 = d + 2 (thesis), 401 = d + 1 (DOC, of the logits)", "sigmoid": "542", "softplus": "1,279",
        "sigsoftmax": "4,640", "MoS": "9,980 (thesis), 10,000 (DOC)", "MoSS": "9,986", "MoR": "9,999", "MoSig": "9,977",
        "MoSp": "9,980", DOC.label: "10,000",
    },
    seeds=1,
    notes="Log-probabilities in float64, singular values by a blockwise QR; small scale: V = 2,000, d = 48 (one"
    " distribution) or 40. A bound is not a mean: one seed can break it, so one seed is trained by default. ReLU alone"
    " (8,243 in the thesis) does not train: see relu-fails.",
)  # fmt: skip

SIGSOFTMAX_WORDS = Claim(
    name="sigsoftmax-words", sentence="on words, sigsoftmax has a lower perplexity than softmax",
    source="Kanai's thesis, Tables 4.1 and 4.2; Kanai et al. 2018, Tables 2 and 3",
    arms=(SINGLES["softmax"], SINGLES["sigsoftmax"]), measure=PERPLEXITY,
    comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
    published={"softmax": "57.0 ± 0.6", "sigsoftmax": "56.6 ± 0.4"}, seeds=5,
    notes="On Penn Treebank the published difference is within a standard deviation; it is clear on WikiText-2.",
)  # fmt: skip

SOFTPLUS_WORDS = Claim(
    name="softplus-words", sentence="softplus is as good as softmax or better as the output function",
    source="Kanai's thesis, Table 4.1", arms=(SINGLES["softmax"], SINGLES["softplus"]), measure=PERPLEXITY,
    comparisons=(no_higher("test perplexity", "softplus", "softmax", margin=0.01),),
    published={"softmax": "57.0 ± 0.6", "softplus": "56.6 ± 0.2"},
    notes="At most 1 % higher; on WikiText-2 softplus is worse (Table 4.2).",
)  # fmt: skip


def _sized(name: str, size: int, paper: str) -> Arm:
    settings = (*SINGLE, f"data.max_vocabulary={size}", f"model.output.activation={name}")
    source = words(*settings)
    quick = (*source.quick, f"data.max_vocabulary={size // 3}")
    return Arm(f"{name}, {size:,} words", source._replace(quick=quick), Source(f"{paper}/awd-lstm-{name}.toml"))


_SMALL, _LARGE = (
    (_sized("sigmoid", n, p), _sized("softmax", n, p)) for n, p in ((1_000, "ptb"), (10_000, "wikitext-2"))
)

SIGMOID_VOCABULARY = Claim(
    name="sigmoid-vocabulary", sentence="sigmoid is as good as softmax on a small vocabulary and worse on a large one",
    source="Kanai's thesis, Tables 4.1 and 4.2", arms=(*_SMALL, *_LARGE), measure=PERPLEXITY,
    comparisons=(
        no_higher("test perplexity", _SMALL[0].label, _SMALL[1].label, margin=0.01),
        lower("test perplexity", _LARGE[1].label, _LARGE[0].label),
    ),
    published={_SMALL[0].label: "56.4 (PTB)", _SMALL[1].label: "57.0"}
    | {_LARGE[0].label: "68.2 (WT2)", _LARGE[1].label: "64.7"},
    notes="Small scale: vocabularies of 1,000 and 10,000 words of one text; the paper's: 10,000 (PTB), 33,278 (WT2).",
)  # fmt: skip

RELU_FAILS = Claim(
    name="relu-fails", sentence="ReLU as the output function fails: several times the perplexity of softmax",
    source="Kanai's thesis, Tables 4.1 and 4.2", arms=(SINGLES["softmax"], SINGLES["relu"]), measure=PERPLEXITY,
    comparisons=(times("test perplexity", "relu", "softmax", 2.0),),
    published={"softmax": "57.0 ± 0.6", "relu": "1,240 ± 80"}, notes="Several times means more than twice.",
)  # fmt: skip
