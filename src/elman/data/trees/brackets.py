"""Constituency trees: bracketed text, and the linear form that a sequence model writes.

Vinyals et al., Grammar as a Foreign Language, NeurIPS 2015, section 2.2: a tree is written depth first, each closing
bracket with its label, and every part of speech as `XX`::

    (S (NP (NNP John)) (VP (VBZ sleeps)) (. .))        (S (NP XX )NP (VP XX )VP XX )S
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeVar

from elman.data.lines import fields
from elman.data.sentences import PARENTHESES
from elman.errors import UserError

Value = TypeVar("Value")

XX = "XX"
ROOT = "ROOT"

_TOKEN = re.compile(r"\(|\)|[^\s()]+|\n", re.ASCII)
_IDENTIFIER = re.compile(r"^[^\t\n()]*\t(?=\s*\()", re.MULTILINE)
_WRITTEN = str.maketrans(PARENTHESES)
_SQUARE = str.maketrans({**PARENTHESES, "[": "(", "]": ")"})


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A word with its part of speech."""

    tag: str
    word: str


@dataclasses.dataclass(frozen=True)
class Node:
    label: str
    children: "tuple[Node | Leaf, ...]"


def in_parentheses(text: str) -> str:
    """A text of trees with parentheses for brackets: square ones become so where there are more of them.

    >>> in_parentheses("[S [N we] [V go] [. (]]")
    '(S (N we) (V go) (. -LRB-))'
    """
    return text.translate(_SQUARE) if text.count("[") > text.count("(") else text


def read_trees(text: str, name: str) -> list[Node]:
    """The trees of a text in round or square brackets, each rooted in `ROOT`.

    A tree may take several lines. What precedes a tab before a tree is an identifier, and is left out. A root without
    a label, `TOP` or `ROOT` is the root; another root gets one above it. Empty elements (`-NONE-`) are left out, with
    the constituents that have no word then.

    Raises UserError where brackets do not match, a leaf lacks a word, a constituent below the root lacks a label or
    text stands between trees; the message has `name` and the line.
    """
    trees: list[Node] = []
    open_: list[tuple[str, list[Node | Leaf], int]] = []
    line = 1
    tokens, at = _TOKEN.findall(_IDENTIFIER.sub("", in_parentheses(text))), 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token == "\n":
            line += 1
        elif token == "(":
            has_label = at < len(tokens) and tokens[at] not in ("(", ")", "\n")
            open_.append((tokens[at] if has_label else "", [], line))
            at += has_label
        elif not open_:
            found = "a closing bracket that nothing opened" if token == ")" else f"the text {token!r} between trees"
            raise UserError(f"{name}:{line}: {found}; every tree is (LABEL ...) in matching brackets")
        elif token == ")":
            begun = open_.pop()
            closed = _close(begun, name)
            if open_ and isinstance(closed, Node) and not closed.label:
                raise UserError(f"{name}:{begun[2]}: a constituent within a tree has no label; write (LABEL ...)")
            if open_:
                open_[-1][1].append(closed)
            elif whole := _pruned(closed, "-NONE-"):
                kept = whole.children if isinstance(whole, Node) and whole.label in ("", "TOP", ROOT) else (whole,)
                trees.append(Node(ROOT, kept))
        else:
            open_[-1][1].append(Leaf("", token))
    if open_:
        raise UserError(f"{name}:{open_[0][2]}: a tree begins here and its brackets are not closed; add the missing )")
    if not trees:
        raise UserError(f"{name}: there is no tree; give trees such as (ROOT (S (NP (PRP We)) (VP (VBP sleep))))")
    return trees


def read_tree(text: str, name: str) -> Node:
    """As `read_trees`, the only tree of a text; raises UserError where it has several."""
    first, *others = read_trees(text, name)
    if others:
        raise UserError(f"{name}: {1 + len(others)} trees; give one")
    return first


def walk(tree: Node | Leaf) -> Iterator[tuple[Literal["(", "", ")"], Node | Leaf]]:
    """The parts of a tree as brackets have them, at any depth: constituents before and after their parts, and words."""
    waiting: list[tuple[Literal["(", "", ")"], Node | Leaf]] = [("(" if isinstance(tree, Node) else "", tree)]
    while waiting:
        side, one = waiting.pop()
        yield side, one
        if side == "(" and isinstance(one, Node):
            waiting.append((")", one))
            waiting += [("(" if isinstance(child, Node) else "", child) for child in reversed(one.children)]


def fold(tree: Node | Leaf, leaf: Callable[[Leaf], Value], node: Callable[[Node, list[Value]], Value]) -> Value:
    """The value of a tree, where `node` gives the value of a constituent by the values of its children."""
    found: list[list[Value]] = [[]]
    for side, one in walk(tree):
        if side == "(":
            found.append([])
        else:
            below = found.pop() if side == ")" else []
            value = node(one, below) if isinstance(one, Node) else leaf(one)
            found[-1].append(value)
    return found[0][0]


def leaves(tree: Node | Leaf) -> Iterator[Leaf]:
    return (one for _, one in walk(tree) if isinstance(one, Leaf))


