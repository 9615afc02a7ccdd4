"""Runs compared: groups that differ by their seed alone, differences of recipes, verdicts."""

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elman.config.record import TOKENS, Reporting
from elman.config.toml import flatten
from elman.errors import notice
from elman.evaluation.spread import Spread, spread
from elman.report.folder import RunFolder

if TYPE_CHECKING:
    from elman.evaluation.statistics import Comparison

MOST_SETTINGS, MOST_LETTERS = 4, 80
"""How many settings, and letters of them, tell runs of one title apart; where there are more, their folders do."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs of one recipe on one text, each with another seed: means and standard deviations of their finite figures.

    `paired` compares it with the one of lowest test loss on the same tokens, a positive difference favouring that one;
    None where that was not done.
    """

    name: str
    runs: tuple[RunFolder, ...]
    paired: "Comparison | None" = None

    @property
    def scale(self) -> Reporting:
        """How its losses are reported."""
        return self.runs[0].scale

    @property
    def data(self) -> str:
        """The text and its digest."""
        data = self.runs[0].data
        return "" if data is None else f"{data.name} {data.digest[:8]}" if data.digest else data.name

    @functools.cached_property
    def valid(self) -> Spread | None:
        """Of the validation losses."""
        return spread(run.valid_loss for run in self.runs)

    @functools.cached_property
    def test(self) -> Spread | None:
        """Of the test losses."""
        return spread(run.test_loss for run in self.runs)

    @functools.cached_property
    def minutes(self) -> Spread | None:
        """Of the training times."""
        return spread(run.metrics.seconds / 60 for run in self.runs)


def group_runs(runs: Sequence[RunFolder]) -> list[Group]:
    """Runs by everything but their seed, in the order in which each group first appears.

    Runs with equal seeds are no replicates: the second run with a seed stands in another group, and a notice names it.
    A run that was continued under a changed recipe differs from one that had that recipe from its beginning.
    """
    groups: dict[tuple[str, int], list[RunFolder]] = {}
    before = Counter[tuple[str, int | None]]()
    for run in runs:
        shown = sorted((key, _shown(value)) for key, value in _leaves(run).items() if key != "seed")
        own = (repr((shown, run.data.digest if run.data else None)), run.recipe.seed)
        groups.setdefault((own[0], before[own]), []).append(run)
        before[own] += 1
    if repeated := [str(run.path) for (_, place), members in groups.items() if place for run in members]:
        notice(
            f"{', '.join(repeated)}: another of these runs has the same recipe, data and seed; runs with equal seeds"
            " are no replicates and are not averaged"
        )
    titled: dict[str, list[tuple[RunFolder, ...]]] = {}
    for members in groups.values():
        titled.setdefault(members[0].title, []).append(tuple(members))
    folders = dict(zip(map(id, runs), run_labels(runs), strict=True))
    names: dict[int, str] = {}
    for title, alike in titled.items():
        firsts = [members[0] for members in alike]
        differing = _settings(firsts) or [folders[id(first)] for first in firsts]
        names |= {
            id(first): title if len(alike) == 1 else f"{title} ({one})"
            for first, one in zip(firsts, differing, strict=True)
        }
    return [Group(names[id(members[0])], tuple(members)) for members in groups.values()]


def _settings(runs: Sequence[RunFolder]) -> list[str]:
    """For each run the settings in which it differs from the others, if they are few and distinguish all runs."""
    rows = differences(runs)
    if not 0 < len(rows) <= MOST_SETTINGS:
        return []
    short = [key.rpartition(".")[2] for key, _ in rows]
    keys = short if len(set(short)) == len(short) else [key for key, _ in rows]
    named = [
        ", ".join(f"{key} {values[place] or 'none'}" for key, (_, values) in zip(keys, rows, strict=True))
        for place in range(len(runs))
    ]
    return named if len(set(named)) == len(named) and max(map(len, named)) <= MOST_LETTERS else []


