"""Grammar: agreement across embedded clauses, starting small, minimal pairs."""

from elman.reproduce.claim import Arm, Claim, Source
from elman.reproduce.comparison import Bound, lower
from elman.reproduce.measures.syntax import AGREEMENT, MINIMAL_PAIRS, PAIRS

SRN, GRU, LSTM = "SRN", "GRU", "LSTM"


def _arm(label: str, recipe: str) -> Arm:
    source = Source(f"grammar/{recipe}.toml")
    return Arm(label, source, source)


ELMAN_AGREEMENT = Claim(
    name="elman-agreement",
    sentence="a simple recurrent network learns number agreement across embedded clauses; so do GRU and LSTM",
    source="Elman 1991, section 4",
    arms=(_arm(SRN, "srn"), _arm(GRU, "gru"), _arm(LSTM, "lstm")),
    measure=AGREEMENT,
    comparisons=tuple(Bound("accuracy, 2 levels", cell, 0.95, exceeds=True) for cell in (SRN, GRU, LSTM)),
    metric="accuracy, 2 levels",
    notes="Holds where the right form is more probable than the wrong one in 95 % of the verbs across two levels of"
    " embedding. All cells are trained on the final mixture of sentences from the first epoch on.",
)

STARTING_SMALL = Claim(
    name="elman-starting-small",
    sentence="a simple recurrent network comes nearer to the grammar when it starts small, by sentences or by memory",
    source="Elman 1991, section 3; Elman 1993, sections 2 and 3",
    arms=(
        _arm(SRN, "srn"),
        _arm("SRN, by complexity", "srn-by-complexity"),
        _arm("SRN, by memory", "srn-by-memory"),
    ),
    measure=AGREEMENT,
    comparisons=(
        lower("KL divergence", "SRN, by complexity", SRN),
        lower("KL divergence", "SRN, by memory", SRN),
    ),
    metric="accuracy, 2 levels",
    notes="As many epochs of as many sentences in each arm. Rohde & Plaut 1999 (Cognition 72) found no advantage of"
    " starting small, rather a disadvantage.",
)

BLIMP = Claim(
    name="blimp",
    sentence="an LSTM trained on words prefers grammatical sentences above chance, and more often than a 5-gram does",
    source="Warstadt et al. 2020, Table 3",
    arms=(Arm(LSTM, Source("ptb/lab-awd-lstm.toml"), Source("ptb/awd-lstm.toml")),),
    measure=MINIMAL_PAIRS,
    comparisons=(
        Bound("accuracy", LSTM, 0.5, exceeds=True),
        Bound("accuracy", LSTM, "5-gram", exceeds=True),
        Bound("agreement", LSTM, "5-gram, agreement", exceeds=True),
    ),
    metric="accuracy",
    published={LSTM: "69.8 % (83 M tokens of Wikipedia; their 5-gram of 3.1 G tokens 61.2 %)"},
    seeds=1,
    notes="Trained on Penn Treebank, 0.9 M tokens, 10,000 words: pairs that differ in unknown words only are not"
    " judged.",
    needs=(PAIRS,),
)
