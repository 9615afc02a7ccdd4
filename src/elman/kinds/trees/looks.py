"""What trees look like: sentences in brackets."""

import re

from elman.data.kinds import Look, Seen, looks

ORDER = 1


def claim(seen: Seen) -> Look | None:
    """Trees in brackets; before each there may be an identifier and a tab."""
    text = "\n".join(line.split("\t", 1)[-1] for line in seen.rows)
    if text.startswith("(") and len(re.findall(r"\([A-Z.,:$`'-]*\s", text)) > len(text) / 40:
        return looks("trees", "bracketed trees", "pairs", "text", "tags", form="trees")
    return None