def run_labels(runs: Sequence[RunFolder]) -> list[str]:
    """The names of the folders, with as much of their paths as makes them differ."""
    parts = [run.path.resolve().parts for run in runs]
    labels: list[str] = []
    for depth in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(part[-depth:]) for part in parts]
        if len(set(labels)) == len(set(parts)):
            break
    return [
        f"{label} ({labels[: place + 1].count(label)})" if labels.count(label) > 1 else label
        for place, label in enumerate(labels)
    ]


def differences(runs: Sequence[RunFolder]) -> list[tuple[str, list[str]]]:
    """The keys, other than the seed and prose, at which recipes differ, with the value of each run ("" for none)."""
    prose = ("seed", "title", "notes", "citation", "expected.source")
    flat = list(map(_leaves, runs))
    keys = dict.fromkeys(key for leaves in flat for key in leaves if key not in prose)
    rows = [(key, [_shown(leaves.get(key)) for leaves in flat]) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]


def same_text(runs: Sequence[RunFolder]) -> bool:
    """Whether all runs with known data have read the same: only then are perplexities comparable."""
    return len({run.data.digest for run in runs if run.data is not None and run.data.digest}) <= 1


def against(value: float, other: float, scale: Reporting = TOKENS) -> str:
    """How a loss compares with another: perplexities by their ratio, nats per step by their difference.

    Example:
        >>> against(73.0, 104.0), against(104.0, 73.0), against(73.0, 73.0)
        ('29.8 % below', '42.5 % above', 'level with')
    """
    if not scale.in_perplexity:
        if abs(value - other) < 0.0005:
            return "level with"
        return f"{abs(value - other):.3f} nats per {scale.unit} {'below' if value < other else 'above'}"
    change = 100 * (value / other - 1)
    if abs(change) < 0.05:
        return "level with"
    size = f"{abs(change):.1f}" if abs(change) < 1e6 else f"{abs(change):.2g}"
    return f"{size} % {'below' if change < 0 else 'above'}"


def verdict(run: RunFolder) -> str | None:
    """The network against the strongest baseline of the same split, test before valid; None without either.

    Or that its loss is not finite.
    """
    for split in ("test", "valid"):
        result = run.result(split)
        rivals = [row for row in run.baselines if row.split == split and row.name]
        if result is None or not rivals:
            continue
        best, scale = min(rivals, key=lambda row: row.nll), run.scale
        if not math.isfinite(result.nll):
            return f"On the {split} split the loss of the network is not finite."
        ours, theirs = scale.of(result.nll), scale.of(best.nll)
        digits = 1 if scale.in_perplexity else 3
        first, second = (f"{one:.{digits}f}" if one < 1e9 else f"{one:.3g}" for one in (ours, theirs))
        figures = f"{scale.name} {first} to {second}"
        return (
            f"On the {split} split the network is {against(ours, theirs, scale)} the {best.name} baseline: {figures}."
        )
    return None


def published_verdict(run: RunFolder) -> str | None:
    """The network against the published test perplexity or NLL; None where the recipe expects none, or it diverged."""
    result, number = run.result("test"), published(run, "test")
    if result is None or number is None or not math.isfinite(result.nll):
        return None
    scale = run.scale
    return f"Its test {scale.name} is {against(scale.of(result.nll), number, scale)} the published {number:g}."


def published(run: RunFolder, split: str) -> float | None:
    """The published loss of the recipe: that after fine-tuning if the run has reached it."""
    expected = run.recipe.expected
    return None if expected is None else expected.of(split, fine_tuned=run.fine_tuned)


def _leaves(run: RunFolder) -> dict[str, Any]:
    """The recipe by key path, and with what it was continued, and when."""
    changes = [f"{event.message} (step {event.step})" for event in run.metrics.events if event.event == "recipe"]
    return dict(flatten(run.recipe_table)) | ({"continued with": "; ".join(changes)} if changes else {})


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
