"""Whether lines are words and tags, in columns or joined."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from elman.data.lines import fields
from elman.kinds.tags.columns import CONLLU_COLUMNS, joined_tag, runs_on
from elman.kinds.tags.dependencies import DOCUMENT, cells_of, dependencies


def recognised(lines: Sequence[str]) -> str | None:
    """The form of data that lines look like, with those that are blank: `columns`, `conllu` or None.

    Dependency columns are `columns`. Of others tags are no numbers and no words with a mark behind, one in a hundred
    apart, and by far fewer than lines and, of a hundred lines or more, than words. Blank lines divide them into blocks
    of two words on average at least; without any, which the reader reports, words are several sentences (`runs_on`).
    """
    rows = rows_of(lines)
    numbered = re.compile(r"[0-9]+([-.][0-9]+)?\t")
    if rows and all(row.count("\t") == CONLLU_COLUMNS - 1 and numbered.match(row) for row in rows):
        return "conllu"
    if dependencies(lines):
        return "columns"
    table = in_columns(rows)
    if not table:
        return None
    there = [bool(line.strip()) for line in lines if not line.startswith(("#", DOCUMENT))]
    tags = [cells[-1] for cells in table]
    blocks = sum(here and not before for before, here in itertools.pairwise([False, *there]))
    divided = blocks >= 2 and len(rows) >= 2 * blocks
    most = 0.7 * len({cells[0] for cells in table}) if len(table) >= 100 else len(tags)
    wrong = sum(re.search(r"\s|\w[,;!?]$|^[-+.]*\d[-+.\d]*$|^$", tag) is not None for tag in tags)
    closed = len(set(tags)) <= min(most, max(2, len(tags) // 4)) and wrong <= len(tags) // 100
    return "columns" if closed and (divided or (blocks == 1 and runs_on([cells[0] for cells in table]))) else None


def in_columns(rows: Sequence[str]) -> list[list[str]]:
    """The cells of the rows that have the usual number of columns, two or more; empty where rows are not in columns.

    Of twenty rows or more one in twenty may have another number, so that a damaged file is read as what it is.
    """
    table = [cells_of(row, tabs=bool(rows) and "\t" in rows[0]) for row in rows]
    ((columns, usual),) = Counter(map(len, table)).most_common(1) or [(0, 0)]
    ragged = len(table) - usual
    if len(table) < 2 or columns < 2 or ragged > (len(table) // 20):
        return []
    return [cells for cells in table if len(cells) == columns]


def rows_of(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))]


def is_joined(rows: Sequence[str]) -> bool:
    """Whether nearly all tokens are a word and a tag, tags are no numbers and by far fewer than words."""
    tokens = [token for row in rows for token in fields(row) if token.strip("[]=")]
    tags = [pair[1] for pair in map(joined_tag, tokens) if pair]
    closed = len(set(tags)) <= max(3, len(tags) // 5) and any(tag.isalpha() for tag in tags)
    numbers = sum(tag[:1].isdigit() for tag in tags)
    return (
        len(tags) >= 6
        and len(tags) >= 0.98 * len(tokens)
        and closed
        and 10 * numbers < len(tags)
        and len(set(tags)) > 1
    )
