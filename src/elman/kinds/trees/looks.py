"""What trees look like: sentences in brackets."""

import re

from elman.data.kinds import Look, Seen, looks

ORDER = 1

LEAST = 0.9
"""Of the innermost brackets, how many hold two words."""

_IDENTIFIER, _INNERMOST = re.compile(r"^[^\t()]*\t(?=\s*\()"), re.compile(r"\(([^()]*)\)")


def claim(seen: Seen) -> Look | None:
    """Trees in brackets, in one line each or in several; before each there may be an identifier and a tab.

    The innermost brackets of a tree hold a part of speech and a word.
    """
    text = "\n".join(_IDENTIFIER.sub("", line).strip() for line in seen.rows)
    innermost = [inner.split() for inner in _INNERMOST.findall(text)]
    words = sum(len(inner) == 2 for inner in innermost)
    if text.startswith("(") and words > LEAST * len(innermost) and words > len(text) / 80:
        return looks("trees", "bracketed trees", "pairs", "text", "tags", form="trees")
    return None
