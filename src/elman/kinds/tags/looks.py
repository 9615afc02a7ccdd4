"""What sentences with tags look like: words and tags in columns, and CoNLL-U."""

import re
from collections import Counter

from elman.data.kinds import Look, Seen, looks

ORDER, SUFFIXES = 0, (".tsv",)

_HEADING = re.compile(r"(?i:words?|tokens?|form)\W*[\t,;]|[\t,;]\W*(?i:words?|tokens?|form)")


def claim(seen: Seen) -> Look | None:
    """Words and tags in columns, sentences divided by blank lines."""
    if not _may_be_tagged(seen):
        return None
    from elman.kinds.tags.columns import table_of_tags
    from elman.kinds.tags.dependencies import other_form
    from elman.kinds.tags.recognition import is_joined, recognised

    if unread := other_form(seen.lines):
        return Look(None, unread, frozenset(("text",)))
    if table_of_tags(seen.lines, cut=True):
        return looks("tags", "a table of words and tags", "text", "series", "pairs", form="columns")
    form = recognised(seen.lines) or ("joined" if is_joined(seen.rows) else None)
    what = {
        "columns": "words and tags in columns",
        "joined": "words with their tags (word_TAG)",
        "conllu": "words and tags in the form CoNLL-U",
    }
    return looks("tags", what[form], "text", "pairs", form=form) if form else None


def reads(seen: Seen, found: Look) -> bool:  # noqa: ARG001 - whatever else it is
    """Whether there are lines, blank ones and comments left out, in columns."""
    if not _may_be_tagged(seen):
        return False
    from elman.kinds.tags.recognition import in_columns, rows_of

    return bool(in_columns(rows_of(seen.lines)))


def _may_be_tagged(seen: Seen) -> bool:
    """Whether a third of the rows have as many cells as others, or most words have a mark, or a heading names words."""
    rows = seen.rows
    widths = [Counter(len(row.split(mark)) for row in rows if not row.startswith("#")) for mark in ("\t", None)]
    even = any(3 * count >= len(rows) for one in widths for width, count in one.items() if width > 1)
    marks, words = sum(map(seen.text.count, "_/|(")), len(seen.text.split())
    return even or 2 * marks >= max(1, words) or any(_HEADING.search(row) for row in rows[:1])
