"""The reader of grammar files; every mistake is reported in one line."""

import itertools
import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, NoReturn

from elman.data.grammar.rules import Alternative, Grammar, Part
from elman.data.lines import fields, lines_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError

FOLDER = Path(__file__).parent

_SYMBOL = re.compile(r"([A-Za-z][\w-]*)(?:\[(\w+)\])?")
_WEIGHT = re.compile(r"\((\d+(?:\.\d*)?|\.\d+)\)")
_HEADS = ("start", "number", "nouns", "verbs", "embedding")


def shipped() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.grammar"))


def read_grammar(name: str) -> Grammar:
    """A grammar that comes with elman, or the one of a file.

    Raises UserError where there is none, or a line of it is wrong.
    """
    path = FOLDER / f"{name}.grammar" if name in shipped() else Path(name)
    return parse_grammar(read_text(path, f"give a file of rules, or one of {', '.join(shipped())}"), name)


def parse_grammar(text: str, name: str = "grammar") -> Grammar:
    """A grammar from the text of its file; `name` names it in messages.

    Raises UserError where a line is wrong, a symbol is undefined, can begin with itself or never ends, or a verb lacks
    a partner; the message names the line and what is allowed.
    """
    reader = _Reader(name)
    for number, line in enumerate(lines_of(text), start=1):
        if content := line.partition("#")[0].strip():
            reader.read(number, content)
    reader.expand()
    return reader.checked(text)


class _Name(NamedTuple):
    base: str
    bracket: str | None

    def spelt(self, values: dict[str | None, str]) -> str:
        return self.base if self.bracket is None else f"{self.base}[{values[self.bracket]}]"


_Choice = tuple[list[_Name], float]
"""The names of an alternative, and its weight."""


