"""What makes lines of rules a grammar: nothing undefined, nothing endless, verbs in pairs."""

from collections.abc import Collection

from elman.data.grammar.rules import Alternative, Grammar
from elman.errors import UserError


def check(
    name: str,
    text: str,
    heads: dict[str, list[str]],
    values: list[str],
    rules: dict[str, list[Alternative]],
    words: dict[str, dict[str, float]],
    lines: dict[str, int],
) -> Grammar:
    """The grammar of these rules and words; `lines` says where a symbol is defined.

    Raises:
        UserError: names the line of what does not fit.

    """
    _require_defined(name, rules, words, lines)
    start = _start(name, heads, rules)
    _require_no_left_recursion(name, rules, lines)
    _require_an_end(name, rules, words, lines)
    kinds = {kind: _symbols(name, kind, heads.get(kind, []), {**rules, **words}) for kind in ("embedding",)}
    kinds |= {kind: _symbols(name, kind, heads.get(kind, []), words) for kind in ("nouns", "verbs")}
    number = {symbol: value for symbol in lines for value in values if symbol.endswith(f"[{value}]")}
    for symbol in sorted(kinds["nouns"] | kinds["verbs"]):
        if symbol not in number:
            raise UserError(f"{name}:{lines[symbol]}: {symbol} has no number; write {symbol}[{values[0]}] : WORDS")
    grammar = Grammar(
        name=name,
        text=text,
        start=start,
        rules={symbol: _scaled(found) for symbol, found in rules.items()},
        words=words,
        number=number,
        nouns=kinds["nouns"],
        verbs=kinds["verbs"],
        embedding=kinds["embedding"],
        partners=_partners(name, kinds["verbs"], values, words, lines),
    )
    for symbol, found in grammar.rules.items():
        if all(map(grammar.embeds, found)):
            raise UserError(
                f"{name}:{lines[symbol]}: every alternative of {symbol} opens a clause; add one that does not, so that"
                " sentences can end"
            )
    return grammar


def _require_defined(
    name: str, rules: dict[str, list[Alternative]], words: dict[str, dict[str, float]], lines: dict[str, int]
) -> None:
    for left, alternatives in rules.items():
        for part in (part for one in alternatives for part in one.parts):
            if part.symbol not in rules and part.symbol not in words:
                raise UserError(
                    f"{name}:{lines[left]}: {left} needs {part.symbol}, which is not defined; write a line"
                    f" {part.symbol} -> SYMBOLS or {part.symbol} : WORDS"
                )


def _start(name: str, heads: dict[str, list[str]], rules: dict[str, list[Alternative]]) -> str:
    start = heads.get("start", ["S"])
    if len(start) != 1 or start[0] not in rules:
        raise UserError(f"{name}: the start symbol {' '.join(start)} has no rules; write one: {start[0]} -> SYMBOLS")
    return start[0]


def _require_no_left_recursion(name: str, rules: dict[str, list[Alternative]], lines: dict[str, int]) -> None:
    """Else the first word of a symbol could not be found by writing it out."""
    firsts = {
        left: {one.parts[0].symbol for one in found if one.parts[0].symbol in rules} for left, found in rules.items()
    }
    for left in rules:
        reached, todo = set[str](), list(firsts[left])
        while todo:
            symbol = todo.pop()
            if symbol not in reached:
                reached.add(symbol)
                todo += firsts[symbol]
        if left in reached:
            raise UserError(
                f"{name}:{lines[left]}: {left} can begin with itself; let the recursion stand at the right, as in"
                " NP[n] -> N[n] PP"
            )


def _require_an_end(
    name: str, rules: dict[str, list[Alternative]], words: dict[str, dict[str, float]], lines: dict[str, int]
) -> None:
    ends = set(words)
    while grown := {
        left for left, found in rules.items() if left not in ends and any(_all_in(one, ends) for one in found)
    }:
        ends |= grown
    for left in rules:
        if left not in ends:
            raise UserError(
                f"{name}:{lines[left]}: {left} never comes to an end; give it an alternative of words alone"
            )


def _all_in(alternative: Alternative, symbols: set[str]) -> bool:
    return all(part.symbol in symbols for part in alternative.parts)


def _symbols(name: str, kind: str, bases: list[str], defined: Collection[str]) -> frozenset[str]:
    found = {base: [symbol for symbol in defined if symbol.partition("[")[0] == base] for base in bases}
    for base, symbols in found.items():
        if not symbols:
            what = "is not defined" if kind == "embedding" else "has no words"
            raise UserError(f"{name}: {kind} names {base}, which {what}; there are {', '.join(defined)}")
    return frozenset(symbol for symbols in found.values() for symbol in symbols)


def _partners(
    name: str,
    verbs: frozenset[str],
    values: list[str],
    words: dict[str, dict[str, float]],
    lines: dict[str, int],
) -> dict[tuple[str, str], str]:
    partners: dict[tuple[str, str], str] = {}
    for verb in sorted(verbs):
        base = verb.partition("[")[0]
        other = f"{base}[{values[1] if verb.endswith(f'[{values[0]}]') else values[0]}]"
        if len(words.get(other, ())) != len(words[verb]):
            raise UserError(
                f"{name}:{lines[verb]}: {verb} has {len(words[verb])} words and {other} {len(words.get(other, ()))};"
                " write the two forms of every verb, in the same order"
            )
        partners |= {(verb, word): form for word, form in zip(words[verb], words[other], strict=True)}
    return partners


def _scaled(alternatives: list[Alternative]) -> tuple[Alternative, ...]:
    total = sum(one.probability for one in alternatives)
    return tuple(Alternative(parts, probability / total) for parts, probability in alternatives)
