"""Many claims at once: their records, and the p-values adjusted for their number."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elman.errors import UserError, command, notice
from elman.evaluation.paired import holm
from elman.study.claim import Claim, Scale, at_scale
from elman.study.figures import DOTS
from elman.study.record import ClaimRecord, read_record, rejudged
from elman.study.statistics import LEVEL, MARGIN

WITHIN = (
    "A claim holds if all its comparisons hold: its p-value is the largest of theirs (an intersection-union test,"
    " Berger 1982), which needs no adjustment. One comparison that fails refutes it: that p-value is the smallest of"
    " those that fail times the number of comparisons tested (Bonferroni), and must be below 5 %, or the claim is"
    " undecided. No difference above M: two one-sided t tests (Schuirmann 1987) show by the same rule that a comparison"
    f" differs by less than {100 * MARGIN:g} % either way, and M is the smallest bound that they give. By the same"
    " tests an undecided claim names the largest difference either way that is possible. A bound on every seed has no"
    " p-value."
)
QUICK = (
    "At the scale quick a p-value belongs to a test by token of the models trained from one seed; how much trainings"
    " differ by seed is not in it."
)
BOUNDED = 0.05  # an undecided claim whose ratios differ by less is counted as bounded
HEADER = ["claim", "verdict", "p", "p, Holm", "seeds", "minutes"]


@dataclass(frozen=True)
class Row:
    """What a table of claims says of one: verdict, p-value where a test decides it, seeds, minutes of training."""

    name: str
    verdict: str
    p_value: float | None
    seeds: int
    minutes: float | None

    @property
    def answer(self) -> str:
        return self.verdict.partition(" (")[0].partition(" above ")[0]

    @property
    def is_bounded(self) -> bool:
        """Whether it is undecided, but a difference of `BOUNDED` or more is excluded."""
        found = re.search(r"at most ([\d.]+) %", self.verdict)
        return found is not None and float(found[1]) <= 100 * BOUNDED


@dataclass(frozen=True)
class Summary:
    """The records of a scale, in the order of all `claims` that are asked for.

    Of claims that have no record here the rows of an `earlier` summary are kept.
    """

    scale: Scale
    claims: Sequence[Claim]
    records: Sequence[ClaimRecord]
    earlier: Sequence[Row] = ()

    @cached_property
    def kept(self) -> dict[str, Row]:
        ours, known = {one.name for one in self.records}, {claim.name for claim in self.claims}
        return {row.name: row for row in self.earlier if row.name in known - ours}

    @cached_property
    def rows(self) -> list[Row]:
        ours = {one.name: Row(one.name, one.verdict, one.p_value, len(one.seeds), one.minutes) for one in self.records}
        known = self.kept | ours
        return [known[claim.name] for claim in self.claims if claim.name in known]

    @cached_property
    def missing(self) -> list[Claim]:
        known = {row.name for row in self.rows}
        return [claim for claim in self.claims if claim.has(self.scale) and claim.name not in known]

    @cached_property
    def p_values(self) -> dict[str, float]:
        """Of the claims that a test decides or could decide, by name."""
        return {row.name: row.p_value for row in self.rows if row.p_value is not None}

    @cached_property
    def adjusted(self) -> dict[str, float]:
        return dict(zip(self.p_values, holm(list(self.p_values.values())), strict=True))

    @property
    def minutes(self) -> float:
        """Of training for the records; a run of several claims counts once."""
        return sum({folder: minutes for one in self.records for folder, minutes in one.training.items()}.values())

    @property
    def tally(self) -> str:
        parts = [f"{verdict}: {count}" for verdict, count in Counter(row.answer for row in self.rows).most_common()]
        parts += [f"not run: {len(self.missing)}"] if self.missing else []
        bounded = sum(row.is_bounded for row in self.rows)
        parts += [f"of the undecided {bounded} at most {100 * BOUNDED:g} % either way"] if bounded else []
        return ", ".join(parts)

    @property
    def chance(self) -> str:
        count = len(self.p_values)
        decided = [row.name for row in self.rows if row.answer != "undecided" and row.name in self.p_values]
        gone = [name for name in decided if self.adjusted[name] >= LEVEL]
        lost = f" (not {', '.join(gone)})" if gone else ""
        return (
            f"Claims judged by tests of ratios at the {100 * LEVEL:.0f} % level: {count}; if no difference existed,"
            f" {LEVEL * count:.2g} of them or fewer would be decided by chance. Decided: {len(decided)}, and"
            f" {len(decided) - len(gone)} after adjustment for the number of claims by Holm's method{lost}."
        )

    @property
    def remarks(self) -> list[str]:
        total = f"The trainings took {self.minutes:,.0f} minutes in all; one that several claims use counts once."
        lacking = any(one.minutes is not None and not one.training for one in self.records)  # its runs were not kept
        quick = [QUICK] if self.scale == "quick" else []
        return [
            self.chance,
            WITHIN,
            *quick,
            f"Drawings: {DOTS[0].lower()}{DOTS[1:]}",
            *([] if self.kept or lacking else [total]),
        ]

    def table(self) -> list[list[str]]:
        ran = [
            [row.name, row.verdict, _p(row.p_value), _p(self.adjusted.get(row.name)), str(row.seeds),
             "" if row.minutes is None else f"{row.minutes:.1f}"] for row in self.rows
        ]  # fmt: skip
        return [*ran, *([claim.name, "not run", "", "", "", ""] for claim in self.missing)]

    def facts(self) -> list[dict[str, Any]]:
        ran = [
            {"name": one.name, "claim": one.claim, "source": one.source, "scale": one.scale, "verdict": one.verdict,
             "p": self.p_values.get(one.name), "p_holm": self.adjusted.get(one.name), "seeds": len(one.seeds),
             "minutes": one.minutes, "report": one.report} for one in self.records
        ]  # fmt: skip
        return [*ran, *({"name": claim.name, "claim": claim.sentence, "verdict": "not run"} for claim in self.missing)]


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def summarise(out: Path, claims: Sequence[Claim], scale: Scale) -> Summary:
    """The records of claims in a folder of reproductions, and which of `claims` have none.

    A record that cannot be read is reported and counts as none. Raises UserError where no claim has one at this scale.
    """
    records = list[ClaimRecord]()
    for path in (out / f"{at_scale(claim.name, scale)}.json" for claim in claims):
        try:
            records += [rejudged(read_record(path))] if path.is_file() else []
        except UserError as error:
            notice(f"left out: {error}")
    if not records:
        run = command("reproduce", "all", "--scale", scale, "--out", out)
        raise UserError(f"{out}: no claim has a result at the scale {scale}; run `{run}`")
    return Summary(scale, claims, records)