class _Reader:
    """Lines as they are read, and what they give for every number: alternatives with weights, probabilities of words.

    `lines` has the line that defines a symbol, `heads` the symbols after `start`, `nouns`, `verbs` and `embedding`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.heads: dict[str, list[str]] = {}
        self.choices: list[tuple[int, _Name, list[_Choice]]] = []
        self.lexicon: list[tuple[int, _Name, dict[str, float]]] = []
        self.values: list[str] = []
        self.rules: dict[str, list[Alternative]] = {}
        self.words: dict[str, dict[str, float]] = {}
        self.lines: dict[str, int] = {}

    def read(self, line: int, text: str) -> None:
        tokens = fields(text)
        if tokens[0] in _HEADS and "->" not in tokens and ":" not in tokens:
            if tokens[0] in self.heads:
                self._refuse(line, f"{tokens[0]} appears twice; write it once")
            if len(tokens) < 2:
                self._refuse(line, f"{tokens[0]} names nothing; write for example: {tokens[0]} S")
            self.heads[tokens[0]] = tokens[1:]
        elif len(tokens) > 2 and tokens[1] == "->":
            choices = [self._choice(line, fields(part)) for part in " ".join(tokens[2:]).split("|")]
            self.choices.append((line, self._symbol(line, tokens[0]), choices))
        elif len(tokens) > 2 and tokens[1] == ":":
            self.lexicon.append((line, self._symbol(line, tokens[0]), self._words(line, tokens[2:])))
        else:
            allowed = f"LEFT -> SYMBOLS | SYMBOLS, LEFT : WORDS, or one of {', '.join(_HEADS)}"
            self._refuse(line, f"cannot read {text!r}; write {allowed}")

    def _symbol(self, line: int, token: str) -> _Name:
        found = _SYMBOL.fullmatch(token)
        if not found:
            self._refuse(line, f"{token!r} is not a symbol; write a name, or a name and its number such as NP[n]")
        return _Name(found[1], found[2])

    def _choice(self, line: int, tokens: list[str]) -> _Choice:
        weight = self._weight(line, tokens.pop()) if tokens and _WEIGHT.fullmatch(tokens[-1]) else 1.0
        if not tokens:
            self._refuse(line, "an alternative is empty; write at least one symbol on each side of |")
        return [self._symbol(line, token) for token in tokens], weight

    def _words(self, line: int, tokens: list[str]) -> dict[str, float]:
        words: dict[str, float] = {}
        for token in tokens:
            if token.startswith("(") and words:
                words[next(reversed(words))] = self._weight(line, token)
            elif token in words or token in ("<eos>", "<unk>"):
                self._refuse(line, f"the word {token!r} appears twice or is reserved; write each word once")
            else:
                words[token] = 1.0
        return words

    def _weight(self, line: int, token: str) -> float:
        found = _WEIGHT.fullmatch(token)
        if not found or float(found[1]) <= 0:
            self._refuse(line, f"{token!r} is not a weight; write a positive number in parentheses such as (0.25)")
        return float(found[1])

    def _refuse(self, place: int | str, message: str) -> NoReturn:
        """Raises UserError for a line, or the one that defines a symbol."""
        line = place if isinstance(place, int) else self.lines[place]
        raise UserError(f"{self.name}:{line}: {message}")

    def expand(self) -> None:
        """Take all lines together, every variable replaced by every value."""
        self.values = values = self.heads.get("number", ["sg", "pl"])
        if len(values) != 2 or values[0] == values[1]:
            raise UserError(f"{self.name}: number has {' '.join(values)}; write two different values: number sg pl")
        for line, left, found in self.lexicon:
            for value in self._values_of(left):
                symbol = left.spelt({left.bracket: value})
                if symbol in self.words:
                    self._refuse(line, f"the words of {symbol} stand in line {self.lines[symbol]} already")
                self.words[symbol] = {word: weight / sum(found.values()) for word, weight in found.items()}
                self.lines[symbol] = line
        for line, left, choices in self.choices:
            for value in self._values_of(left):
                symbol = left.spelt({left.bracket: value})
                defined = self.lines.setdefault(symbol, line)
                if symbol in self.words:
                    self._refuse(line, f"{symbol} has words in line {defined}; it cannot have rules as well")
                for choice in choices:
                    self.rules.setdefault(symbol, []).extend(_expand(choice, left.bracket, value, values))

    def _values_of(self, left: _Name) -> list[str]:
        """The possible numbers of a left side; one empty value where it has none."""
        if left.bracket is None:
            return [""]
        return [left.bracket] if left.bracket in self.values else self.values

    def checked(self, text: str) -> Grammar:
        """The grammar, its weights scaled to probabilities."""
        for left, alternatives in self.rules.items():
            for symbol in (part.symbol for one in alternatives for part in one.parts):
                if symbol not in self.rules and symbol not in self.words:
                    advice = f"write a line {symbol} -> SYMBOLS or {symbol} : WORDS"
                    self._refuse(left, f"{left} needs {symbol}, which is not defined; {advice}")
        start = self.heads.get("start", ["S"])
        if len(start) != 1 or start[0] not in self.rules:
            advice = f"write one: {start[0]} -> SYMBOLS"
            raise UserError(f"{self.name}: the start symbol {' '.join(start)} has no rules; {advice}")
        self._require_ends()
        embedding = self._symbols("embedding", {**self.rules, **self.words})
        nouns, verbs = (self._symbols(kind, self.words) for kind in ("nouns", "verbs"))
        number = {symbol: value for symbol in self.lines for value in self.values if symbol.endswith(f"[{value}]")}
        for symbol in sorted(nouns | verbs):
            if symbol not in number:
                self._refuse(symbol, f"{symbol} has no number; write {symbol}[{self.values[0]}] : WORDS")
        totals = {symbol: sum(one.probability for one in found) for symbol, found in self.rules.items()}
        rules = {
            symbol: tuple(Alternative(parts, weight / totals[symbol]) for parts, weight in found)
            for symbol, found in self.rules.items()
        }
        partners = self._partners(verbs)
        grammar = Grammar(self.name, text, start[0], rules, self.words, number, nouns, verbs, embedding, partners)
        for symbol, alternatives_ in rules.items():
            if all(map(grammar.embeds, alternatives_)):
                advice = "add one that does not, so that sentences can end"
                self._refuse(symbol, f"every alternative of {symbol} opens a clause; {advice}")
        return grammar

    def _require_ends(self) -> None:
        """Raises UserError with left recursion, where expansion finds no first word, or where a symbol never ends."""
        rules, ends = self.rules, set(self.words)
        firsts = {left: {one.parts[0].symbol for one in found} & rules.keys() for left, found in rules.items()}
        for left in rules:
            reached = firsts[left]
            while grown := {first for symbol in reached for first in firsts[symbol]} - reached:
                reached = reached | grown
            if left in reached:
                advice = "put the recursion at the right, as in NP[n] -> N[n] PP"
                self._refuse(left, f"{left} can begin with itself; {advice}")
        while grown := {
            left
            for left, found in rules.items()
            if left not in ends and any(all(part.symbol in ends for part in one.parts) for one in found)
        }:
            ends |= grown
        for left in rules:
            if left not in ends:
                self._refuse(left, f"{left} never ends; give it an alternative of words alone")

    def _symbols(self, kind: str, defined: Collection[str]) -> frozenset[str]:
        """The symbols of a kind: the named ones with each of their numbers."""
        bases = self.heads.get(kind, [])
        found = {base: [symbol for symbol in defined if symbol.partition("[")[0] == base] for base in bases}
        for base, symbols in found.items():
            if not symbols:
                what = "is not defined" if kind == "embedding" else "has no words"
                raise UserError(f"{self.name}: {kind} names {base}, which {what}; there are {', '.join(defined)}")
        return frozenset(symbol for symbols in found.values() for symbol in symbols)

    def _partners(self, verbs: frozenset[str]) -> dict[tuple[str, str], str]:
        partners: dict[tuple[str, str], str] = {}
        for verb in sorted(verbs):
            base, one = verb.partition("[")[0], verb.endswith(f"[{self.values[0]}]")
            other = f"{base}[{self.values[1] if one else self.values[0]}]"
            words, forms = self.words[verb], self.words.get(other, {})
            if len(forms) != len(words):
                advice = "write the two forms of every verb, in the same order"
                self._refuse(verb, f"{verb} has {len(words)} words and {other} {len(forms)}; {advice}")
            partners |= {(verb, word): form for word, form in zip(words, forms, strict=True)}
        return partners


def _expand(choice: _Choice, bracket: str | None, value: str, values: list[str]) -> list[Alternative]:
    """A choice for one value of the left side; a variable of the right side alone takes every value, equally often."""
    names, weight = choice
    free = [name for name in dict.fromkeys(name.bracket for name in names) if name is not None and name != bracket]
    bonds: dict[str | None, int] = {name: bond for bond, name in enumerate([bracket, *free]) if name is not None}
    drawn = itertools.product(*([name] if name in values else values for name in free))
    bindings = [{bracket: value, **dict(zip(free, each, strict=True))} for each in drawn]
    return [
        Alternative(tuple(Part(name.spelt(one), bonds.get(name.bracket)) for name in names), weight / len(bindings))
        for one in bindings
    ]
