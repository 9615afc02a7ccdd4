"""Whether gates that do not read the state make training faster, at what quality: minGRU beside the GRU."""

from elman.reproduce.arm import Arm, Grid, Source
from elman.reproduce.claim import Claim, ClaimMeasure
from elman.reproduce.claims.recurrences import blocks, layers
from elman.reproduce.comparison import lower, no_higher
from elman.reproduce.perplexity import PERPLEXITY
from elman.reproduce.speed import CONSTANTS, COSTS, TRAINING, perplexity_and_time

SIZES = "data.train_tokens=100000", "model.encoder.size=100", "training.batch_size=20"
QUICK = "data.train_tokens=20000", "training.epochs=4"
RATES = Grid(tuple((f"training.optimiser.lr={rate}",) for rate in (2.5e-3, 5e-3, 1e-2)), ("training.epochs=3",))
"""The same three learning rates for every arm, tried for 3 of 12 epochs."""


def _arm(label: str, core: str) -> Arm:
    return Arm(label, Source("reproduce/small-lstm.toml", (*SIZES, core), QUICK, RATES))


GRU, MINIMAL = "GRU", "minGRU"
GRU_BLOCKS, MINIMAL_BLOCKS = "GRU, blocks", "minGRU, blocks"

MINIMAL_GRU = Claim(
    name="minimal-gru",
    sentence="minGRU, whose gates do not read the state, trains faster per token than a GRU of as many weights, at"
    " the same perplexity",
    source="Feng, Tung, Ahmed, Bengio & Hajimirsadeghi 2024, sections 4.1 and 4.2",
    arms=(
        _arm(GRU_BLOCKS, blocks('"gru"', 140, 0.3)),
        _arm(MINIMAL_BLOCKS, blocks('"min-gru"', 156, 0.3)),
        _arm(GRU, layers('"gru"', [200, 200], 0.3)),
        _arm(MINIMAL, layers('"min-gru"', [340, 320, 200], 0.3)),
    ),
    measure=ClaimMeasure(
        "perplexity-and-time",
        {**PERPLEXITY.metrics, TRAINING: COSTS[TRAINING]},
        perplexity_and_time,
        CONSTANTS,
        minutes=0.2,
        timed=True,
        cost=TRAINING,
    ),
    comparisons=(
        no_higher("test perplexity", MINIMAL_BLOCKS, GRU_BLOCKS, margin=0.02),
        lower(TRAINING, MINIMAL_BLOCKS, GRU_BLOCKS),
    ),
    metric="test perplexity",
    notes="The paper compares times on a GPU, where its networks read a whole sequence at once (175 times as fast at"
    " 512 steps), and has no figures of a GRU on language. Here both read windows of 35 steps on a CPU, where the loop"
    " over the steps is the fastest form of minGRU too (docs/cells.md). Small scale: 100,000 tokens of Shakespeare. The"
    " claim is judged in residual blocks, as the paper's networks are built, of one form for both cells (the paper's"
    " have a convolution too). The plain layers are shown beside them: two of 200 units, and three of minGRU, since"
    " depth must make up for gates that see the state below alone. The margin of 2 % was fixed beforehand.",
)
