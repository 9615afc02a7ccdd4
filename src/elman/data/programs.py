"""Programs whose results a model learns to compute, sums and numbers to copy, as pairs; and their curricula.

Zaremba & Sutskever, Learning to execute, arXiv:1410.4615 (2014), in the form of their published code
(github.com/wojciechz/learning_to_execute): a loop stands in one line, and a program combines its operations in a row,
each with the result of the one before it. Its operation that changes nothing is left out.
"""

import hashlib
import json
import operator
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from elman.data.text.sources import SPLITS
from elman.errors import UserError
from elman.files import write_atomic

Task = Literal["execute", "add", "copy"]
Strategy = Literal["baseline", "naive", "mix", "combined"]

NAMES = "abcdefghij"  # variables; each is set by one operation, so a program has no more operations than these
MIXED = 0.2  # the share of pairs that the combined strategy draws as `mix` does, as in the published code
BREAK = ";"  # stands between the lines of a program that is written in one line; no program has it otherwise
RECORD = "programs.json"
LONGEST = 100  # the most digits of a number
_TRIES = 1000
_SIGNS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub}


class Difficulty(NamedTuple):
    """The digits of numbers, and the operations of a program."""

    length: int
    nesting: int


class Wish(NamedTuple):
    """What to draw; `length` and `nesting` are for held-out pairs, `strategy` chooses them for training.

    `doubled`: a source stands twice, with a line break between, as the paper doubles its inputs.
    """

    task: Task = "execute"
    length: int = 3
    nesting: int = 2
    strategy: Strategy = "baseline"
    train: int = 30_000
    valid: int = 1000
    test: int = 1000
    doubled: bool = False
    seed: int = 0


class Expression(NamedTuple):
    """Python text and its value; a variable's is final, since only the operation that sets it changes it."""

    text: str
    value: int


class _Writer:
    """A program in the making: its lines so far, and the result that the next operation takes up."""

    def __init__(self, draw: random.Random, length: int) -> None:
        self.draw, self.length = draw, length
        self.lines: list[str] = []
        self.result: Expression | None = None
        self._names = iter(draw.sample(NAMES, len(NAMES)))

    def operands(self, count: int) -> list[Expression]:
        """The last result, if there is one, and numbers, in random order."""
        numbers = [self.draw.randint(1, 10**self.length) for _ in range(count - (self.result is not None))]
        found = [Expression(str(one), one) for one in numbers] + ([] if self.result is None else [self.result])
        self.draw.shuffle(found)
        return found

    def small(self) -> int:
        """A factor, or the times of a loop."""
        return self.draw.randint(1, 4 * self.length)

    def assign(self, value: Expression) -> Expression:
        name = next(self._names)
        self.lines.append(f"{name}={value.text}")
        return Expression(name, value.value)

    def sum(self, left: Expression, right: Expression) -> Expression:
        sign = self.draw.choice("+-")
        return Expression(f"({left.text}{sign}{right.text})", _SIGNS[sign](left.value, right.value))


def _sum(writer: _Writer) -> Expression:
    return writer.sum(*writer.operands(2))


def _product(writer: _Writer) -> Expression:
    pair, factor = writer.operands(1), writer.small()
    pair.append(Expression(str(factor), factor))
    writer.draw.shuffle(pair)
    return Expression(f"({pair[0].text}*{pair[1].text})", pair[0].value * pair[1].value)


def _assignment(writer: _Writer) -> Expression:
    value, other = writer.operands(2)
    return writer.sum(writer.assign(value), other)


def _loop(writer: _Writer) -> Expression:
    start, step = writer.operands(2)
    name, value = writer.assign(start)
    times, sign = writer.small(), writer.draw.choice("+-")
    writer.lines.append(f"for x in range({times}):{name}{sign}={step.text}")
    return Expression(name, _SIGNS[sign](value, times * step.value))


def _conditional(writer: _Writer) -> Expression:
    left, right, then, otherwise = writer.operands(4)
    sign = writer.draw.choice("<>")
    holds = left.value < right.value if sign == "<" else left.value > right.value
    text = f"({then.text} if {left.text}{sign}{right.text} else {otherwise.text})"
    return Expression(text, (then if holds else otherwise).value)


OPERATIONS: tuple[Callable[[_Writer], Expression], ...] = (_sum, _product, _assignment, _loop, _conditional)


