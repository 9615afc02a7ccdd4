"""Minimal pairs from a template: slots whose words have features, and one slot that agrees with another."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elman.data.minimal_pairs import Pair
from elman.data.text.utf8 import read_text
from elman.errors import UserError
from elman.formats import parse_toml

MOST = 200_000  # pairs of one template at most
_SLOT = re.compile(r"\{([^{}\s]+)\}")


def template_pairs(path: Path) -> Iterator[Pair]:
    """All pairs of a TOML file, its conditions crossed with all its words; docs/evaluation.md describes the form.

    The good sentence has the agreeing slot in the value of the slot that it agrees with, the bad one the same word in
    another value. Every slot with values is a column, and `condition` is all of them. Raises UserError where the file
    is no template.
    """
    try:
        raw = parse_toml(read_text(path))
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    text, slots = raw.get("text"), raw.get("slots")
    if not isinstance(text, str) or not isinstance(slots, dict):
        raise UserError(f'{path}: not a template; write text = "The {{noun}} {{verb}} ." and a table for each slot')
    names = list(dict.fromkeys(_SLOT.findall(text)))
    forms = {name: _forms(path, name, slots.get(name)) for name in names}
    tables = {name: slots[name] for name in names if isinstance(slots[name], dict)}
    agreeing = {name: slot["agrees"] for name, slot in tables.items() if "agrees" in slot}
    if len(agreeing) != 1 or not set(agreeing.values()) <= forms.keys() - agreeing.keys():
        raise UserError(f'{path}: one slot needs agrees = "NAME", the name of another slot of the text')
    ((target, source),) = agreeing.items()
    mine, theirs = (", ".join(forms[name]) for name in (target, source))
    if mine != theirs or len(forms[target]) < 2:
        raise UserError(
            f"{path}: {target} has the values {mine} and {source} {theirs}; give both the same, two or more"
        )
    free = [name for name in names if name != target]
    varied = [name for name in free if len(forms[name]) > 1]
    count = max(len(words) for words in forms[target].values())
    total = count
    for name in free:
        total *= sum(map(len, forms[name].values()))
    if total > MOST:
        raise UserError(f"{path}: {total:,} pairs; give fewer words, {MOST:,} pairs at most")
    choices = [[(value, word) for value, words in forms[name].items() for word in words] for name in free]
    for number, (place, chosen) in enumerate(itertools.product(range(count), itertools.product(*choices)), start=1):
        values = {name: value for name, (value, _) in zip(free, chosen, strict=True) if name in varied}
        words = {name: word for name, (_, word) in zip(free, chosen, strict=True)}
        right = values[source]
        wrong = [value for value in forms[target] if value != right]
        others = (*values.items(), *((("condition", " ".join(values.values())),) if len(values) > 1 else ()))
        for value in wrong:
            good, bad = (_filled(text, words | {target: forms[target][one][place]}) for one in (right, value))
            yield Pair(good, bad, str(raw.get("phenomenon", path.stem)), item=str(number), others=others)


def _forms(path: Path, name: str, slot: Any) -> dict[str, list[str]]:
    """The words of a slot by their value; a list gives none."""
    found = {"": slot} if isinstance(slot, list) else slot
    if isinstance(found, dict):
        found = {value: words for value, words in found.items() if value != "agrees"}
        if found and all(isinstance(words, list) and words for words in found.values()):
            if len({len(words) for words in found.values()}) == 1:
                return {value: list(map(str, words)) for value, words in found.items()}
            raise UserError(f"{path}: slots.{name}: its lists differ in length; give a form of each word in each")
    raise UserError(f'{path}: slots.{name}: give a list of words, or one for each value, such as singular = ["author"]')


def _filled(text: str, words: dict[str, str]) -> str:
    return " ".join(_SLOT.sub(lambda found: words[found[1]], text).split())
