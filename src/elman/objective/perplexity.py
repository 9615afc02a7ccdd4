"""Units of loss."""

import math


def perplexity(nll: float) -> float:
    """Exp of nats a token; what would overflow is cut off at exp(700).

    Example:
        >>> round(perplexity(4.0), 2)
        54.6

    """
    return math.exp(min(nll, 700.0))
