"""How many seeds a claim is given: how the number was planned, and what so many detect by the deviation observed."""

import math
from collections.abc import Sequence

from elman.errors import counted
from elman.reproduce.arm import Scale
from elman.reproduce.claim import Claim, Power
from elman.reproduce.comparison import Verdict
from elman.reproduce.statistics import POWER, detectable, power


def how_planned(claim: Claim, scale: Scale, count: int) -> str:
    """How the number of seeds was chosen, in words, where `count` were trained."""
    seeds = counted(count, "seed")
    if count != claim.num_seeds(scale):
        return f"{seeds}, as the command asked; {claim.num_seeds(scale)} are planned."
    if scale == "quick":
        return f"{seeds}: the scale quick only indicates what a claim would show."
    if not isinstance(claim.seeds, Power):
        return f"{seeds}, a number that the claim sets."
    return (
        f"{seeds}, which detect a ratio that is a factor of {math.exp(claim.seeds.effect):.4g} away from the bound of"
        f" its comparison with a power of {100 * POWER:.0f} %, where the logarithms of the ratios by seed deviate by"
        f" {claim.seeds.deviation:.2g}, as they did in a pilot."
    )


HEADER = ["comparison", "deviation of the logarithms", "power for the planned effect", "factor detected, power 80 %"]


def powers(verdicts: Sequence[Verdict], effect: float | None, count: int) -> list[list[str]]:
    """Rows below `HEADER` for the ratios: the power by the deviation observed, and what `count` seeds detect.

    `effect` is that of the plan, None where there was none. The effect that was observed is not used: the power to
    detect it is a function of the p-value alone.
    """
    rows = []
    for verdict in verdicts:
        deviation = math.nan if verdict.judgement is None else verdict.judgement.deviation
        if math.isnan(deviation):
            continue
        size = None if effect is None else abs(effect) / deviation if deviation else math.inf
        found = "" if size is None else f"{100 * power(count, size):.0f} %"
        rows.append([verdict.statement, f"{deviation:.2g}", found, f"{math.exp(detectable(count, deviation)):.4g}"])
    return rows
