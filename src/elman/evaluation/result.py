"""The result of an evaluation: one record from the evaluation to results.json, `--json` and the report."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import msgspec

from elman.errors import UserError
from elman.formats import read_json

RESULTS = "results.json"  # the file of a run folder with its results


class Estimate(msgspec.Struct, frozen=True):
    """The value of a measure (such as BLEU) over all sentences with its 95 % interval, None where there is none.

    The signature states how the measure was computed, as publications report it.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    signature: str = ""


class OutputQuality(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The measured output of a model of pairs, or of a parser, and of a baseline without a model.

    Attributes:
        beam: hypotheses kept; 1 is greedy.
        copy_unknown: whether `<unk>` was replaced by the source symbol of the largest weight.
        constrained: whether the search was constrained to trees; None for other targets.
        search: how a parser searched; None for pairs.
        measures: of the model's output, the most important first.
    """

    beam: int
    copy_unknown: bool
    constrained: bool | None = None
    search: str | None = None
    measures: list[Estimate]
    baseline: list[Estimate]
    baseline_name: str


class Confusion(msgspec.Struct, frozen=True):
    """How often another tag was found where one is right, and how often that one is."""

    right: str
    found: str
    count: int
    total: int


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model on a split: a row of results.json, of baselines.json, or of `elman evaluate --json`.

    A field that does not apply is None and is not written. What only some kinds of data have is a measure, by its name:
    `result.accuracy` is `result.measures["accuracy"]`, and None where there is none. In files measures stand among the
    fields: numbers before `tokens`, counts after it, others before `members`.

    Attributes:
        nll: mean negative log-likelihood, nats per token (of music and series: per step; of trees: per constituent; of
            tags: per word).
        tokens: tokens (of music and series: steps; of trees: constituents) that were scored.
        run, data: where a command prints several.
        name: the baseline, in baselines.json.
        context: how the state is carried.
        streams, warm_up: as in `EvaluationWindows`.
        method: static, dynamic, cache, dynamic+cache, mc-dropout or ensemble; of networks that adapt, such as dynamic
            ensemble.
        members: of an ensemble, each model alone, and with n-gram models in it several networks without them.
        measures: of texts `bits_per_token`, `bits_per_character`, `bits_per_byte`, `bits_per_word` (bits over these
            units), `word_perplexity` (exp of nats per word), the last two only where spaces divide words, and counts;
            `unknown`: tokens that are `<unk>`; `accuracy`, 0 to 1: the frame-level accuracy of music, of trees the
            share of constituents labelled right, of tags the share of words, of pairs the share of target symbols that
            are the most probable ones given the ones before; of series `nrmse`, RMSE of the one-step mean over the
            standard deviation of the split, and `nrmse_by_column`; and the measures of `_COMPOSED`.
    """

    run: str | None = None
    data: str | None = None
    name: str | None = None
    split: str
    nll: float
    perplexity: float
    tokens: int
    context: str | None = None
    streams: int | None = None
    warm_up: int | None = None
    method: str | None = None
    settings: dict[str, Any] | None = None
    model: str | None = None
    members: "list[Result] | None" = None
    measures: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.measures.get(name)

    @classmethod
    def of(cls, **facts: Any) -> Self:
        """A result of its fields and measures, without the ones that are None."""
        fields = {name: facts.pop(name) for name in cls.__struct_fields__ if name in facts}
        return cls(**fields, measures={name: value for name, value in facts.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON writes it."""
        facts: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, members=None, measures={}))
        measures: dict[str, Any] = msgspec.to_builtins(self.measures)
        counts = {name: value for name, value in measures.items() if isinstance(value, int)}
        composed = {name: value for name, value in measures.items() if name in _COMPOSED}
        numbers = {name: value for name, value in measures.items() if name not in counts | composed}
        row = dict[str, Any]()
        for name, value in facts.items():
            row |= {**numbers, name: value, **counts} if name == "tokens" else {name: value}
        members = {} if self.members is None else {"members": [one.as_dict() for one in self.members]}
        return row | composed | members


_COMPOSED: dict[str, Any] = {
    "output": OutputQuality,
    "labels": dict[str, Estimate],
    "tagging": dict[str, list[Estimate]],
    "confusions": list[Confusion],
    "written": list[Estimate],
}
"""Measures that are no numbers: the output of a model of pairs or of a parser; of trees the label accuracy (percent) of
the network and of baselines; of tags the measures (percent) of the network and of the baseline, and the most frequent
confusions; of a baseline without probabilities the measures of what it writes.
"""


def written_by(name: str, split: str, count: int, measures: list[Estimate]) -> Result:
    """The row of a baseline that writes outputs for `count` inputs and gives them no probabilities."""
    return Result(
        name=name, split=split, nll=math.nan, perplexity=math.nan, tokens=count, measures={"written": measures}
    )


_NUMBERS = float | dict[str, float]


def result_of(row: Any) -> Result:
    """The result that a row of a file holds, without keys that are no measures.

    Raises msgspec.ValidationError where it is none.
    """
    if not isinstance(row, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(row).__name__}`")
    fields = {name: value for name, value in row.items() if name in Result.__struct_fields__ and name != "measures"}
    members = fields.pop("members", None)
    measures = {}
    for name, value in row.items():
        if name in _COMPOSED and value is not None:
            measures[name] = msgspec.convert(value, _COMPOSED[name])
        elif name not in Result.__struct_fields__ and isinstance(value, int | float | dict):
            measures[name] = value if isinstance(value, int) else msgspec.convert(value, _NUMBERS)
    found = msgspec.convert(fields, Result)
    others = None if members is None else [result_of(one) for one in members]
    return msgspec.structs.replace(found, measures=measures, members=others)


def with_infinite(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its losses that are null, as JSON has no infinity, infinite."""
    changed: dict[str, Any] = {key: math.inf for key in ("nll", "perplexity") if row.get(key, 0) is None}
    if isinstance(by_column := row.get("nrmse_by_column"), dict):
        changed["nrmse_by_column"] = {name: math.inf if one is None else one for name, one in by_column.items()}
    return row | changed


def recorded_results(folder: Path, name: str = RESULTS) -> list[Result]:
    """The results in a file of a run folder, with infinite losses (`with_infinite`); none without such a file.

    Raises UserError where it is damaged.
    """
    path = folder / name
    found = read_json(path) if path.is_file() else []
    try:
        rows = msgspec.convert(found, list[Any])
        return [result_of(with_infinite(row) if isinstance(row, dict) else row) for row in rows]
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: damaged ({error}); restore or remove the file") from None


def static_results(folder: Path) -> list[Result]:
    """The results of the model as it is, neither adapting nor with dropout; raises UserError as `recorded_results`."""
    return [one for one in recorded_results(folder) if one.method in (None, "static")]


def figures_of(rows: Iterable[Result]) -> dict[str, float]:
    """The figures of rows by `SPLIT/NAME`, or `SPLIT/MODEL/NAME` with baselines; without counts and settings."""
    figures = dict[str, float]()
    for row in rows:
        numbers = {"nll": row.nll, "perplexity": row.perplexity, **row.measures}
        values = {name: value for name, value in numbers.items() if isinstance(value, float)}
        values |= {one.name: one.value for one in (row.output.measures if row.output is not None else [])}
        values |= {f"{model}/accuracy": one.value for model, one in (row.labels or {}).items()}
        values |= {f"{model}/{one.name}": one.value for model, all_ in (row.tagging or {}).items() for one in all_}
        figures |= {f"{row.split}/{name}": value for name, value in values.items()}
    return figures
