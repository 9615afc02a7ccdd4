"""A proposal: a recipe, the settings that fit it to some data, and the reasons; as a command it can be repeated."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elman.config.recipe import Recipe
from elman.config.toml import find, load_recipe
from elman.errors import command, counted

SHARE = 0.8
"""Of the minutes that there are, what is left for training steps; the rest is for reading, validation, evaluation."""

MOST_EPOCHS = 100

CLOCK = "training.minutes"

TIMING_ERROR = 4
"""The clock allows more epochs than were timed to fit, as on a busy machine, up to this multiple of them."""

MORE = 4  # of the epochs that are needed, what training has at most where validation may end it
EVALUATED, LEAST = 0.05, 0.5
"""Shares of the minutes: left for evaluation after training, and kept for training whatever the choice took."""

HELD_OUT = 0.05  # share of the pairs, trees or sentences of one file that each held-out split has, at most 2,000


class Proposal(NamedTuple):
    """A shipped recipe, by its path within the recipes, settings in the form of --set, and the reasons for them.

    `given` are settings of the user's own, each key once, which take the place of those that would be proposed.
    """

    recipe: str
    settings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def shown_recipe(self) -> str:
        return f"recipes/{self.recipe}"

    def load(self) -> Recipe:
        return load_recipe(find(self.recipe), self._all)

    def adding(self, settings: Iterable[str], *reasons: str) -> "Proposal":
        return self._replace(settings=(*self.settings, *settings), reasons=(*self.reasons, *reasons))

    def because(self, reason: str, *keys: str) -> "Proposal":
        """The proposal with the reason for the values of some keys, unless the user has set one of them."""
        return self if self.is_given(*keys) else self.adding((), reason)

    def under(self, settings: Sequence[str]) -> "Proposal":
        return self._replace(given=tuple({key_of(one): one for one in settings}.values()))

    def is_given(self, *keys: str) -> bool:
        """Whether the user has set one of these keys, or a table around it."""
        own = {key_of(one) for one in self.given}
        return any(key == one or key.startswith(f"{one}.") for key in keys for one in own)

    @property
    def _all(self) -> list[str]:
        """The settings, each key once, the user's own last."""
        every = (*self.settings, *self.given)
        last = {key_of(one): place for place, one in enumerate(every)}
        return [every[place] for place in sorted(last.values())]

    def command(self, data: str, out: Path, max_minutes: float | None, options: Sequence[str] = ()) -> str:
        """The command that trains the same run without a proposal."""
        words = [self.shown_recipe, "--data", data]
        words += [word for setting in self._all for word in ("--set", setting)]
        limit = [] if max_minutes is None else ["--max-minutes", f"{max_minutes:g}"]
        return command("train", *words, *options, "--out", out, *limit)


Speed = Callable[[Proposal], float]
"""The minutes that an epoch of a proposal takes, measured by a few steps on the machine."""


def setting(key: str, value: Any) -> str:
    """A setting as --set takes it; numbers, truth values and lists are written alike in JSON and TOML."""
    return f"{key}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"


def key_of(setting: str) -> str:
    """The key path of a setting.

    >>> key_of("training.epochs = 3")
    'training.epochs'
    """
    return setting.partition("=")[0].strip()


def changed(recipe: str, values: dict[str, Any], under: Sequence[str] = ()) -> tuple[str, ...]:
    """Settings for the values, by key path, that a recipe under some settings does not have already."""
    loaded = load_recipe(find(recipe), under)
    return tuple(setting(key, value) for key, value in values.items() if _value(loaded, key) != value)


def _value(record: Any, path: str) -> Any:
    for key in path.split("."):
        record = getattr(record, key, None)
    return list(record) if isinstance(record, tuple) else record


def epochs_that_fit(minutes: float, per_epoch: float, most: int) -> int:
    """How many epochs fit into the share of the minutes that is for training, at least 1 and at most `most`."""
    return max(1, min(most, int(SHARE * minutes / per_epoch)))


def in_time(minutes: float) -> str:
    """A time in seconds below two minutes, else in minutes.

    >>> in_time(0.25), in_time(12.4), in_time(0.004)
    ('15 seconds', '12 minutes', '0.24 seconds')
    """
    if minutes < 0.1:
        return f"{60 * minutes:.2g} seconds"
    return f"{60 * minutes:.0f} seconds" if minutes < 2 else f"{minutes:.0f} minutes"


def epochs_reason(epochs: int, per_epoch: float, minutes: float, needed: int) -> str:
    if per_epoch > minutes:
        return f"an epoch takes {in_time(per_epoch)}: training may stop within the first; give more --minutes"
    enough = "enough for data of this size" if epochs == needed else f"{needed} would be enough for data of this size"
    return f"{counted(epochs, 'epoch')} of {in_time(per_epoch)}; {enough}"


def timed(proposal: Proposal, needed: int, minutes: float, speed: Speed) -> Proposal:
    """The proposal with as many epochs as fit into the minutes, at most those that are needed."""
    per_epoch = speed(proposal)
    own = proposal.load().training.epochs if proposal.is_given("training.epochs") else None
    epochs = own or epochs_that_fit(minutes, per_epoch, needed)
    return proposal.adding(
        changed(proposal.recipe, {"training.epochs": epochs}),
        epochs_reason(epochs, per_epoch, minutes, needed),
    )


def by_the_clock(
    proposal: Proposal, most: int, minutes: float, spent: float, *, ended_by_validation: bool = True
) -> Proposal:
    """The proposal with the time of training, what the choice has spent left out, as it is where it fine-tunes.

    Its epochs are at most the number given, and as many as the clock allows. Epochs that the user has set stay.
    """
    training = proposal.load().training
    if training.fine_tune is not None:
        return proposal
    left = round(max(LEAST * minutes, (1 - EVALUATED) * minutes - spent), 3)
    settings = {CLOCK: left}
    what = f"the rate falls with the clock: at the latest after {in_time(left)} it is at its end"
    if not proposal.is_given("training.epochs"):
        epochs = max(training.epochs, min(most, TIMING_ERROR * training.epochs))
        settings["training.epochs"] = epochs
        if ended_by_validation:
            settings["training.patience"] = max(3, math.ceil(epochs / 4))
            what += ", or where validation has not improved for a quarter of the epochs"
    return proposal.because(what, CLOCK).adding(changed(proposal.recipe, settings, proposal.settings))


def needed_epochs(size: int, usual: int, epochs: int) -> int:
    """Epochs that are enough: `epochs` at the `usual` size, more for less data by the square root."""
    return max(2, min(MOST_EPOCHS, round(epochs * math.sqrt(usual / max(1, size)))))


def held_out(examples: int) -> dict[str, Any]:
    share = max(1, min(2000, int(HELD_OUT * examples)))
    return {"data.valid": share, "data.test": share}
