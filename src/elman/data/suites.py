"""Test suites in the form of SyntaxGym: sentences in regions by item and condition, and predictions of surprisals.

Form and rules follow Gauthier, Hu, Wilcox, Qian & Levy 2020, SyntaxGym: an online platform for targeted
evaluation of language models, ACL (system demonstrations).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from elman.config.text import TextOptions
from elman.data.stimuli import Stimulus, joined
from elman.data.text.utf8 import read_text
from elman.errors import UserError
from elman.formats import parse_json

RTOL, ATOL = 1e-5, 1e-3
"""How far surprisals are apart that `=` takes for equal: |a - b| <= ATOL + RTOL |b|, as `numpy.isclose` has it."""

Values: TypeAlias = Mapping[tuple[str, int], np.ndarray]
"""The surprisals [items] of a condition and the number of a region."""

RecordT = TypeVar("RecordT")

_LEVELS = ("&|", "<>=", "+-")
"""Operators, those first that bind least; operators of one level are computed from the left."""

_OPERATORS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "<": np.less,
    ">": np.greater,
    "=": lambda a, b: np.isclose(a, b, rtol=RTOL, atol=ATOL),
    "&": np.logical_and,
    "|": np.logical_or,
}
_TOKEN = re.compile(
    r"\s*(?:\(\s*(?P<region>\d+|\*)\s*;\s*%\s*(?P<condition>[^%]+?)\s*%\s*\)"
    r"|(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|(?P<mark>[-+<>=&|()\[\]]))"
)
_BRACKETS = {"(": ")", "[": "]"}


class Formula(NamedTuple):
    """A formula of a prediction, or a part of it: an operator and its two operands, a region, or a number.

    Attributes:
        operator: one of `+ - < > = & |`; empty of a region and a number.
        operands: the two formulas that it joins.
        condition, region: where the surprisal is taken; region 0 is `*`, the whole sentence.
        number: the number itself.
    """

    operator: str = ""
    operands: "tuple[Formula, ...]" = ()
    condition: str = ""
    region: int = 0
    number: float = 0.0

    @property
    def judges(self) -> bool:
        """Whether it is true or false, and no number."""
        return bool(self.operator) and self.operator not in "+-"

    def places(self) -> Iterator[tuple[str, int]]:
        """The conditions and regions that it names, region 0 for `*`."""
        if self.condition:
            yield self.condition, self.region
        for operand in self.operands:
            yield from operand.places()

    def value(self, surprisals: Values) -> np.ndarray:
        """What it is for each item, [items]."""
        if self.operator:
            found: np.ndarray = _OPERATORS[self.operator](*(one.value(surprisals) for one in self.operands))
            return found
        if not self.condition:
            return np.array(self.number)
        if self.region:
            return surprisals[self.condition, self.region]
        return np.sum([one for (condition, _), one in surprisals.items() if condition == self.condition], axis=0)


def parse_formula(text: str) -> Formula:
    """The formula of a prediction, such as `(3;%a%) + (4;%a%) < (3;%b%)`.

    `+` and `-` bind more than `<`, `>` and `=`, these more than `&` and `|`; brackets group. Raises UserError where it
    is none.

    >>> parse_formula("(2;%a%) < (*;%b%) - 1.5").places().__next__()
    ('a', 2)
    """
    marks, at = list[re.Match[str]](), 0
    end = len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise UserError(f"{text[at:end].strip()!r} is no region (NUMBER;%CONDITION%), number or operator")
        marks.append(found)
        at = found.end()
    formula, rest = _level(marks, 0)
    if rest:
        raise UserError(f"{rest[0].group().strip()!r} stands where an operator or the end should be")
    if not formula.judges:
        raise UserError("it compares nothing; write < > or = between two sums")
    return formula


_Marks: TypeAlias = Sequence[re.Match[str]]


def _level(marks: _Marks, depth: int) -> tuple[Formula, _Marks]:
    """The formula at the beginning of marks, of operators of a level and those that bind more, and what is left."""
    if depth == len(_LEVELS):
        return _operand(marks)
    formula, marks = _level(marks, depth + 1)
    while marks and (operator := marks[0]["mark"]) and operator in _LEVELS[depth]:
        other, marks = _level(marks[1:], depth + 1)
        if any(side.judges != (depth == 0) for side in (formula, other)):
            what = "comparisons" if depth == 0 else "surprisals or numbers"
            raise UserError(f"{operator} stands between {what}, and one side is something else; group with ( )")
        formula = Formula(operator, (formula, other))
    return formula, marks


def _operand(marks: _Marks) -> tuple[Formula, _Marks]:
    if not marks:
        raise UserError("it ends where a region, a number or ( should be")
    first, rest = marks[0], marks[1:]
    if first["region"]:
        region = 0 if first["region"] == "*" else int(first["region"])
        if region == 0 and first["region"] != "*":
            raise UserError("regions are numbered from 1")
        return Formula(condition=first["condition"], region=region), rest
    if first["number"]:
        return Formula(number=float(first["number"])), rest
    if first["mark"] in "+-" and rest and rest[0]["number"]:
        return Formula(number=float(first["mark"] + rest[0]["number"])), rest[1:]
    if (closing := _BRACKETS.get(first["mark"])) is None:
        raise UserError(f"{first['mark']!r} stands where a region, a number or ( should be")
    formula, rest = _level(rest, 0)
    if not rest or rest[0]["mark"] != closing:
        raise UserError(f"a {first['mark']} is not closed")
    return formula, rest[1:]


class Sentence(NamedTuple):
    """A sentence of a suite: its item and condition, and the numbers and texts of its regions, some of them empty."""

    item: str
    condition: str
    numbers: tuple[int, ...]
    texts: tuple[str, ...]

    def stimulus(self, line: int, options: TextOptions) -> Stimulus:
        """As a sentence to be read with these options, with the regions that are not empty."""
        regions = tuple(text for text in self.texts if text)
        return Stimulus(line, joined(regions, options), {}, regions)


class Suite(NamedTuple):
    """A test suite.

    Attributes:
        name: as the suite has it, otherwise its file's.
        path: its file.
        metric: how the surprisals of a region's tokens become one value, a key of `METRICS`.
        names: what regions are called, by their number.
        conditions: of every item, in the order of the first.
        items: the names of the items.
        sentences: of each item in order, one for each condition.
        predictions: the formulas as they are written, and parsed.
    """

    name: str
    path: Path
    metric: str
    names: dict[int, str]
    conditions: tuple[str, ...]
    items: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    predictions: tuple[tuple[str, Formula], ...]


METRICS: dict[str, Any] = {
    "sum": np.sum,
    "mean": np.mean,
    "median": np.median,
    "range": np.ptp,
    "max": np.max,
    "min": np.min,
}


class _Region(msgspec.Struct):
    region_number: int
    content: str


class _Condition(msgspec.Struct):
    condition_name: str
    regions: list[dict[str, Any]]


class _Item(msgspec.Struct):
    item_number: int | str
    conditions: list[dict[str, Any]]


class _Prediction(msgspec.Struct):
    formula: str
    type: str = "formula"


class _Meta(msgspec.Struct):
    name: str = ""
    metric: str = "sum"


class _Suite(msgspec.Struct):
    items: list[dict[str, Any]]
    predictions: list[dict[str, Any]]
    meta: _Meta = msgspec.field(default_factory=_Meta)
    region_meta: dict[str, str] = {}


def read_suite(path: Path) -> Suite:
    """The suite of a JSON file; raises UserError, which names item, condition and region, where it is none."""
    try:
        raw: Any = parse_json(read_text(path, "give a suite of SyntaxGym"))
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error})") from None
    suite = _as(_Suite, raw, str(path))
    if suite.meta.metric not in METRICS:
        raise UserError(f"{path}: meta.metric is {suite.meta.metric!r}; write one of {', '.join(METRICS)}")
    items, sentences = list[str](), list[Sentence]()
    for number, record in enumerate(suite.items, start=1):
        entry = _as(_Item, record, f"{path}: item {number} of the file")
        items.append(str(entry.item_number))
        sentences += _of_item(entry, f"{path}: item {entry.item_number}")
    if not sentences or not suite.predictions:
        raise UserError(f"{path}: no {'predictions' if sentences else 'items'}; give a suite of SyntaxGym")
    if len(set(items)) < len(items):
        raise UserError(f"{path}: item {_twice(items)} is there twice; number them apart")
    predictions = list[tuple[str, Formula]]()
    for number, record in enumerate(suite.predictions, start=1):
        place = f"{path}: prediction {number}"
        prediction = _as(_Prediction, record, place)
        if prediction.type != "formula":
            raise UserError(f"{place}: its type is {prediction.type!r}; only formulas are known")
        try:
            predictions.append((prediction.formula, parse_formula(prediction.formula)))
        except UserError as error:
            raise UserError(f"{place}: {prediction.formula!r}: {error}") from None
    conditions = tuple(one.condition for one in sentences if one.item == items[0])
    found = {(one.item, one.condition): one.numbers for one in sentences}
    wanted = [(number, place) for number, (_, one) in enumerate(predictions, start=1) for place in one.places()]
    for item in items:
        for number, (condition, region) in wanted:
            place = f"{path}: item {item}, condition {condition}"
            if (item, condition) not in found:
                raise UserError(f"{place}: not there, but prediction {number} names it")
            if region and region not in found[item, condition]:
                raise UserError(f"{place}: no region {region}, which prediction {number} names")
        if missing := [one for one in conditions if (item, one) not in found]:
            raise UserError(f"{path}: item {item}, condition {missing[0]}: not there; give every item all conditions")
    if len(sentences) > len(items) * len(conditions):
        extra = next(one for one in sentences if one.condition not in conditions)
        raise UserError(f"{path}: item {extra.item}, condition {extra.condition}: item {items[0]} does not have it")
    order = {condition: place for place, condition in enumerate(conditions)}
    at = {item: place for place, item in enumerate(items)}
    return Suite(
        suite.meta.name or path.stem,
        path,
        suite.meta.metric,
        {int(number): name for number, name in suite.region_meta.items() if number.isdecimal()},
        conditions,
        tuple(items),
        tuple(sorted(sentences, key=lambda one: (at[one.item], order[one.condition]))),
        tuple(predictions),
    )


def _of_item(item: _Item, place: str) -> Iterator[Sentence]:
    conditions = list[str]()
    for number, record in enumerate(item.conditions, start=1):
        condition = _as(_Condition, record, f"{place}, condition {number} of the item")
        name = condition.condition_name
        regions = [
            _as(_Region, region, f"{place}, condition {name}, region {at} of the sentence")
            for at, region in enumerate(condition.regions, start=1)
        ]
        numbers = [region.region_number for region in regions]
        if len(set(numbers)) < len(numbers):
            raise UserError(f"{place}, condition {name}: region {_twice(numbers)} is there twice; number them apart")
        if numbers and min(numbers) < 1:
            raise UserError(f"{place}, condition {name}: region {min(numbers)}: regions are numbered from 1")
        texts = tuple(" ".join(region.content.split()) for region in regions)
        if not any(texts):
            raise UserError(f"{place}, condition {name}: all regions are empty; write a sentence")
        conditions.append(name)
        yield Sentence(str(item.item_number), name, tuple(numbers), texts)
    if not conditions:
        raise UserError(f"{place}: no conditions; give every item all conditions")
    if len(set(conditions)) < len(conditions):
        raise UserError(f"{place}, condition {_twice(conditions)}: it is there twice; name them apart")


def _twice(names: Sequence[object]) -> object:
    return next(name for name in names if names.count(name) > 1)


def _as(kind: type[RecordT], raw: Any, place: str) -> RecordT:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{place}: {error}; docs/questions.md shows the form") from None
