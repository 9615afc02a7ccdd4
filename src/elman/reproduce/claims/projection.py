"""What the spectral constraint costs, and what delta trades."""

from elman.reproduce.claim import Arm, Axes, Claim, Computation, Measure, Source
from elman.reproduce.claims.constraint import DELTAS, LAB
from elman.reproduce.comparison import Bound, lower, times
from elman.reproduce.computations.memory_noise import MemoryAndNoise
from elman.reproduce.computations.projection_cost import Cost
from elman.reproduce.measures.runs import COUNTS

TRUNCATED = ("training.constraint.method=truncated", "training.constraint.compare_norms=true")

PROJECTION_RANK = Claim(
    name="projection-rank",
    sentence="the truncated projection needs fewer and fewer singular values, and fewer by the step's spectral norm",
    source="Kanai's thesis, Figs 3.4 and 3.5",
    arms=(
        Arm(
            "truncated",
            Source("ptb/lab-gru-constrained.toml", (*TRUNCATED, *LAB)),
            Source("ptb/gru-constrained.toml", TRUNCATED),
        ),
    ),
    measure=COUNTS,
    comparisons=(Bound("last", "truncated", "first"), Bound("spectral", "truncated", "frobenius")),
    metric="last",
    seeds=1,
    notes="Algorithm 3.2, delta 0.2, one layer; s by both norms in the same run.",
)

PROJECTION_COST = Claim(
    name="projection-cost",
    sentence="the projection costs less than 3 % of a training step, and less than gradient clipping does",
    source="Kanai's thesis, Table 3.6",
    arms=tuple(
        Arm(f"delta {delta:g}", Computation(Cost(delta, steps), minutes), Computation(Cost(delta, 1327), 12))
        for delta, steps, minutes in ((0.2, 1327, 12), (0.5, 200, 2), (0.8, 200, 2), (1.1, 200, 2), (1.4, 200, 2))
    ),
    measure=Measure(
        "cost",
        {
            "projection": "projection, % of a step",
            "clipping": "clipping, %",
            "svd": "whole SVD, %",
            "truncated": "Algorithm 3.2, %",
            "excess": "sigma_1 - (2 - delta)",
            "deviation": "distance from the SVD's result, relative",
        },
        curve=Axes("singular values computed", "steps", relative=False, logarithmic=False),
    ),
    comparisons=(
        Bound("projection", "delta 0.2", 3.0),
        Bound("projection", "delta 0.2", "clipping"),
        *(Bound("excess", f"delta {delta:g}", 1e-4) for delta in DELTAS),
    ),
    metric="projection",
    published={"delta 0.2": "4.55e4 s of training against 4.96e4 s with clipping (5.02e4 s by a whole SVD)"},
    seeds=1,
    notes="n = 650, processor time in one training: the default projection keeps the weights in bounds, the others"
    " project copies. delta 0.2 over an epoch of Penn Treebank (1,327 steps), at the lab the others over 200 steps.",
)

MEMORY_NOISE = Claim(
    name="delta-memory-noise",
    sentence="a small delta remembers longer, a large one forgets noise sooner",
    source="Kanai's thesis, section 3.5.3, which says so and measures neither",
    arms=tuple(Arm(f"delta {delta:g}", Computation(MemoryAndNoise(delta), 1.0)) for delta in (0.2, 0.8, 1.4)),
    measure=Measure(
        "memory-noise",
        {
            "reach": "longest delay with less than 10 % errors",
            "error after 20 steps": "errors after 20 steps",
            "disturbance": "what noise of 20 steps ago leaves in the state",
        },
        curve=Axes(
            "error rate by delay",
            f"delay: {', '.join(map(str, MemoryAndNoise.delays))}",
            relative=False,
            logarithmic=False,
        ),
    ),
    comparisons=(
        times("reach", "delta 0.2", "delta 1.4", 1.0),
        lower("disturbance", "delta 1.4", "delta 0.2"),
    ),
    metric="reach",
    notes="32 units say at the end of a sequence which sign the signal at its beginning had.",
)
