"""The mean and the deviation of a figure over several runs."""

import dataclasses
import math
import statistics
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (n - 1; None for a single value) of `count` values."""

    mean: float
    deviation: float | None
    count: int

    @property
    def margin(self) -> float:
        """Half of the 95 % interval of the mean by Student's t; NaN for a single value."""
        if self.deviation is None:
            return math.nan
        from elman.evaluation.statistics import t_quantile

        return t_quantile(self.count) * self.deviation / math.sqrt(self.count)


def spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the finite values; None where there are none.

    Example:
        >>> spread([70.0, None, 72.0])
        Spread(mean=71.0, deviation=1.4142135623730951, count=2)
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    return Spread(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None, len(known))
