"""What every certificate says: a value against a limit, what follows if it holds, and what does not."""

import msgspec


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """One condition on one layer.

    Attributes:
        tier: 0 to 3.
        layer: 1 is the lowest; 0 stands for the whole network.
        name: the quantity.
        value: what was found.
        limit: the condition is value < limit.
        proves: what follows when it holds.
        does_not: what does not follow all the same.

    """

    tier: int
    layer: int
    name: str
    value: float
    limit: float
    proves: str
    does_not: str

    @property
    def holds(self) -> bool:
        """Whether the condition is met."""
        return self.value < self.limit
