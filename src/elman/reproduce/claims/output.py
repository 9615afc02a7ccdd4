"""Output layers: functions other than softmax, mixtures of them, and direct output connection (DOC)."""

from pathlib import Path

import torch

from elman.analysis.rank import find_rank, spectrum
from elman.data.windows import Span, TrainingWindows
from elman.learning.bptt import bptt
from elman.network.cores.stack import Stack
from elman.objective.loss import build_objective
from elman.reproduce.arm import Arm, Measurement, Source
from elman.reproduce.claim import Claim, ClaimMeasure, CurveAxes
from elman.reproduce.comparison import Bound, lower, no_difference, no_higher, times
from elman.reproduce.perplexity import BITS, PERPLEXITY
from elman.tasks.text.run import TextRun

# One network and one budget at small scale, so only the output layer differs.
WORDS, CHARACTERS = "reproduce/small-words.toml", "reproduce/small-characters.toml"

ACTIVATIONS = {"softmax": "MoS", "sigsoftmax": "MoSS", "relu": "MoR", "sigmoid": "MoSig", "softplus": "MoSp"}
"""Activations, and the names of mixtures of each (Kanai's thesis, section 4.4)."""


def words(*settings: str) -> Source:
    """The small network of words, with settings laid over it."""
    return Source(WORDS, settings)


def heads(*counts: tuple[int, int]) -> str:
    """A setting: (level, components) of the small network, whose layers are 1 and 2; level 0 is the word vector."""
    inner = ", ".join(f"{level} = {count}" for level, count in counts)
    return f'model.output.contexts={{kind = "mixture", size = 64, heads = {{{inner}}}}}'


def activation(name: str) -> Arm:
    """One output function without a mixture."""
    settings = () if name == "softmax" else (f"model.output.activation={name}",)
    return Arm(name, words(*settings), Source(f"ptb/awd-lstm-{name}.toml"))


def mixture_of(name: str) -> Arm:
    """A mixture of 3 components at small scale, 15 at paper scale; sigsoftmax also weighs its components (4.43)."""
    settings = [heads((2, 3))] + ([] if name == "softmax" else [f"model.output.activation={name}"])
    if name == "sigsoftmax":
        settings.append("model.output.contexts.prior=same")
    label = ACTIVATIONS[name]
    paper = "mos-thesis" if name == "softmax" else label.lower()
    return Arm(label, words(*settings), Source(f"ptb/awd-lstm-{paper}.toml"))


def components(label: str, paper: str, *counts: tuple[int, int], more: tuple[str, ...] = ()) -> Arm:
    """Direct output connection: components by level, at small scale one for every five of the paper."""
    return Arm(label, words(heads(*counts), *more), Source(f"ptb/{paper}.toml"))


MOS = components("MoS", "awd-lstm-mos", (2, 3))
MOS_MORE = components("MoS, a third more", "awd-lstm-mos-20", (2, 4))
DOC = components("DOC", "awd-lstm-doc-15-5-0-0", (2, 3), (1, 1))
DOC_SHALLOW = components("DOC, shallow", "awd-lstm-doc-15-0-0-5", (2, 3), (0, 1))
DOC_BALANCED = components("DOC, balanced", "awd-lstm-doc", (2, 3), (1, 1), more=("training.penalties.balance=0.001",))


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


def gradients(folder: Path, num_windows: int) -> Measurement:
    """Norm of the loss's gradient by layer, on validation text without dropout, averaged over the first windows.

    The lowest layer's norm divided by the top's is the share of the signal that reaches the lowest layer.
    """
    run = TextRun(folder)
    training, core = run.recipe.training, run.model.core
    assert isinstance(core, Stack), "the recipes of this measure have recurrent layers"
    windows = TrainingWindows(run.corpus().split("valid").tokens, training.batch_size, training.window.length)
    starts = range(0, windows.steps - training.window.length, training.window.length)[:num_windows]
    layers = [list(layer.parameters()) for layer in core.layers]
    sums, state = [0.0] * len(layers), run.model.begin(training.batch_size)
    objective = build_objective(training)
    for start in starts:
        run.model.zero_grad()
        _, state = bptt(run.model, objective, windows.batch(Span(start, training.window.length)), state)
        for index, parameters in enumerate(layers):
            parts = [parameter.grad.norm() for parameter in parameters if parameter.grad is not None]
            sums[index] += torch.stack(parts).norm().item()
    norms = [total / len(starts) for total in sums]
    by_layer = {f"layer {index}": norm for index, norm in enumerate(norms, start=1)}
    return Measurement({"lowest / top": norms[0] / norms[-1], **by_layer}, {"gradient norm": norms})


