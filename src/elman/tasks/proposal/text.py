"""How a text of the user's own is read: rules from facts to settings."""

import math
from collections.abc import Sequence
from typing import Any

from elman.config.toml import flatten, with_settings
from elman.data.text.facts import TextFacts
from elman.tasks.proposal.proposal import Proposal, changed

FEW_LINES = 40
"""Lines, or paragraphs, that a text has at least where it is cut by them; otherwise it is read without ends."""

LONG_LINE = 0.04  # share of a text that its longest line has at most; a longer one could swallow a split
HELD_OUT = 50_000  # tokens of the validation split, and of the test split, at most; they are 5 % of smaller texts
MIN_COUNT = ((500_000, 2), (5_000_000, 3), (math.inf, 5))
"""Tokens, and for shorter texts how often a word has to occur in order not to be unknown."""

VOCABULARY = 30_000  # words at most


def as_read(facts: TextFacts, given: Sequence[str]) -> TextFacts:
    """The facts of a text; where the user asks for its characters or bytes, or most words are rare, as without words.

    Its tokens are then as many as its bytes.
    """
    tokenisation = dict(flatten(with_settings({}, given))).get("data.tokenisation")
    if facts.words and (tokenisation in ("characters", "bytes") or (facts.rare and tokenisation is None)):
        return facts._replace(words=False, wrapped=False, tokenised=False, unknown=False, tokens=facts.size)
    return facts if tokenisation in (None, "raw") else facts._replace(elisions=False)


def reading(facts: TextFacts, *, cut: bool = True, given: Sequence[str] = ()) -> Proposal:
    """How a text is read: its tokens, where a sequence ends, its vocabulary; `cut`: one file that has to be cut.

    `given` are settings of the user's own.
    """
    recipe = "text/prose.toml" if facts.words else "text/characters.toml"
    eos, reason = _ends(facts)
    values: dict[str, Any] = {"data.eos": eos}
    if not facts.words:
        why = "most words occur once" if facts.rare else "no spaces between words"
        tokens = f"{why}: characters{', marks of ruby removed' if facts.ruby else ''}"
        values["data.ruby"] = "remove" if facts.ruby else "keep"
    else:
        how = "marks stand apart: tokenised already" if facts.tokenised else "ordinary text: marks are split off words"
        tokens = f"{how}, capitals are kept"
        values["data.elisions"] = facts.elisions and not facts.tokenised
        whole = "data.tokenisation=subwords" in given  # whose vocabulary is never cut
        count = 1 if whole else next(count for limit, count in MIN_COUNT if facts.tokens < limit)
        values["data.tokenisation"] = "words" if facts.tokenised else "raw"
        values["data.min_count"] = 1 if facts.unknown else count
        if facts.tokens >= MIN_COUNT[0][0] and not whole:
            values["data.max_vocabulary"] = VOCABULARY
    proposal = Proposal(recipe).under(given).because(tokens, "data.tokenisation", "data.lowercase", "data.ruby")
    if values.get("data.elisions"):
        proposal = proposal.because("an apostrophe before a letter ends a word (l' homme)", "data.elisions")
    if cut and (share := float(f"{min(0.05, HELD_OUT / facts.tokens):.1g}")) < 0.05:
        held_out = {"data.valid_fraction": share, "data.test_fraction": share}
        values |= held_out
        what = f"{share:.2g} of the text is held out for validation, as much for the test"
        proposal = proposal.because(what, *held_out)
    return proposal.because(reason, "data.eos").adding(changed(recipe, values))


def _ends(facts: TextFacts) -> tuple[str, str]:
    if facts.lines < FEW_LINES or facts.longest > LONG_LINE:
        return "none", "few and long lines: read as one sequence without ends"
    if not facts.words:
        return "exact", "every line break is a symbol"
    if not facts.wrapped or facts.tokenised:
        return "line", "lines are units (verse, sentences or paragraphs): each has an end"
    if facts.blocks < FEW_LINES:
        return "none", "wrapped prose with few blank lines: read as one sequence without ends"
    return "paragraph", "wrapped prose: paragraphs end at blank lines"
