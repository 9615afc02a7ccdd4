"""What trees look like: sentences in brackets."""

import re

from elman.data.kinds import HEAD, Look, Seen, looks
from elman.data.lines import lines_of

ORDER = 1

_LABEL = r"\([^\s()]{0,24}\s"


def claim(seen: Seen) -> Look | None:
    """Trees in round or square brackets, labels in any case; an identifier and a tab, and blanks, may precede each.

    Most brackets open a constituent with its label, and most words stand in brackets of their own; there are two or
    more unless the beginning of a large file has not reached them. A last line that is cut counts too. Up to a tenth
    of the text may be of another form, such as comments, which the reader reports.
    """
    if 6 * max(map(seen.text.count, "([")) <= len(seen.text.split()):
        return None  # fewer brackets than trees have
    from elman.data.trees.brackets import in_parentheses

    lines = lines_of(in_parentheses(seen.text))
    text = "\n".join(line.split("\t", 1)[-1] if "(" in line else line for line in lines)
    opened, words = text.count("("), len(re.findall(r"\([^\s()]+[ \t]+[^\s()]+\)", text, re.ASCII))
    labelled = len(re.findall(_LABEL, text, re.ASCII))
    tokens = len(re.findall(r"[^\s()]+", text, re.ASCII))
    if (
        opened > words >= (2 if len(seen.head) < HEAD else 0)
        and labelled >= 0.9 * opened
        and 2 * words + labelled > 0.9 * tokens
    ):
        return looks("trees", "bracketed trees", "pairs", "text", "tags", form="trees")
    return None
