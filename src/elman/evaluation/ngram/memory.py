"""How much memory the estimation of an n-gram model takes, known before it begins."""

import os
import re
from pathlib import Path

from elman.errors import UserError

BYTES = 45
"""Bytes for each token and each length of n-grams, at most: 40 to 43 on words drawn independently of each other, of
which hardly any longer n-gram repeats; a text takes less."""


def needed(tokens: int, order: int) -> int:
    """Bytes that the n-grams of a text take at most, about."""
    return BYTES * tokens * order


def available() -> int | None:
    """Bytes of memory that are free, or all there are where that is not known; None where neither is."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
        if found is not None:
            return int(found[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def require(tokens: int, order: int) -> None:
    """Raises UserError where the n-grams of a text may need more memory than is free."""
    free = available()
    if free is not None and needed(tokens, order) > free:
        raise UserError(
            f"n-grams up to {order} words of {tokens:,} tokens take up to {needed(tokens, order) / 1e9:.1f} GB of"
            f" memory, and {free / 1e9:.1f} GB are free; lower the order, read a part of the text, or estimate the"
            " model with a program that sorts on disk, such as lmplz of KenLM, whose ARPA file is read here"
        )
