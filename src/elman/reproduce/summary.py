"""Many claims at once: their records, and the p-values adjusted for their number."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elman.errors import UserError, notice
from elman.evaluation.paired_accuracy import holm
from elman.reproduce.arm import Scale, at_scale
from elman.reproduce.claim import Claim
from elman.reproduce.record import ClaimRecord, read_record
from elman.reproduce.statistics import LEVEL


@dataclass(frozen=True)
class Summary:
    """The records of a scale in the order of the claims, and the claims without one.

    `p_values` are those of the claims that a test decides or could decide, by name (`p_value`), and `adjusted` the same
    for so many claims by Holm's method.
    """

    scale: Scale
    records: Sequence[ClaimRecord]
    missing: Sequence[Claim]
    p_values: dict[str, float]
    adjusted: dict[str, float]

    @property
    def minutes(self) -> float:
        """Of training; a run of several claims counts once."""
        return sum({folder: minutes for one in self.records for folder, minutes in one.training.items()}.values())

    @property
    def tally(self) -> str:
        """How many claims have which verdict."""
        counts = Counter(one.verdict.partition(" (")[0] for one in self.records)
        parts = [f"{verdict}: {counts[verdict]}" for verdict in sorted(counts, key=lambda verdict: -counts[verdict])]
        return ", ".join([*parts, *([f"not run: {len(self.missing)}"] if self.missing else [])])

    @property
    def chance(self) -> str:
        """What to expect of so many tests by chance, and what Holm's method leaves."""
        count = len(self.p_values)
        decided = [one.name for one in self.records if one.answer != "undecided" and one.name in self.p_values]
        kept = [name for name in decided if self.adjusted[name] < LEVEL]
        lost = "" if len(kept) == len(decided) else f" (not {', '.join(name for name in decided if name not in kept)})"
        return (
            f"Claims judged by tests of ratios at the {100 * LEVEL:.0f} % level: {count}; if no difference existed,"
            f" {LEVEL * count:.2g} of them or fewer would be decided by chance. Decided: {len(decided)}, and"
            f" {len(kept)} after adjustment for the number of claims by Holm's method{lost}."
        )

    def facts(self) -> list[dict[str, Any]]:
        """The claims as plain values, for JSON."""
        ran = [
            {
                "name": one.name,
                "claim": one.claim,
                "source": one.source,
                "scale": one.scale,
                "verdict": one.verdict,
                "p": self.p_values.get(one.name),
                "p_holm": self.adjusted.get(one.name),
                "seeds": len(one.seeds),
                "minutes": one.minutes,
                "report": one.report,
            }
            for one in self.records
        ]
        return [*ran, *({"name": claim.name, "claim": claim.sentence, "verdict": "not run"} for claim in self.missing)]


WITHIN = (
    "Within a claim nothing is adjusted: a claim holds if all its comparisons hold, so its p-value is the largest of"
    " theirs (an intersection-union test). That of a claim that does not hold is the smallest of its comparisons that"
    " fail, times the number of ratios compared. A bound on every seed has no p-value."
)


def summarise(out: Path, claims: Sequence[Claim], scale: Scale) -> Summary:
    """The records of claims in a folder of reproductions, with those of `claims` that have none.

    A record that cannot be read is reported and counts as none. Raises UserError where no claim has one at this scale.
    """
    paths = {claim.name: out / f"{at_scale(claim.name, scale)}.json" for claim in claims}
    found = {name: one for name, path in paths.items() if path.is_file() and (one := _readable(path)) is not None}
    records = list(found.values())
    if not records:
        raise UserError(f"{out}: no claim has a result at the scale {scale}; run `elman reproduce all --out {out}`")
    p_values = {one.name: p for one in records if (p := p_value(one)) is not None}
    missing = [claim for claim in claims if claim.has(scale) and claim.name not in found]
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return Summary(scale, records, missing, p_values, adjusted)


def _readable(path: Path) -> ClaimRecord | None:
    try:
        return read_record(path)
    except UserError as error:
        notice(f"left out: {error}")
        return None


def p_value(made: ClaimRecord) -> float | None:
    """Of a claim, from its comparisons, as `WITHIN` describes; None where no test decides it."""
    ratios = [one for one in made.comparisons if one.judgement is not None]
    if made.answer == "does not hold":
        failing = [one.p_value for one in made.comparisons if one.answer == made.answer]
        known = [p for p in failing if p is not None]
        return min(1.0, len(ratios) * min(known)) if len(known) == len(failing) else None
    if any(one.answer == "undecided" and one.p_value is None for one in ratios):
        return None
    return max((one.p_value for one in ratios if one.p_value is not None), default=None)
