"""The settings that a sweep tries: lists of values, ranges, and how both are written after `--set`."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from elman.errors import UserError

_QUOTES, _PAIRS = "\"'", {"[": "]", "{": "}"}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"(float|log|int):({_NUMBER})\.\.({_NUMBER})(?:/(\d+))?")
_BEGINS_RANGE = re.compile(r"(float|log|int):")


class Values(msgspec.Struct, frozen=True, tag_field="kind", tag="values"):
    """Values one after another, each as TOML or as plain text."""

    texts: tuple[str, ...]

    def at(self, share: float) -> str:
        """The value at a share, 0 to 1, of the list."""
        return self.texts[min(len(self.texts) - 1, int(share * len(self.texts)))]

    @property
    def ends(self) -> tuple[str, ...]:
        return self.texts


class Range(msgspec.Struct, frozen=True, tag_field="kind", tag="range"):
    """Numbers from `low` to `high`, both included: evenly, evenly in their logarithm, or whole ones in steps."""

    scale: Literal["float", "log", "int"]
    low: float
    high: float
    step: int = 1

    def at(self, share: float) -> str:
        """The number at a share, 0 to 1, of the range, with four significant digits.

        Example:
            >>> Range("log", 1e-4, 1e-2).at(0.5), Range("int", 100, 300, 50).at(0.99), Range("float", 0.1, 0.5).at(0)
            ('0.001', '300', '0.1')
        """
        if self.scale == "int":
            places = int(self.high - self.low) // self.step + 1
            return str(int(self.low) + self.step * min(places - 1, int(share * places)))
        if self.scale == "log":
            return self.text(math.exp(math.log(self.low) + share * math.log(self.high / self.low)))
        return self.text(self.low + share * (self.high - self.low))

    def text(self, value: float) -> str:
        return str(int(value)) if self.scale == "int" else repr(min(self.high, max(self.low, float(f"{value:.4g}"))))

    @property
    def ends(self) -> tuple[str, ...]:
        return self.at(0.0), self.at(1.0)


Axis: TypeAlias = Values | Range


class Setting(msgspec.Struct, frozen=True):
    """One choice: the text of the value of every key that is varied."""

    values: tuple[tuple[str, str], ...]

    @property
    def settings(self) -> list[str]:
        return [f"{key}={text}" for key, text in self.values]


class Space(msgspec.Struct, frozen=True):
    """What is set for all runs, and the axes along which they differ, by their keys."""

    fixed: tuple[str, ...]
    axes: dict[str, Axis]

    def grid(self) -> list[Setting]:
        """Every combination of values; raises UserError where an axis is a range."""
        for key in (key for key, axis in self.axes.items() if isinstance(axis, Range)):
            raise UserError(f"--set {key}: a range is for --search random or optuna; list values for a grid")
        return list(map(self._setting, itertools.product(*(axis.ends for axis in self.axes.values()))))

    def drawn(self, seed: int, count: int) -> list[Setting]:
        """`count` different settings at random, or all there are; the first ones do not depend on the count."""
        found = dict[Setting, None]()
        for number in range(20 * count):
            shares = np.random.default_rng([seed, number]).random(len(self.axes)).tolist()
            found[self._setting(axis.at(share) for axis, share in zip(self.axes.values(), shares, strict=True))] = None
            if len(found) == count:
                break
        return list(found)

    def extremes(self) -> list[Setting]:
        """Settings in which every value of a list and both ends of every range occur."""
        ends = [axis.ends for axis in self.axes.values()]
        longest = max(map(len, ends), default=1)
        return list(dict.fromkeys(self._setting(end[place % len(end)] for end in ends) for place in range(longest)))

    def label(self, setting: Setting) -> str:
        """A setting in short, with as much of each key as distinguishes it.

        Example:
            >>> space = parse_settings(["model.core.size=8", "a.lr=1,2", "b.lr=3,4"])
            >>> space.label(space.grid()[1])
            'a.lr=1, b.lr=4'
        """
        names = short_names([key for key, _ in setting.values])
        return ", ".join(f"{names[key]}={text}" for key, text in setting.values) or "the recipe"

    def _setting(self, texts: Iterable[str]) -> Setting:
        return Setting(tuple(zip(self.axes, texts, strict=True)))


def short_names(keys: Sequence[str]) -> Mapping[str, str]:
    """The last parts of dotted keys, as many as make them differ."""
    names = dict[str, str]()
    for depth in range(1, max((key.count(".") for key in keys), default=0) + 2):
        shorter = {key: ".".join(key.split(".")[-depth:]) for key in keys if key not in names}
        counts = Counter(shorter.values())
        names |= {key: name for key, name in shorter.items() if counts[name] == 1}
    return {key: names.get(key, key) for key in keys}


def parse_settings(settings: Sequence[str]) -> Space:
    """The space of some `--set KEY=VALUE`, `KEY=VALUE,VALUE,...` or `KEY=RANGE`.

    Raises UserError where one cannot be read, or a key is set twice or is the seed.

    Example:
        >>> parse_settings(["model.output.activation=softmax,sigsoftmax", "training.epochs=2"]).fixed
        ('training.epochs=2',)
        >>> parse_settings(["training.optimiser.lr=log:1e-4..1e-1"]).axes
        {'training.optimiser.lr': Range(scale='log', low=0.0001, high=0.1, step=1)}
    """
    fixed, axes, keys = list[str](), dict[str, Axis](), set[str]()
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key or not text.strip():
            raise UserError(f"--set {setting}: write key.path=value, or several values with commas between")
        if key in keys:
            raise UserError(f"--set {setting}: {key} is set twice; write its values with commas between, in one --set")
        if key == "seed":
            raise UserError(f"--set {setting}: give the seeds with --seeds, such as --seeds 1-5")
        keys.add(key)
        axis = _axis(setting, text)
        if isinstance(axis, Values) and len(axis.texts) == 1:
            fixed.append(f"{key}={axis.texts[0]}")
        else:
            axes[key] = axis
    return Space(tuple(fixed), axes)


def _axis(setting: str, text: str) -> Axis:
    """What is written after a key; a range begins with its scale."""
    if _BEGINS_RANGE.match(text.strip()):
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            raise UserError(
                f"--set {setting}: write a range as float:0.1..0.5, log:1e-4..1e-1, int:100..800, or int:100..800/50 in"
                ' steps of 50; put a text that begins so in quotation marks: "log:"'
            )
        scale, low, high, step = found[1], float(found[2]), float(found[3]), int(found[4] or 1)
        whole = scale != "int" or (low.is_integer() and high.is_integer() and step >= 1)
        if not (low < high < math.inf and (low > 0 or scale != "log") and whole and (scale == "int" or not found[4])):
            rule = {"int": ", both whole numbers", "log": ", both above 0", "float": ""}[scale]
            raise UserError(f"--set {setting}: a range is from the lower to the higher number{rule}; steps are for int")
        return Range(scale, low, high, step)  # type: ignore[arg-type]
    try:
        texts = split_values(text)
    except ValueError as error:
        raise UserError(f"--set {setting}: {error}") from None
    if "" in texts:
        raise UserError(f"--set {setting}: a value between commas is empty")
    if len(set(texts)) < len(texts):
        twice = next(one for one in texts if texts.count(one) > 1)
        raise UserError(f"--set {setting}: {twice} is there twice")
    return Values(tuple(texts))


def split_values(text: str) -> list[str]:
    """The values between commas; commas within brackets, braces and quotation marks do not count.

    Raises ValueError where one of these is not closed.

    Example:
        >>> split_values('[200, 200],[400]'), split_values('"a, b",c'), split_values("don't,do")
        (['[200, 200]', '[400]'], ['"a, b"', 'c'], ["don't", 'do'])
    """
    values, begun, closing, quote, before, escaped = list[str](), 0, list[str](), "", ",", False
    for place, mark in enumerate(text):
        if quote:
            closed = mark == quote and not escaped
            escaped = mark == "\\" and quote == '"' and not escaped
            quote = "" if closed else quote
        elif mark in _QUOTES and before in ",=[{":
            quote = mark
        elif mark in _PAIRS and (closing or before == ","):
            closing.append(_PAIRS[mark])
        elif closing and mark == closing[-1]:
            closing.pop()
        elif mark == "," and not closing:
            values.append(text[begun:place].strip())
            begun = place + 1
        before = before if mark.isspace() else mark
    if quote or closing:
        raise ValueError(f"{quote or closing[-1]} is missing; put a text with commas or brackets in quotation marks")
    return [*values, text[begun:].strip()]
