"""A share of successes with its confidence interval."""

import dataclasses
import math

Z = 1.959963984540054
"""Standard normal quantile of a two-sided 95 % interval."""


@dataclasses.dataclass(frozen=True)
class Proportion:
    """`successes` of `count`."""

    successes: int
    count: int

    @property
    def share(self) -> float:
        """Successes / count; NaN of nothing."""
        return self.successes / self.count if self.count else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson 1927, which stays within [0, 1] and holds for shares near 0 and 1.

        Example:
            >>> tuple(round(bound, 4) for bound in Proportion(10, 10).interval)
            (0.7225, 1.0)

        """
        if not self.count:
            return 0.0, 1.0
        n, p = self.count, self.share
        centre = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z / (1 + Z * Z / n) * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)
