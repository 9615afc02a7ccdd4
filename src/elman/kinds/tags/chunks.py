"""Measures of chunks, counted as in the shared tasks of CoNLL by the library nervaluate.

A chunk is found where its first word, its last word and its type are right (the scheme `strict`). It begins at `B`, and
at an `I` after `O` or after another type, as in the script conlleval.
"""

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from elman.errors import UserError
from elman.evaluation.statistics import Measure, f1, precision, recall
from elman.kinds.tags.bank import is_chunk_tag


def require_nervaluate() -> Any:
    """The class that counts chunks; raises UserError where nervaluate is not installed."""
    try:
        from nervaluate import Evaluator
    except ImportError:
        raise UserError("F1 of chunks needs the package nervaluate: pip install 'elman[tags]'") from None
    return Evaluator


def chunk_measures(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> list[Measure]:
    """F1, precision and recall (percent) of the chunks of sentences, from tags in the form IOB.

    Raises UserError where nervaluate is not installed, or a tag is in another form.
    """
    evaluator, rows = require_nervaluate(), []
    for ours, theirs in zip(found, right, strict=True):
        tags = sorted({*ours, *theirs})
        if other := [tag for tag in tags if not is_chunk_tag(tag)]:
            raise UserError(f"the tag {other[0]!r} is none of B-TYPE, I-TYPE and O, which F1 of chunks needs")
        types = sorted({tag[2:] for tag in tags} - {""})
        counted = evaluator([list(theirs)], [list(ours)], tags=types, loader="list").evaluate()["overall"]["strict"]
        rows.append((counted.correct, counted.actual, counted.possible))
    counts = np.array(rows, np.float64)
    signature = f"chunks: nervaluate {metadata.version('nervaluate')}, strict (first word, last word and type)"
    return [
        Measure("chunk F1", counts, f1, signature),
        Measure("chunk precision", counts, precision, signature),
        Measure("chunk recall", counts, recall, signature),
    ]
