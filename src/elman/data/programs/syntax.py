"""Small programs as syntax trees: their text, which is Python, and their result, computed from the tree."""

import dataclasses
import operator
from typing import TypeAlias

BREAK = ";"
"""Stands between the lines of a program that is written in one line; no program has it otherwise."""

_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_ORDERS = {"<": operator.lt, ">": operator.gt}

Values: TypeAlias = dict[str, int]
"""From variables to their values."""


@dataclasses.dataclass(frozen=True)
class Number:
    """An integer."""

    value: int

    def __str__(self) -> str:
        return str(self.value)

    def evaluate(self, values: Values) -> int:  # noqa: ARG002 - a number is its own value
        """The number."""
        return self.value


@dataclasses.dataclass(frozen=True)
class Variable:
    """A variable that a line above has set."""

    name: str

    def __str__(self) -> str:
        return self.name

    def evaluate(self, values: Values) -> int:
        """Its value."""
        return values[self.name]


@dataclasses.dataclass(frozen=True)
class Operation:
    """`(left+right)`; the sign is `+`, `-` or `*`."""

    left: "Expression"
    sign: str
    right: "Expression"

    def __str__(self) -> str:
        return f"({self.left}{self.sign}{self.right})"

    def evaluate(self, values: Values) -> int:
        """The sum, the difference or the product."""
        return int(_OPERATIONS[self.sign](self.left.evaluate(values), self.right.evaluate(values)))


@dataclasses.dataclass(frozen=True)
class Conditional:
    """`(then if left<right else otherwise)`; the sign is `<` or `>`."""

    then: "Expression"
    left: "Expression"
    sign: str
    right: "Expression"
    otherwise: "Expression"

    def __str__(self) -> str:
        return f"({self.then} if {self.left}{self.sign}{self.right} else {self.otherwise})"

    def evaluate(self, values: Values) -> int:
        """The value of the branch that the condition selects."""
        holds = _ORDERS[self.sign](self.left.evaluate(values), self.right.evaluate(values))
        return (self.then if holds else self.otherwise).evaluate(values)


Expression: TypeAlias = Number | Variable | Operation | Conditional


@dataclasses.dataclass(frozen=True)
class Assignment:
    """`name=value`."""

    name: str
    value: Expression

    def __str__(self) -> str:
        return f"{self.name}={self.value}"

    def execute(self, values: Values) -> None:
        """Set the variable."""
        values[self.name] = self.value.evaluate(values)


@dataclasses.dataclass(frozen=True)
class Loop:
    """`for x in range(times):name+=value`; the sign is `+` or `-`."""

    times: int
    name: str
    sign: str
    value: Expression

    def __str__(self) -> str:
        return f"for x in range({self.times}):{self.name}{self.sign}={self.value}"

    def execute(self, values: Values) -> None:
        """Change the variable so many times."""
        for _ in range(self.times):
            values[self.name] = _OPERATIONS[self.sign](values[self.name], self.value.evaluate(values))


@dataclasses.dataclass(frozen=True)
class Program:
    """Lines that set variables, and `print(printed)`.

    Example:
        >>> program = Program((Assignment("a", Number(5)), Loop(3, "a", "-", Number(7))), Variable("a"))
        >>> str(program), program.result
        ('a=5;for x in range(3):a-=7;print(a)', -16)
    """

    lines: tuple[Assignment | Loop, ...]
    printed: Expression

    def __str__(self) -> str:
        return BREAK.join([*map(str, self.lines), f"print({self.printed})"])

    @property
    def result(self) -> int:
        """What the program prints."""
        values: Values = {}
        for line in self.lines:
            line.execute(values)
        return self.printed.evaluate(values)
