"""Whether gates that do not read the state make training faster, at what quality: minGRU beside the GRU."""

from elman.study.claim import Claim
from elman.study.claims.recurrences import WORDS, Recurrence
from elman.study.claims.speed import TRAINING
from elman.study.comparison import lower, no_higher

GRU_BLOCKS, MINIMAL_BLOCKS = "GRU, blocks", "minGRU, blocks"

MINIMAL_GRU = Claim(
    name="minimal-gru",
    sentence="minGRU, whose gates do not read the state, trains faster per token than a GRU of as many weights, at"
    " the same perplexity",
    source="Feng, Tung, Ahmed, Bengio & Hajimirsadeghi 2024, sections 4.1 and 4.2",
    arms=(
        WORDS.of(GRU_BLOCKS, Recurrence('"gru"', blocks=True), 100), *map(WORDS.arm, (MINIMAL_BLOCKS, "GRU", "minGRU")),
    ),
    measure=WORDS.measure,
    comparisons=(
        no_higher("test perplexity", MINIMAL_BLOCKS, GRU_BLOCKS, margin=0.02),
        lower(TRAINING, MINIMAL_BLOCKS, GRU_BLOCKS),
    ),
    metric="test perplexity",
    notes="The paper compares times on a GPU, where its networks read a whole sequence at once (175 times as fast at"
    " 512 steps), and has no figures of a GRU on language. Here both read windows of 35 steps on a CPU, where the loop"
    " over the steps is the fastest form of minGRU too (docs/cells.md). Small scale: the networks, data, schedule and"
    " grid of the claim recurrences-on-words, and a GRU in blocks. The claim is judged in residual blocks, as the"
    " paper's networks are built: the minGRU with the paper's convolution, which lowers its perplexity in a pilot, and"
    " the GRU without, whose perplexity it raises. Plain layers are shown beside them. The margin of 2 % was fixed"
    " beforehand.",
)  # fmt: skip
