"""The result of an evaluation: one record from the evaluation to results.json, `--json` and the report."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from elman.errors import UserError
from elman.formats import read_json

RESULTS = "results.json"
"""The file of a run folder with its results."""


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
    """The measured output of a model of pairs, or of a parser, beside that of a baseline without a model.

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

    A field that does not apply is None and is not written.

    Attributes:
        nll: mean negative log-likelihood, nats per token (of music and series: per step; of trees: per constituent; of
            tags: per word).
        tokens: tokens (of music and series: steps; of trees: constituents) that were scored.
        run, data: where a command prints several.
        name: the baseline, in baselines.json.
        context: how the state is carried.
        bits_per_token, bits_per_character, bits_per_byte, bits_per_word: bits over these units.
        word_perplexity: exp of nats per word; None where the text has no spaces between words.
        unknown: tokens that are `<unk>`.
        accuracy: 0 to 1: the frame-level accuracy of music; of trees, the share of constituents labelled right; of
            tags, that of words; of pairs, the share of target symbols that are the most probable ones given those
            before.
        labels: of trees, the label accuracy (percent) of the network and of baselines, by their names.
        tagging: of tags, the measures (percent) of the network and of the baseline, by their names.
        confusions: of tags, those most often confused.
        nrmse: of series, RMSE of the one-step mean over the standard deviation of the split, over all columns.
        nrmse_by_column: the same of each column.
        streams, warm_up: as in `EvaluationWindows`.
        method: static, dynamic, cache, dynamic+cache, mc-dropout or ensemble; of networks that adapt, such as dynamic
            ensemble.
        members: of an ensemble, each model alone, and with n-gram models in it several networks without them.
    """

    run: str | None = None
    data: str | None = None
    name: str | None = None
    split: str
    nll: float
    perplexity: float
    bits_per_token: float | None = None
    bits_per_character: float | None = None
    bits_per_byte: float | None = None
    bits_per_word: float | None = None
    word_perplexity: float | None = None
    accuracy: float | None = None
    nrmse: float | None = None
    nrmse_by_column: dict[str, float] | None = None
    tokens: int
    unknown: int | None = None
    characters: int | None = None
    bytes: int | None = None
    words: int | None = None
    pieces: int | None = None
    pairs: int | None = None
    context: str | None = None
    streams: int | None = None
    warm_up: int | None = None
    method: str | None = None
    settings: dict[str, Any] | None = None
    model: str | None = None
    output: OutputQuality | None = None
    labels: dict[str, Estimate] | None = None
    tagging: dict[str, list[Estimate]] | None = None
    confusions: list[Confusion] | None = None
    members: "list[Result] | None" = None

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON writes it."""
        facts: dict[str, Any] = msgspec.to_builtins(self)
        return facts


def rows_of(found: Any) -> list[Result]:
    """The rows that a file of results holds, losses as of `with_infinite`.

    Raises msgspec.ValidationError where they are none.
    """
    if isinstance(found, list):
        found = [with_infinite(row) if isinstance(row, dict) else row for row in found]
    return msgspec.convert(found, list[Result])


def with_infinite(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its losses that are null, as JSON has no infinity, infinite."""
    changed: dict[str, Any] = {key: math.inf for key in ("nll", "perplexity") if row.get(key, 0) is None}
    if isinstance(by_column := row.get("nrmse_by_column"), dict):
        changed["nrmse_by_column"] = {name: math.inf if one is None else one for name, one in by_column.items()}
    return row | changed


def recorded_results(folder: Path) -> list[Result]:
    """The results that a run folder holds, none where it has no file of them; raises UserError where it is damaged."""
    path = folder / RESULTS
    found = read_json(path) if path.is_file() else []
    try:
        return rows_of(found)
    except msgspec.ValidationError as error:
        raise UserError(f"{path}: damaged ({error}); restore or remove the file") from None


def static_results(folder: Path) -> list[Result]:
    """Those of the model as it is, neither adapting nor with dropout; raises UserError as `recorded_results`."""
    return [one for one in recorded_results(folder) if one.method in (None, "static")]


def figures_of(rows: Iterable[Result]) -> dict[str, float]:
    """The figures of rows by `SPLIT/NAME`, or `SPLIT/MODEL/NAME` beside baselines; without counts and settings."""
    figures = dict[str, float]()
    for row in rows:
        values = {name: value for name in row.__struct_fields__ if isinstance(value := getattr(row, name), float)}
        values |= {one.name: one.value for one in (row.output.measures if row.output is not None else [])}
        values |= {f"{model}/accuracy": one.value for model, one in (row.labels or {}).items()}
        values |= {f"{model}/{one.name}": one.value for model, all_ in (row.tagging or {}).items() for one in all_}
        figures |= {f"{row.split}/{name}": value for name, value in values.items()}
    return figures
