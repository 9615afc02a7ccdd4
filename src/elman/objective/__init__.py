"""What training minimises, and the unit in which losses are reported."""

import math


def perplexity(nll: float) -> float:
    """Exp of an NLL (nats per token), at most exp(700) so that it does not overflow.

    Example:
        >>> round(perplexity(4.0), 2)
        54.6
    """
    return math.exp(min(nll, 700.0))
