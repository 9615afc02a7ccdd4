"""The reader of grammar files; every mistake is reported in one line."""

import dataclasses
import itertools
import re
from pathlib import Path
from typing import NamedTuple

from elman.data.grammar.rules import Alternative, Draft, Grammar, Part
from elman.data.lines import lines_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError

FOLDER = Path(__file__).parent

_SYMBOL = re.compile(r"([A-Za-z][\w-]*)(?:\[(\w+)\])?")
_WEIGHT = re.compile(r"\((\d+(?:\.\d*)?|\.\d+)\)")
_HEADS = ("start", "number", "nouns", "verbs", "embedding")


def shipped() -> list[str]:
    """The names of the grammars that come with elman."""
    return sorted(path.stem for path in FOLDER.glob("*.grammar"))


def read_grammar(name: str) -> Grammar:
    """A grammar that comes with elman, or the one of a file.

    Raises UserError where there is none, or a line of it is wrong.
    """
    path = FOLDER / f"{name}.grammar" if name in shipped() else Path(name)
    return parse_grammar(read_text(path, f"give a file of rules, or one of {', '.join(shipped())}"), name)


def parse_grammar(text: str, name: str = "grammar") -> Grammar:
    """A grammar from the text of its file; `name` names it in messages.

    Raises UserError where a line is wrong; the message names it and what is allowed.
    """
    reader = _Reader(name)
    for number, line in enumerate(lines_of(text), start=1):
        if line.partition("#")[0].strip():
            reader.read(number, line.partition("#")[0].strip())
    return reader.grammar(text)


class _Name(NamedTuple):
    base: str
    bracket: str | None


_Choice = tuple[list[_Name], float]
"""The names of an alternative, and its weight."""


@dataclasses.dataclass
class _Reader:
    name: str
    heads: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    rules: list[tuple[int, _Name, list[_Choice]]] = dataclasses.field(default_factory=list)
    lexicon: list[tuple[int, _Name, dict[str, float]]] = dataclasses.field(default_factory=list)

    def read(self, line: int, text: str) -> None:
        tokens = text.split()
        if tokens[0] in _HEADS and "->" not in tokens and ":" not in tokens:
            if tokens[0] in self.heads:
                raise self.wrong(line, f"{tokens[0]} appears twice; write it once")
            if len(tokens) < 2:
                raise self.wrong(line, f"{tokens[0]} names nothing; write for example: {tokens[0]} S")
            self.heads[tokens[0]] = tokens[1:]
        elif len(tokens) > 2 and tokens[1] == "->":
            choices = [self._choice(line, part.split()) for part in " ".join(tokens[2:]).split("|")]
            self.rules.append((line, self._symbol(line, tokens[0]), choices))
        elif len(tokens) > 2 and tokens[1] == ":":
            self.lexicon.append((line, self._symbol(line, tokens[0]), self._words(line, tokens[2:])))
        else:
            allowed = f"LEFT -> SYMBOLS | SYMBOLS, LEFT : WORDS, or one of {', '.join(_HEADS)}"
            raise self.wrong(line, f"cannot read {text!r}; write {allowed}")

    def grammar(self, text: str) -> Grammar:
        """All lines together, every variable replaced by every value."""
        values = self.heads.get("number", ["sg", "pl"])
        if len(values) != 2 or values[0] == values[1]:
            raise UserError(f"{self.name}: number has {' '.join(values)}; write two different values: number sg pl")
        draft = Draft(self.name, text, self.heads, values)
        for line, left, found in self.lexicon:
            for value in self._values(left, values):
                symbol = _spell(left, {left.bracket: value})
                if symbol in draft.words:
                    raise self.wrong(line, f"the words of {symbol} stand in line {draft.lines[symbol]} already")
                draft.words[symbol] = {word: weight / sum(found.values()) for word, weight in found.items()}
                draft.lines[symbol] = line
        for line, left, choices in self.rules:
            for value in self._values(left, values):
                symbol = _spell(left, {left.bracket: value})
                defined = draft.lines.setdefault(symbol, line)
                if symbol in draft.words:
                    raise self.wrong(line, f"{symbol} has words in line {defined}; it cannot have rules as well")
                for choice in choices:
                    draft.rules.setdefault(symbol, []).extend(_expand(choice, left.bracket, value, values))
        return draft.check()

    def wrong(self, line: int, message: str) -> UserError:
        return UserError(f"{self.name}:{line}: {message}")

    def _values(self, name: _Name, values: list[str]) -> list[str]:
        """The possible numbers of a left side; one empty value where it has none."""
        if name.bracket is None:
            return [""]
        return [name.bracket] if name.bracket in values else values

    def _symbol(self, line: int, token: str) -> _Name:
        found = _SYMBOL.fullmatch(token)
        if not found:
            raise self.wrong(line, f"{token!r} is not a symbol; write a name, or a name and its number such as NP[n]")
        return _Name(found[1], found[2])

    def _choice(self, line: int, tokens: list[str]) -> _Choice:
        weight = 1.0
        if tokens and _WEIGHT.fullmatch(tokens[-1]):
            weight = self._weight(line, tokens.pop())
        if not tokens:
            raise self.wrong(line, "an alternative is empty; write at least one symbol on each side of |")
        return [self._symbol(line, token) for token in tokens], weight

    def _words(self, line: int, tokens: list[str]) -> dict[str, float]:
        words: dict[str, float] = {}
        for token in tokens:
            if token.startswith("(") and words:
                words[next(reversed(words))] = self._weight(line, token)
            elif token in words or token in ("<eos>", "<unk>"):
                raise self.wrong(line, f"the word {token!r} appears twice or is reserved; write each word once")
            else:
                words[token] = 1.0
        return words

    def _weight(self, line: int, token: str) -> float:
        found = _WEIGHT.fullmatch(token)
        if not found or float(found[1]) <= 0:
            raise self.wrong(line, f"{token!r} is not a weight; write a positive number in parentheses such as (0.25)")
        return float(found[1])


def _spell(name: _Name, values: dict[str | None, str]) -> str:
    return name.base if name.bracket is None else f"{name.base}[{values[name.bracket]}]"


def _expand(choice: _Choice, bracket: str | None, value: str, values: list[str]) -> list[Alternative]:
    """A choice for one value of the left side; a variable of the right side alone takes every value, equally often."""
    names, weight = choice
    free = [name for name in dict.fromkeys(name.bracket for name in names) if name is not None and name != bracket]
    bonds: dict[str | None, int] = {name: bond for bond, name in enumerate([bracket, *free]) if name is not None}
    drawn = itertools.product(*([name] if name in values else values for name in free))
    bindings = [{bracket: value, **dict(zip(free, each, strict=True))} for each in drawn]
    return [
        Alternative(
            tuple(Part(_spell(name, binding), bonds.get(name.bracket)) for name in names),
            weight / len(bindings),
        )
        for binding in bindings
    ]