RANK = ClaimMeasure(
    "rank",
    {"rank": "numerical rank", "d + 2": "bound of log-softmax, d + 2", "words": "words"},
    rank,
    {"tokens": 6_000},  # twice the vocabulary at small scale
    minutes=0.5,
    curve=CurveAxes("singular values", "index"),
)

SOFTMAX, SIGSOFTMAX = activation("softmax"), activation("sigsoftmax")

RANK_BOUND = Claim(
    name="rank-bound",
    sentence="log-softmax has rank d + 2 at most; sigsoftmax, mixtures of softmaxes and DOC exceed it",
    source="Kanai's thesis, Table 4.3 and Fig. 4.4; Takase et al. 2018, Table 5",
    arms=(SOFTMAX, SIGSOFTMAX, MOS, DOC),
    measure=RANK,
    comparisons=(
        Bound("rank", "softmax", "d + 2"),
        *(Bound("rank", arm.label, "d + 2", exceeds=True) for arm in (SIGSOFTMAX, MOS, DOC)),
    ),
    published={
        "softmax": "402 = d + 2 (thesis), 401 = d + 1 (DOC, of the logits)",
        "sigsoftmax": "4,640",
        MOS.label: "9,980 (thesis), 10,000 (DOC)",
        DOC.label: "10,000",
    },
    seeds=1,
    notes="Log-probabilities in float64, singular values by a blockwise QR; small scale: d = 64, V = 3,000. A bound is"
    " not a mean: one seed can break it, so one seed is trained by default.",
)

SIGSOFTMAX_WORDS = Claim(
    name="sigsoftmax-words",
    sentence="on words, sigsoftmax has a lower perplexity than softmax",
    source="Kanai's thesis, Tables 4.1 and 4.2; Kanai et al. 2018, Tables 2 and 3",
    arms=(SOFTMAX, SIGSOFTMAX),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
    published={"softmax": "57.0 ± 0.6", "sigsoftmax": "56.6 ± 0.4"},
    notes="On Penn Treebank the published difference is within a standard deviation; it is clear on WikiText-2.",
)

CHARACTER_BOTTLENECK = Claim(
    name="character-bottleneck",
    sentence="on characters, fewer symbols than dimensions (M < d), softmax has no bottleneck: sigsoftmax and softmax"
    " do not differ",
    source="Kanai's thesis, Table 4.4",
    arms=tuple(
        Arm(name, Source(CHARACTERS, settings), Source(f"text8/lstm-{name}.toml"))
        for name, settings in (("softmax", ()), ("sigsoftmax", ("model.output.activation=sigsoftmax",)))
    ),
    measure=BITS,
    comparisons=(no_difference("test bits per character", "sigsoftmax", "softmax", margin=0.01),),
    published={"softmax": "1.56 (text8)", "sigsoftmax": "1.56 (text8)"},
    notes="Equal means within 1 % of the bits per character. Small scale: Shakespeare in lower case, contexts of 128.",
)


def _sized(name: str, size: int, paper: str) -> Arm:
    settings = (f"data.max_vocabulary={size}", f"model.output.activation={name}")
    return Arm(f"{name}, {size:,} words", words(*settings), Source(f"{paper}/awd-lstm-{name}.toml"))


_SMALL, _LARGE = (
    (_sized("sigmoid", n, p), _sized("softmax", n, p)) for n, p in ((1_000, "ptb"), (10_000, "wikitext-2"))
)

SIGMOID_VOCABULARY = Claim(
    name="sigmoid-vocabulary",
    sentence="sigmoid is as good as softmax on a small vocabulary and worse on a large one",
    source="Kanai's thesis, Tables 4.1 and 4.2",
    arms=(*_SMALL, *_LARGE),
    measure=PERPLEXITY,
    comparisons=(
        no_higher("test perplexity", _SMALL[0].label, _SMALL[1].label, margin=0.01),
        lower("test perplexity", _LARGE[1].label, _LARGE[0].label),
    ),
    published={_SMALL[0].label: "56.4 (PTB)", _SMALL[1].label: "57.0"}
    | {_LARGE[0].label: "68.2 (WT2)", _LARGE[1].label: "64.7"},
    notes="Small scale: vocabularies of 1,000 and 10,000 words of one text; the paper's: 10,000 (PTB), 33,278 (WT2).",
)

