"""Random programs, sums and numbers to copy, and the difficulties at which a curriculum draws them.

Zaremba & Sutskever, Learning to execute, arXiv:1410.4615 (2014), in the form of their published code
(github.com/wojciechz/learning_to_execute): a loop stands in one line, and a program combines its operations in a row,
each with the result of the one before it. Its operation that changes nothing is left out.
"""

import random
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from elman.data.programs.syntax import Assignment, Conditional, Expression, Loop, Number, Operation, Program, Variable

Task = Literal["execute", "add", "copy"]
Strategy = Literal["baseline", "naive", "mix", "combined"]

NAMES = "abcdefghij"
"""Variables; each is set by one operation, so a program has no more operations than these."""

MIXED = 0.2
"""The share of pairs that the combined strategy draws as `mix` does, as in the published code."""


class Difficulty(NamedTuple):
    """The digits of numbers, and the operations of a program."""

    length: int
    nesting: int


class _Writer:
    """A program in the making: its lines so far, and the result that the next operation takes up."""

    def __init__(self, draw: random.Random, length: int) -> None:
        self.draw, self.length = draw, length
        self.lines: list[Assignment | Loop] = []
        self.result: Expression | None = None
        self._names = iter(draw.sample(NAMES, len(NAMES)))

    def operands(self, count: int) -> list[Expression]:
        """The last result, if there is one, and numbers, in random order."""
        numbers = count - (self.result is not None)
        found: list[Expression] = [Number(self.draw.randint(1, 10**self.length)) for _ in range(numbers)]
        found += [] if self.result is None else [self.result]
        self.draw.shuffle(found)
        return found

    def small(self) -> int:
        """A factor, or the times of a loop."""
        return self.draw.randint(1, 4 * self.length)

    def assign(self, value: Expression) -> Variable:
        """Set an unused variable."""
        variable = Variable(next(self._names))
        self.lines.append(Assignment(variable.name, value))
        return variable


def _sum(writer: _Writer) -> Expression:
    left, right = writer.operands(2)
    return Operation(left, writer.draw.choice("+-"), right)


def _product(writer: _Writer) -> Expression:
    pair: list[Expression] = [*writer.operands(1), Number(writer.small())]
    writer.draw.shuffle(pair)
    return Operation(pair[0], "*", pair[1])


def _assignment(writer: _Writer) -> Expression:
    value, other = writer.operands(2)
    return Operation(writer.assign(value), writer.draw.choice("+-"), other)


def _loop(writer: _Writer) -> Expression:
    start, step = writer.operands(2)
    variable = writer.assign(start)
    writer.lines.append(Loop(writer.small(), variable.name, writer.draw.choice("+-"), step))
    return variable


def _conditional(writer: _Writer) -> Expression:
    left, right, then, otherwise = writer.operands(4)
    return Conditional(then, left, writer.draw.choice("<>"), right, otherwise)


OPERATIONS: tuple[Callable[[_Writer], Expression], ...] = (_sum, _product, _assignment, _loop, _conditional)


def draw_program(draw: random.Random, length: int, nesting: int) -> Program:
    """A program of `nesting` operations, each with probability 1/5, on the result of the one before and on numbers.

    Numbers are uniform from 1 to 10^length; factors, and how often a loop is run, from 1 to 4 length. The operations:
    a sum or difference; a product; an assignment whose variable is then in a sum or difference; a loop that adds to or
    subtracts from a variable; a conditional expression. `nesting` is at most 10.
    """
    writer = _Writer(draw, length)
    for _ in range(nesting):
        writer.result = draw.choice(OPERATIONS)(writer)
    assert writer.result is not None, "one operation or more"
    return Program(tuple(writer.lines), writer.result)


def draw_pair(task: Task, draw: random.Random, difficulty: Difficulty) -> tuple[str, str]:
    """A source and its target: a program and what it prints, a sum of two numbers, or digits to copy.

    Both numbers of a sum have exactly `length` digits, and `length` digits are copied, of which the first may be 0.
    """
    length = difficulty.length
    match task:
        case "execute":
            program = draw_program(draw, *difficulty)
        case "add":
            numbers = [Number(draw.randint(10 ** (length - 1), 10**length - 1)) for _ in range(2)]
            program = Program((), Operation(numbers[0], "+", numbers[1]))
        case "copy":
            digits = "".join(draw.choices("0123456789", k=length))
            return digits, digits
    return str(program), str(program.result)


def difficulties(strategy: Strategy, target: Difficulty, count: int, draw: random.Random) -> Iterator[Difficulty]:
    """The difficulty of each of `count` training pairs, in the order in which they are to be read.

    `baseline`: always the target. `naive`: lengths from 1 to that of the target with one operation, then again with two
    and so on, the same number of pairs each; in the paper validation decides when a stage ends. `mix`: each pair has a
    length and a nesting drawn uniformly up to those of the target. `combined`: one of five pairs as in `mix`, the
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
