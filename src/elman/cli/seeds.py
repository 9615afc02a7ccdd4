"""The seed of random draws: the one that was given, or a fresh one, which is printed so that it can be given again."""

import secrets
import sys


def chosen(seed: int | None, temperature: float = 1.0) -> int:
    """The given seed, or a random one, printed; 0 where the temperature 0 leaves nothing to chance."""
    if seed is not None or temperature == 0:
        return seed or 0
    fresh = secrets.randbelow(1_000_000_000)
    print(f"seed {fresh}", file=sys.stderr)
    return fresh