def bare(label: str) -> str:
    """A label without its functions and traces: `NP-SBJ=2` is `NP`; one that begins with a mark stays, as `-LRB-`."""
    return re.split("[-=|]", label)[0] or label


def linear(tree: Node | Leaf, *, hide_tags: bool = True, functions: bool = False) -> list[str]:
    """The symbols of a tree, its root `ROOT` left out."""
    found = list[str]()
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            found.append(XX if hide_tags else one.tag)
        elif one.label != ROOT:
            found.append(f"{side}{one.label if functions else bare(one.label)}")
    return found


def to_pair(tree: Node, hide_tags: bool, functions: bool) -> tuple[str, str]:
    """The words and the linear form, at single spaces."""
    words = " ".join(leaf.word for leaf in leaves(tree))
    return words, " ".join(linear(tree, hide_tags=hide_tags, functions=functions))


def linear_line(line: str, name: str) -> str:
    """A linear tree from a line with one, or with a bracketed tree; an empty line stays.

    Raises UserError where the line has brackets but is neither, or has several trees.
    """
    is_linear = any(symbol.startswith(")") and len(symbol.strip(")")) > 0 for symbol in fields(line))
    if is_linear or ")" not in line:
        return line
    return " ".join(linear(read_tree(line, name)))


def bracketed(tree: Node | Leaf) -> str:
    """The usual written form, in one line; parentheses in words as `PARENTHESES`."""
    parts = list[str]()
    for side, one in walk(tree):
        if isinstance(one, Leaf):
            parts.append(f" ({one.tag} {one.word.translate(_WRITTEN)})")
        else:
            parts.append(f" ({one.label}" if side == "(" else ")")
    return "".join(parts).strip(" ")


def _close(opened: tuple[str, list[Node | Leaf], int], name: str) -> Node | Leaf:
    """The leaf or constituent that a closing bracket completes."""
    label, children, line = opened
    words = [child for child in children if isinstance(child, Leaf) and not child.tag]
    if not children:
        raise UserError(f"{name}:{line}: ({label}) has no word; write (TAG WORD), or (-NONE- *) for an empty element")
    if not words:
        return Node(label, tuple(children))
    if len(children) > 1 or not label:
        raise UserError(f"{name}:{line}: ({label} {words[0].word} ...: a word stands alone in its brackets, (TAG WORD)")
    return Leaf(label, words[0].word)


def _pruned(tree: Node | Leaf, empty: str | None = None) -> Node | Leaf | None:
    """A tree without leaves of the tag `empty` and without constituents that have no word; None if nothing is left."""

    def node(one: Node, below: list[Node | Leaf | None]) -> Node | None:
        children = tuple(child for child in below if child is not None)
        return Node(one.label, children) if children else None

    return fold(tree, lambda leaf: None if leaf.tag == empty else leaf, node)


def _size(tree: Node | Leaf) -> int:
    return sum(side == "(" for side, _ in walk(tree))


class Repaired(NamedTuple):
    """A tree, rooted in `ROOT`, over all the words, and how many symbols were added or dropped to form it."""

    tree: Node
    repairs: int


def bracket(symbol: str) -> tuple[str, str]:
    """The side, `(` or `)`, and the label of a bracket; of a symbol for a word no side, and itself."""
    return (symbol[0], symbol[1:]) if len(symbol) > 1 and symbol[0] in "()" else ("", symbol)


def to_tree(symbols: Iterable[str], words: Sequence[str]) -> Repaired:
    """A tree over `words` from symbols `(LABEL`, `)LABEL` and, for a word, anything else.

    Symbols that do not fit are repaired by these rules, and counted:

    1. `)LABEL` closes the nearest open LABEL, and first what is open within it; where none is open it is dropped;
    2. a symbol for a word takes the next word; when all are taken it is dropped;
    3. at the end what is open is closed; words left over go to the end of the outermost constituent, if there are
       several of the last;
    4. constituents without a word are dropped.
    """
    open_: list[tuple[str, list[Node | Leaf]]] = [(ROOT, [])]
    known: Counter[str] = Counter()
    used = repairs = 0

    def close() -> str:
        label, children = open_.pop()
        open_[-1][1].append(Node(label, tuple(children)))
        known[label] -= 1
        return label

    for symbol in symbols:
        side, label = bracket(symbol)
        if side == "(":
            open_.append((label, []))
            known[label] += 1
        elif side == ")" and not known[label]:
            repairs += 1
        elif side == ")":
            while close() != label:
                repairs += 1
        elif used < len(words):
            open_[-1][1].append(Leaf(symbol, words[used]))
            used += 1
        else:
            repairs += 1
    repairs += len(open_) - 1 + len(words) - used
    while len(open_) > 1:
        close()
    top = open_[0][1]
    left = tuple(Leaf("XX", word) for word in words[used:])
    if left and top and isinstance(top[-1], Node):
        top[-1] = Node(top[-1].label, top[-1].children + left)
    else:
        top += left
    whole = Node(ROOT, tuple(top))
    tree = _pruned(whole)
    tree = tree if isinstance(tree, Node) else Node(ROOT, ())
    return Repaired(tree, repairs + _size(whole) - _size(tree))
