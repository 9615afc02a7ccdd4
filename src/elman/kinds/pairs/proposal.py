"""A recipe for pairs of the user's own."""

import re
from pathlib import Path
from typing import NamedTuple

from elman.data.kinds import Look
from elman.data.text.passages import has_words, unseparated
from elman.errors import UserError
from elman.kinds.pairs.files import find_files, read_pairs
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.table import RawPair
from elman.tasks.proposal.proposal import Proposal, changed, held_out

USUAL = 440_000, 8  # target symbols of the pairs that recipes are for, and epochs that are enough for them
SHORTER = 0.5  # a target of at most this share of the source's length is a headline rather than a translation


class PairFacts(NamedTuple):
    """Pairs, the lengths of their sides in tokens, whether spaces separate words, and marks stand apart from them."""

    pairs: int
    source: float
    target: float
    words: bool
    tokenised: bool


def pair_facts(pairs: list[RawPair]) -> PairFacts:
    sides = [" ".join(side) for side in zip(*pairs, strict=True)]
    words = all(has_words(unseparated(side), len(side)) for side in sides)
    lengths = [len(side.split() if words else side) / len(pairs) for side in sides]
    alone, attached = (len(re.findall(rule, " ".join(sides))) for rule in (r"(?<!\S)[,;?.](?!\S)", r"\w[,;?.](?!\S)"))
    return PairFacts(len(pairs), lengths[0], lengths[1], words, alone >= max(1, attached))


def proposals(found: Look, path: Path) -> list[Proposal]:
    form = found.form or "tsv"
    options = PairOptions(form=form, languages=found.languages, skip_empty=True)  # type: ignore[arg-type]
    files = find_files(path, options)
    pairs, _ = read_pairs(files.get("all") or files["train"], options)
    if len(sources := {pair.source for pair in pairs}) <= len(pairs) // 20:
        raise UserError(
            f"{path}: {len(pairs):,} pairs have {len(sources)} sources, such as {min(sources)!r}: they are labels; give"
            " the text in the first column and its label in the second"
        )
    capitals = all(pair.source.upper() == pair.source for pair in pairs)
    return [of_pairs(pair_facts(pairs), found, cut="all" in files, capitals=capitals)]


def of_pairs(facts: PairFacts, found: Look, *, cut: bool, capitals: bool = False) -> Proposal:
    """A recipe for pairs; `cut`: one file, or one pair of files, of which some pairs are held out.

    `capitals`: sources are written in capitals alone, which are folded in words with phonemes.
    """
    values = held_out(facts.pairs) if cut else {}
    if found.form == "pronunciations":
        recipe = "phonemes/small-cmudict.toml"
        reason = "words and their phonemes: from letters to phonemes, evaluated by the edit distance"
        values |= {"data.form": found.form, "data.lowercase": capitals}
        return Proposal(recipe, changed(recipe, values), (reason,))
    short = facts.target <= SHORTER * facts.source
    recipe = "headlines/small-encdec.toml" if short else "translation/small-ja-en.toml"
    values["data.tokenisation"] = "characters" if not facts.words else "words" if facts.tokenised else "raw"
    values["data.form"] = found.form or "tsv"
    if found.languages is not None:
        values["data.languages"] = list(found.languages)
    if not facts.words:
        values |= {"data.max_source": 100, "data.max_target": 100}
    reasons = ["targets are much shorter than sources: as headlines" if short else "as translation"]
    if found.languages is not None:
        source, target = found.languages
        reasons.append(
            f'from {source} to {target}; for the other direction: --set \'data.languages=["{target}","{source}"]\''
        )
    return Proposal(recipe, changed(recipe, values), tuple(reasons))
