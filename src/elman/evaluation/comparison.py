"""Is one model really better than another? A paired test on the tokens of one text."""

import math

import msgspec
import numpy as np


class Comparison(msgspec.Struct, frozen=True):
    """What a paired comparison of models A and B found; differences are NLL(A) - NLL(B), so positive means B is better.

    Attributes:
        tokens: how many tokens were compared.
        difference: mean difference in nats a token.
        low, high: its 95 % interval.
        p_value: two-sided, of no difference.
        ratio: perplexity(A) / perplexity(B).
        better: the share of tokens that B predicts better.

    """

    tokens: int
    difference: float
    low: float
    high: float
    p_value: float
    ratio: float
    better: float


def compare(a: np.ndarray, b: np.ndarray, block: int = 100) -> Comparison:
    """Compare per-token log-probabilities (nats) of one text under two models.

    Neighbouring tokens share their context, so the test is on the means of blocks of tokens, which are close to
    independent; with many blocks their mean is normal.

    Args:
        a: log-probabilities [n] under A.
        b: log-probabilities [n] of the same tokens under B.
        block: tokens a block; shorter texts are cut into at least thirty blocks.

    """
    assert a.shape == b.shape
    counted = ~(np.isnan(a) | np.isnan(b))
    differences = (b.astype(np.float64) - a.astype(np.float64))[counted]
    blocks = np.array_split(differences, max(2, min(len(differences), max(30, len(differences) // block))))
    means = np.array([part.mean() for part in blocks])
    mean = float(differences.mean())
    error = float(means.std(ddof=1) / math.sqrt(len(means)))
    z = abs(mean) / error if error else (0.0 if mean == 0 else math.inf)
    return Comparison(
        tokens=len(differences),
        difference=mean,
        low=mean - 1.96 * error,
        high=mean + 1.96 * error,
        p_value=math.erfc(z / math.sqrt(2)),
        ratio=math.exp(mean),
        better=float((differences > 0).mean()),
    )
