"""Words by their spelling."""

from elman.reproduce.claim import Arm, Claim, Source
from elman.reproduce.comparison import lower, no_higher, times
from elman.reproduce.measures.syntax import RARE_WORDS, UNKNOWN_WORDS

SPELLED = "characters"
LAB, LAB_TWIN = Source("ptb/lab-char.toml"), Source("ptb/lab-char-word-twin.toml")

CHARACTER_AWARE = Claim(
    name="character-aware",
    sentence="a model that reads spelling is as good as a word model with far more parameters",
    source="Kim et al. 2016, Table 3",
    arms=(
        Arm(SPELLED, LAB, Source("ptb/char-large.toml")),
        Arm("words", LAB_TWIN, Source("ptb/zaremba-large.toml")),
    ),
    measure=RARE_WORDS,
    comparisons=(
        no_higher("test perplexity", SPELLED, "words", margin=0.01),
        times("parameters", "words", SPELLED, 1.5),
    ),
    metric="test perplexity",
    published={SPELLED: "78.9", "words": "78.4"},
    notes="The lab's model of characters has 60 % of the parameters of its word twin. The published figures are of 19"
    " and 52 million parameters as the paper counts them.",
)

CHARACTER_AWARE_TWINS = Claim(
    name="character-aware-twins",
    sentence="reading spelling lowers the perplexity of a word model, and most of all on rare words",
    source="Kim et al. 2016, Table 3",
    arms=(
        Arm(SPELLED, LAB, Source("ptb/char-small.toml")),
        Arm("words", LAB_TWIN, Source("ptb/char-small-word-twin.toml")),
    ),
    measure=RARE_WORDS,
    comparisons=(
        lower("test perplexity", SPELLED, "words"),
        lower("rare words", SPELLED, "words"),
        lower("after rare words", SPELLED, "words"),
    ),
    metric="test perplexity",
    published={SPELLED: "92.3", "words": "97.6"},
    notes="The runs of character-aware at the lab, the small models at paper scale. The paper has no figures of rare"
    " words. For the large models take ptb/char-large (78.9) and ptb/char-large-word-twin (85.4).",
)

OPEN_VOCABULARY = Claim(
    name="open-vocabulary",
    sentence="the spelling of a word that was never seen says more about what follows it than <unk> does",
    source="Kim et al. 2016, section 5",
    arms=(Arm(SPELLED, Source("shakespeare/lab-open-vocabulary.toml")),),
    measure=UNKNOWN_WORDS,
    comparisons=(
        times("after unknown words, as <unk>", SPELLED, SPELLED, 1.0, b_metric="after unknown words, spelled"),
    ),
    metric="after unknown words, spelled",
    notes="Shakespeare with a vocabulary of 5,000 words. In training unknown words are <unk> on both sides; the same"
    " model then reads the test split twice. The paper shows neighbours of unknown words and no perplexity.",
)
