"""The reader of grammar files; every mistake is reported in one line, with its line, column and text."""

import itertools
import re
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

from elman.data.grammar.rules import Alternative, Grammar, Name, Part, Rule, Token, Values, endless, left_recursion
from elman.data.lines import lines_of
from elman.data.text.utf8 import read_text
from elman.errors import UserError, counted, notice

FOLDER = Path(__file__).parent

_LINE = re.compile(r"([^ \t\[]+?(?:\[[^\]]*\])?)[ \t\f\v]*(->|:)(?:[ \t\f\v]+|$)")
_TOKEN = re.compile(r"\||\([^\s|]*|[^\s|\[(]+\[[^\]|]*\]|[^\s|]+")
_WORD = re.compile(r"[^ \t\r\f\v]+")
_SYMBOL = re.compile(r"([^\W\d_][\w-]*)(?:\[(\s*\w+\s*(?:,\s*\w+\s*)*)\])?")
_WEIGHT = re.compile(r"\((\d+(?:\.\d*)?|\.\d+)\)")
_HEADS = {
    "start": "start", "feature": "feature", "number": "feature", "controllers": "controllers", "targets": "targets",
    "nouns": "controllers", "verbs": "targets", "embedding": "embedding",
}  # fmt: skip
"""The words that begin a line which is no rule, and what they mean."""


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

    Raises UserError where a line is wrong, a symbol is undefined, can begin with itself or never ends, or a target
    lacks a form; the message names line and column and what is allowed. A notice names rules that nothing uses.
    """
    reader = _Reader(name)
    for number, line in enumerate(lines_of(text), start=1):
        reader.read(number, line.partition("#")[0])
    reader.expand()
    return reader.checked(text)


class _Reader:
    """Lines as they are read, and what they give for all values: alternatives with weights, probabilities of words.

    `heads` has what stands after `start`, `controllers`, `targets` and `embedding`, `places` where a symbol is defined,
    `uses` where it is needed first, by which symbol.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.heads: dict[str, list[Token]] = {}
        self.said: dict[str, str] = {}
        self.features: dict[str, tuple[str, ...]] = {}
        self.declared: dict[str, Token] = {}
        self.choices: list[Rule] = []
        self.lexicon: list[tuple[Token, dict[str, float]]] = []
        self.rules: dict[str, list[Alternative]] = {}
        self.words: dict[str, dict[str, float]] = {}
        self.values: dict[str, dict[str, str]] = {}
        self.places: dict[str, Token] = {}
        self.uses: dict[str, tuple[str, Token]] = {}
        self.defined: dict[Token, list[str]] = {}

    def read(self, line: int, text: str) -> None:
        tokens = [Token(found[0], line, found.start() + 1) for found in _WORD.finditer(text)]
        if not tokens:
            return
        start = tokens[0].column - 1
        if found := _LINE.match(text, start):
            left, rest = Token(found[1], line, start + 1), Token(text[found.end() :], line, found.end())
            if not rest.text.strip():
                what = "SYMBOLS" if found[2] == "->" else "WORDS"
                self._refuse(left, f"{left.text} has nothing after {found[2]}; write {left.text} {found[2]} {what}")
            if found[2] == "->":
                self._rule(left, rest)
            else:
                words = [Token(each[0], line, rest.column + each.start() + 1) for each in _WORD.finditer(rest.text)]
                self.lexicon.append((left, self._words(words)))
        elif tokens[0].text in _HEADS:
            self._head(*tokens)
        else:
            allowed = f"LEFT -> SYMBOLS | SYMBOLS, LEFT : WORDS, or one of {', '.join(_HEADS)}"
            self._refuse(tokens[0], f"cannot read {text.strip()!r}; write {allowed}")

    def _head(self, first: Token, *rest: Token) -> None:
        kind = _HEADS[first.text]
        if kind != "feature" and kind in self.heads:
            self._refuse(first, f"{first.text} appears twice; write it once")
        if not rest and first.text != "number":
            example = "feature gender f m" if kind == "feature" else f"{first.text} S"
            self._refuse(first, f"{first.text} names nothing; write for example: {example}")
        if kind != "feature":
            self.heads[kind], self.said[kind] = list(rest), first.text
            return
        named, values = (first, rest) if first.text == "number" else (rest[0], rest[1:])
        names = tuple(value.text for value in values)
        if len(names) < 2 or len(set(names)) < len(names):
            self._refuse(
                named,
                f"{named.text} has {' '.join(names) or 'no values'}; write two different values or more:"
                f" {'' if named is first else 'feature '}{named.text} {'sg pl' if named is first else 'A B'}",
            )
        for token in (named, *values):
            owner = next((feature for feature, those in self.features.items() if token.text in (feature, *those)), None)
            if not re.fullmatch(r"\w+", token.text) or owner is not None:
                what = "is not a name" if owner is None else f"is a name of {owner} already"
                self._refuse(token, f"{token.text!r} {what}; write letters, digits and _, another name for each")
        self.features[named.text], self.declared[named.text] = names, named

    def _rule(self, left: Token, rest: Token) -> None:
        tokens = [Token(each[0], rest.line, rest.column + each.start() + 1) for each in _TOKEN.finditer(rest.text)]
        choices, begins, bar = [], 0, left
        for at, token in enumerate([*tokens, Token("|", rest.line, rest.column + len(rest.text.rstrip()))]):
            if token.text == "|":
                choices.append(self._choice(token if at < len(tokens) else bar, tokens[begins:at]))
                begins, bar = at + 1, token
        self.choices.append(Rule(left, choices))

    def _choice(self, bar: Token, tokens: list[Token]) -> tuple[list[Token], float]:
        weight = self._weight(tokens.pop()) if tokens and tokens[-1].text.startswith("(") else 1.0
        if not tokens:
            self._refuse(bar, "an alternative is empty; write at least one symbol on each side of |")
        return tokens, weight

    def _words(self, tokens: list[Token]) -> dict[str, float]:
        words: dict[str, float] = {}
        for token in tokens:
            if token.text.startswith("(") and words:
                words[next(reversed(words))] = self._weight(token)
            elif token.text in words or token.text in ("<eos>", "<unk>"):
                self._refuse(token, f"the word {token.text!r} appears twice or is reserved; write each word once")
            else:
                words[token.text] = 1.0
        return words

    def _weight(self, token: Token) -> float:
        found = _WEIGHT.fullmatch(token.text)
        if not found or not 1e-100 <= float(found[1]) <= 1e100:
            advice = "write a positive number in parentheses such as (0.25)"
            self._refuse(token, f"{token.text!r} is not a weight; {advice}")
        return float(found[1])

    def _symbol(self, token: Token) -> Name:
        """A symbol and its values and variables, in the order of the features."""
        found = _SYMBOL.fullmatch(token.text)
        if not found:
            self._refuse(token, f"{token.text!r} is not a symbol; write a name, or a name and its values such as NP[n]")
        values: Values = {}
        for entry in re.findall(r"\w+", found[2] or ""):
            feature, fixed = self._feature_of(entry, token)
            if feature in values:
                advice = f"two values of {feature}, {values[feature][0]} and {entry}; write one for each feature"
                self._refuse(token, f"{token.text!r} has {advice}")
            values[feature] = entry, fixed
        return Name(found[1], {feature: values[feature] for feature in self.features if feature in values}, token)

    def _feature_of(self, entry: str, token: Token) -> tuple[str, bool]:
        for feature, values in self.features.items():
            if entry in values:
                return feature, True
        if len(self.features) == 1:
            return next(iter(self.features)), False
        stem = entry.rstrip("0123456789")
        begun = [one for one in self.features if one == stem] or [one for one in self.features if one.startswith(stem)]
        if not stem or len(begun) != 1:
            what = "several features" if stem and begun else "no feature"
            example = next(iter(self.features))
            self._refuse(
                token,
                f"{entry!r} in {token.text!r} is no value, and begins the name of {what} ({', '.join(self.features)});"
                f" write a value, or a variable such as {example} or {example}2",
            )
        return begun[0], False

    def _refuse(self, place: Token, message: str) -> NoReturn:
        """Raises UserError for a line and column."""
        raise UserError(f"{self.name}:{place.line}:{place.column}: {message}")

    def expand(self) -> None:
        """Take all lines together, every variable replaced by every value."""
        self.features = self.features or {"number": ("sg", "pl")}
        for left, found in self.lexicon:
            for symbol, _ in self._each(left):
                if symbol in self.words:
                    where = self.places[symbol]
                    self._refuse(left, f"the words of {symbol} stand in line {where.line} already; write them there")
                self.words[symbol] = {word: weight / sum(found.values()) for word, weight in found.items()}
                self.places[symbol] = left
        for left, choices in self.choices:
            named = [([self._symbol(token) for token in tokens], weight) for tokens, weight in choices]
            for symbol, bindings in self._each(left):
                defined = self.places.setdefault(symbol, left)
                if symbol in self.words:
                    self._refuse(left, f"{symbol} has words in line {defined.line}; it cannot have rules as well")
                for names, weight in named:
                    self.rules.setdefault(symbol, []).extend(self._expand(symbol, names, weight, bindings))

    def _each(self, left: Token) -> list[tuple[str, dict[tuple[str, str], str]]]:
        """The symbols that a left side stands for, with the values of what is in its brackets."""
        name, found = self._symbol(left), []
        for drawn in itertools.product(*map(self._values_of, name.values.items())):
            values = dict(zip(name.values, drawn, strict=True))
            bindings = {(feature, name.values[feature][0]): value for feature, value in values.items()}
            symbol = name.spelt(bindings)
            self.values[symbol] = values
            self.defined.setdefault(left, []).append(symbol)
            found.append((symbol, bindings))
        return found

    def _values_of(self, one: tuple[str, tuple[str, bool]]) -> tuple[str, ...]:
        feature, (name, fixed) = one
        return (name,) if fixed else self.features[feature]

    def _expand(
        self, left: str, names: list[Name], weight: float, bound: dict[tuple[str, str], str]
    ) -> list[Alternative]:
        """A choice for the values of the left side; a variable of the right side alone takes every value equally."""
        bonds = {key: (key[0], 0) for key in bound}
        free = {(feature, one): fixed for name in names for feature, (one, fixed) in name.values.items()}
        free = {key: fixed for key, fixed in free.items() if key not in bound}
        bonds |= {key: (key[0], number) for number, key in enumerate(free, start=1)}
        drawn = itertools.product(*(self._values_of((feature, (one, free[feature, one]))) for feature, one in free))
        found = []
        for values in [dict(zip(free, each, strict=True)) | bound for each in drawn]:
            symbols = [name.spelt(values) for name in names]
            for symbol, name in zip(symbols, names, strict=True):
                self.uses.setdefault(symbol, (left, name.token))
            parts = (
                Part(symbol, tuple(bonds[feature, one] for feature, (one, _) in name.values.items()))
                for symbol, name in zip(symbols, names, strict=True)
            )
            found.append(tuple(parts))
        return [Alternative(parts, weight / len(found)) for parts in found]

    def checked(self, text: str) -> Grammar:
        """The grammar, its weights scaled to probabilities."""
        for symbol, (left, token) in self.uses.items():
            if symbol not in self.rules and symbol not in self.words:
                base = symbol.partition("[")[0]
                others = [(one, at) for one, at in self.places.items() if one.partition("[")[0] == base]
                advice = f"write a line {symbol} -> SYMBOLS or {symbol} : WORDS"
                if others:
                    advice = f"line {others[0][1].line} has {others[0][0]}; use that, or {advice}"
                self._refuse(token, f"{left} needs {symbol}, which is not defined; {advice}")
        start = self.heads.get("start", [Token("S", 1, 1)])
        if len(start) != 1 or start[0].text not in self.rules:
            advice = f"write one: {start[0].text} -> SYMBOLS"
            self._refuse(start[0], f"the start symbol {' '.join(one.text for one in start)} has no rules; {advice}")
        self._require_ends()
        embedding = self._symbols("embedding", {**self.rules, **self.words})
        controllers, targets = (self._symbols(kind, self.words) for kind in ("controllers", "targets"))
        for symbol in sorted(controllers | targets):
            if not self.values[symbol]:
                names, values = " or ".join(self.features), next(iter(self.features.values()))
                self._refuse(self.places[symbol], f"{symbol} has no {names}; write {symbol}[{values[0]}] : WORDS")
        totals = {symbol: sum(one.probability for one in found) for symbol, found in self.rules.items()}
        rules = {
            symbol: tuple(Alternative(parts, weight / totals[symbol]) for parts, weight in found)
            for symbol, found in self.rules.items()
        }
        grammar = Grammar(
            self.name,
            text,
            self.features,
            start[0].text,
            rules,
            self.words,
            {symbol: values for symbol, values in self.values.items() if values},
            controllers,
            targets,
            embedding,
            self._partners(targets),
        )
        for symbol, alternatives in rules.items():
            if all(map(grammar.embeds, alternatives)):
                advice = "add one that does not, so that sentences can end"
                self._refuse(self.places[symbol], f"every alternative of {symbol} opens a clause; {advice}")
        self._remark(start[0].text)
        return grammar

    def _remark(self, start: str) -> None:
        """Print a line for every rule that no sentence uses, and every feature that no symbol has."""
        reached, new = {start}, {start}
        while new := {part.symbol for one in new for each in self.rules.get(one, ()) for part in each.parts} - reached:
            reached |= new
        for left, symbols in self.defined.items():
            if reached.isdisjoint(symbols):
                where = f"{self.name}:{left.line}:{left.column}"
                notice(f"{where}: no sentence has {left.text}: no rule leads to it from {start}")
        for feature, token in self.declared.items():
            if not any(feature in values for values in self.values.values()):
                notice(f"{self.name}:{token.line}:{token.column}: no symbol has the feature {feature}")

    def _require_ends(self) -> None:
        """Raises UserError with left recursion, where expansion finds no first word, or where a symbol never ends."""
        if path := left_recursion(self.rules):
            way = "" if len(path) == 2 else f" ({' -> '.join(path)})"
            advice = "put the recursion at the right, as in NP[n] -> N[n] PP"
            self._refuse(self.places[path[0]], f"{path[0]} can begin with itself{way}; {advice}")
        for left in endless(self.rules, self.words):
            self._refuse(self.places[left], f"{left} never ends; give it an alternative of words alone")

    def _symbols(self, kind: str, defined: Collection[str]) -> frozenset[str]:
        """The symbols of a kind: the named ones with each of their values."""
        symbols: set[str] = set()
        for token in self.heads.get(kind, []):
            found = [symbol for symbol in defined if symbol.partition("[")[0] == token.text]
            if not found:
                what = "is not defined" if kind == "embedding" else "has no words"
                there = ", ".join(dict.fromkeys(symbol.partition("[")[0] for symbol in defined))
                self._refuse(token, f"{self.said[kind]} names {token.text}, which {what}; there are {there}")
            symbols.update(found)
        return frozenset(symbols)

    def _partners(self, targets: frozenset[str]) -> dict[tuple[str, str, str], tuple[tuple[str, str], ...]]:
        partners: dict[tuple[str, str, str], tuple[tuple[str, str], ...]] = {}
        for target in sorted(targets):
            base, words, own = target.partition("[")[0], self.words[target], self.values[target]
            for feature in own:
                forms: list[list[tuple[str, str]]] = [[] for _ in words]
                for value in self.features[feature]:
                    if value == own[feature]:
                        continue
                    other = f"{base}[{','.join((own | {feature: value}).values())}]"
                    found = self.words.get(other, {})
                    if len(found) != len(words):
                        what = f"{target} has {counted(len(words), 'word')} and {other} {len(found)}"
                        advice = "write all forms of every word, in the same order"
                        self._refuse(self.places[target], f"{what}; {advice}")
                    for pairs, form in zip(forms, found, strict=True):
                        pairs.append((value, form))
                partners |= {(target, word, feature): tuple(pairs) for word, pairs in zip(words, forms, strict=True)}
        return partners