def draw_program(draw: random.Random, length: int, nesting: int) -> tuple[str, int]:
    """A program of `nesting` operations, each with probability 1/5, on the result of the one before and on numbers.

    Numbers are uniform from 1 to 10^length; factors, and how often a loop is run, from 1 to 4 length. The operations:
    a sum or difference; a product; an assignment whose variable is then in a sum or difference; a loop that adds to or
    subtracts from a variable; a conditional expression. `nesting` is at most 10. Returns the text and what it prints.
    """
    writer = _Writer(draw, length)
    for _ in range(nesting):
        writer.result = draw.choice(OPERATIONS)(writer)
    assert writer.result is not None, "one operation or more"
    return BREAK.join([*writer.lines, f"print({writer.result.text})"]), writer.result.value


def draw_pair(task: Task, draw: random.Random, difficulty: Difficulty) -> tuple[str, str]:
    """A source and its target: a program and what it prints, a sum of two numbers, or digits to copy.

    Both numbers of a sum have exactly `length` digits, and `length` digits are copied, of which the first may be 0.
    """
    length = difficulty.length
    match task:
        case "execute":
            source, result = draw_program(draw, *difficulty)
            return source, str(result)
        case "add":
            one, other = (draw.randint(10 ** (length - 1), 10**length - 1) for _ in range(2))
            return f"print(({one}+{other}))", str(one + other)
        case "copy":
            digits = "".join(draw.choices("0123456789", k=length))
            return digits, digits


def difficulties(strategy: Strategy, target: Difficulty, count: int, draw: random.Random) -> Iterator[Difficulty]:
    """The difficulty of each of `count` training pairs, in the order in which they are to be read.

    `baseline`: always the target. `naive`: lengths from 1 to the target's with one operation, then again with two
    and so on, the same number of pairs each; in the paper validation decides when a stage ends. `mix`: each pair has a
    length and a nesting drawn uniformly up to the target's. `combined`: one of five pairs as in `mix`, the
    others as in `naive`.
    """
    steps = [
        Difficulty(length + 1, nesting + 1) for nesting in range(target.nesting) for length in range(target.length)
    ]
    for place in range(count):
        mixed = strategy == "mix" or (strategy == "combined" and draw.random() < MIXED)
        if strategy == "baseline":
            yield target
        elif mixed:
            yield Difficulty(draw.randint(1, target.length), draw.randint(1, target.nesting))
        else:
            yield steps[place * len(steps) // count]


def split_of(source: str) -> str:
    """The split to which a program belongs, by its text: the SHA-256 modulo 3, as the paper divides by a hash."""
    return SPLITS[int.from_bytes(hashlib.sha256(source.encode()).digest()) % 3]


def draw_splits(wish: Wish) -> dict[str, list[tuple[str, str]]]:
    """The pairs of each split, in the order of the draw; equal wishes give equal pairs.

    Validation and test have the difficulty of the wish, and no program twice; training has programs as they are drawn,
    some of them repeatedly where there are few. Raises UserError where there are too few programs, or the task has no
    such option.
    """
    if wish.task != "execute" and wish.nesting != 1:
        raise UserError(f"--nesting {wish.nesting} with --task {wish.task}: only programs have operations; set it to 1")
    if wish.length > LONGEST:
        raise UserError(f"--length {wish.length}: numbers have {LONGEST} digits at most; lower it")
    if wish.nesting > len(NAMES):
        raise UserError(f"--nesting {wish.nesting}: a program has {len(NAMES)} variables; set it to that at most")
    found: dict[str, list[tuple[str, str]]] = {}
    for split, count in zip(SPLITS, (wish.train, wish.valid, wish.test), strict=True):
        draw = random.Random(f"{wish.seed} {split}")
        strategy: Strategy = wish.strategy if split == "train" else "baseline"
        seen: set[str] = set()
        rows = found[split] = []
        for length, nesting in difficulties(strategy, Difficulty(wish.length, wish.nesting), count, draw):
            for _ in range(_TRIES):
                pair = draw_pair(wish.task, draw, Difficulty(length, nesting))
                if split_of(pair[0]) == split and pair[0] not in seen:
                    break
            else:
                raise UserError(
                    f"of {_TRIES:,} sources of length {length} and nesting {nesting} none was a new one for the {split}"
                    f" split, which has {len(seen):,}; ask for fewer, or raise --length or --nesting"
                )
            rows.append(pair)
            if split != "train":
                seen.add(pair[0])
    return found


def write_pairs(wish: Wish, folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Write train.tsv, valid.tsv and test.tsv, and the wish as programs.json; returns the pairs."""
    found = draw_splits(wish)
    for split, rows in found.items():
        twice = [(f"{source}{BREAK}{source}" if wish.doubled else source, target) for source, target in rows]
        write_atomic(folder / f"{split}.tsv", "".join(f"{source}\t{target}\n" for source, target in twice))
        found[split] = twice
    write_atomic(folder / RECORD, json.dumps(wish._asdict(), indent=1) + "\n")
    return found
