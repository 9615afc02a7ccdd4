"""Output functions beside softmax, without a mixture."""

from elman.reproduce.claim import Arm, Claim, Source
from elman.reproduce.claims.arms import CHARACTERS, activation, words
from elman.reproduce.comparison import lower, no_difference, no_higher, times
from elman.reproduce.measures.runs import BITS, PERPLEXITY

SOFTMAX = activation("softmax")

SIGSOFTMAX_WORDS = Claim(
    name="sigsoftmax-words",
    sentence="on words, sigsoftmax has a lower perplexity than softmax",
    source="Kanai's thesis, Tables 4.1 and 4.2; Kanai et al. 2018, Tables 2 and 3",
    arms=(SOFTMAX, activation("sigsoftmax")),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", "sigsoftmax", "softmax"),),
    metric="test perplexity",
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
    comparisons=(no_difference("test bits a character", "sigsoftmax", "softmax", margin=0.01),),
    metric="test bits a character",
    published={"softmax": "1.56 (text8)", "sigsoftmax": "1.56 (text8)"},
    notes="Equal means within 1 % of the bits a character. The lab has Shakespeare in lower case, contexts of 128.",
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
    metric="test perplexity",
    published=dict(
        zip((arm.label for arm in (*_SMALL, *_LARGE)), ("56.4 (PTB)", "57.0", "68.2 (WT2)", "64.7"), strict=True)
    ),
    notes="The lab's vocabularies are 1,000 and 10,000 words of one text, the paper's 10,000 (PTB) and 33,278 (WT2).",
)

RELU_FAILS = Claim(
    name="relu-fails",
    sentence="ReLU as the output function fails: several times the perplexity of softmax",
    source="Kanai's thesis, Tables 4.1 and 4.2",
    arms=(SOFTMAX, activation("relu")),
    measure=PERPLEXITY,
    comparisons=(times("test perplexity", "relu", "softmax", 2.0),),
    metric="test perplexity",
    published={"softmax": "57.0 ± 0.6", "relu": "1,240 ± 80"},
    notes="Several times means more than twice.",
)

ADAPTIVE_SIGSOFTMAX = Claim(
    name="adaptive-sigsoftmax",
    sentence="adaptive sigsoftmax has a lower perplexity than adaptive softmax",
    source="Kanai's thesis, Table 4.5",
    arms=tuple(
        Arm(
            f"adaptive {name}",
            words(
                "data.max_vocabulary=10000",
                'model.output.choice={kind = "adaptive", cutoffs = [1000, 4000]}',
                f"model.output.activation={name}",
            ),
            Source(f"one-billion-word/adaptive-{name}.toml"),
        )
        for name in ("softmax", "sigsoftmax")
    ),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", "adaptive sigsoftmax", "adaptive softmax"),),
    metric="test perplexity",
    published={"adaptive softmax": "33.80 ± 0.04", "adaptive sigsoftmax": "33.62 ± 0.05"},
    notes="The lab's vocabulary has 10,000 words, cut at 1,000 and 4,000.",
)