RELU_FAILS = Claim(
    name="relu-fails",
    sentence="ReLU as the output function fails: several times the perplexity of softmax",
    source="Kanai's thesis, Tables 4.1 and 4.2",
    arms=(SOFTMAX, activation("relu")),
    measure=PERPLEXITY,
    comparisons=(times("test perplexity", "relu", "softmax", 2.0),),
    published={"softmax": "57.0 ± 0.6", "relu": "1,240 ± 80"},
    notes="Several times means more than twice.",
)

_ADAPTIVE = "data.max_vocabulary=10000", 'model.output.choice={kind = "adaptive", cutoffs = [1000, 4000]}'

ADAPTIVE_SIGSOFTMAX = Claim(
    name="adaptive-sigsoftmax",
    sentence="adaptive sigsoftmax has a lower perplexity than adaptive softmax",
    source="Kanai's thesis, Table 4.5",
    arms=tuple(
        Arm(
            f"adaptive {name}",
            words(*_ADAPTIVE, f"model.output.activation={name}"),
            Source(f"one-billion-word/adaptive-{name}.toml"),
        )
        for name in ("softmax", "sigsoftmax")
    ),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", "adaptive sigsoftmax", "adaptive softmax"),),
    published={"adaptive softmax": "33.80 ± 0.04", "adaptive sigsoftmax": "33.62 ± 0.05"},
    notes="Small scale: a vocabulary of 10,000 words, cut at 1,000 and 4,000.",
)

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
    published={
        "MoS": "54.7 ± 0.08", "MoSS": "54.6 ± 0.2", "MoR": "66.2 ± 0.4", "MoSig": "60.3 ± 0.3", "MoSp": "59.4 ± 0.2",
    },
    notes="Three components at small scale, fifteen at paper scale.",
)  # fmt: skip

DOC_COMPONENTS = Claim(
    name="doc-components",
    sentence="DOC beats MoS with as many components; more components do not help MoS; shallow layers help DOC less",
    source="Takase et al. 2018, Table 3",
    arms=(MOS, MOS_MORE, DOC, DOC_SHALLOW),
    measure=PERPLEXITY,
    comparisons=(
        *(lower("test perplexity", DOC.label, other.label) for other in (MOS, MOS_MORE)),
        no_higher("test perplexity", MOS.label, MOS_MORE.label, margin=0.005),
        lower("test perplexity", DOC.label, DOC_SHALLOW.label),
    ),
    published={MOS.label: "54.44", MOS_MORE.label: "54.79", DOC.label: "53.15", DOC_SHALLOW.label: "54.28"},
    notes="Small scale: MoS 3, MoS 4, DOC 3 + 1 from layer 1, and DOC 3 + 1 from the word vector.",
)

GRADIENT_SHORTCUT = Claim(
    name="gradient-shortcut",
    sentence="DOC's components on lower layers are a short-cut for the gradient: more of it reaches them than in MoS",
    source="Takase et al. 2018, section 3",
    arms=(MOS_MORE, DOC),
    measure=ClaimMeasure(
        "gradients",
        {"lowest / top": "gradient norm, lowest layer / top", "layer 1": "layer 1", "layer 2": "layer 2"},
        gradients,
        {"num_windows": 20},
        minutes=0.2,
        curve=CurveAxes("gradient norm", "layer"),
    ),
    comparisons=(times("lowest / top", DOC.label, MOS_MORE.label, 1.0),),
    notes="The paper expects this without a measurement; here: gradient norms of trained models with the same number"
    " of components, on validation text without dropout.",
)

BALANCE_LOSS = Claim(
    name="balance-loss",
    sentence="the balance penalty lowers the perplexity of DOC",
    source="Takase et al. 2018, Table 3",
    arms=(DOC, DOC_BALANCED),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", DOC_BALANCED.label, DOC.label),),
    published={DOC.label: "53.15", DOC_BALANCED.label: "52.87"},
)
