"""A recipe and its settings for data of the user's own: look at the data, time a few steps, apply the rules."""

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch

from elman.config.data import Data
from elman.config.parts import find, members
from elman.config.text import TextOptions
from elman.data.catalog.known import locate
from elman.data.kinds import Look, all_files, look, name_of
from elman.data.text.block_reading import Progress
from elman.data.text.facts import text_facts
from elman.data.text.files import Files
from elman.data.text.sources import find_sections, require_all
from elman.errors import UserError, counted
from elman.tasks.estimate import estimate
from elman.tasks.open import open_task
from elman.tasks.proposal import text, text_model
from elman.tasks.proposal.proposal import MORE, Proposal, by_the_clock, needed_epochs, setting, timed
from elman.tasks.task import Task

FEW = 200  # tokens of the test split below which a reason warns of its figures
TIMED_SECONDS = 3.0  # of steps for each size that is measured


def propose(
    source: str,
    minutes: float,
    device: torch.device,
    settings: Sequence[str] = (),
    progress: Progress | None = None,
) -> Proposal:
    """A recipe and its settings for some data and the `minutes` on this machine, the time of the choice included.

    `settings` are the user's own: they apply to what is timed, and replace proposed ones of the same key.

    Raises UserError where the data are missing, or cannot be read as any kind.
    """
    started = time.monotonic()
    found, proposal, task, words = read(source, settings, progress)

    def speed(proposal: Proposal) -> float:
        if progress is not None:
            progress("timing a few steps", 0, 1)
        seconds = min(TIMED_SECONDS, 60 * minutes / 40)
        measured = estimate(proposal.load(), source, device, least_seconds=seconds)
        return float(measured["minutes_per_epoch"])

    splits = task.corpus.describe()["splits"]
    facts, held_out = splits["train"], int(splits["test"]["tokens"])
    size = int(facts["tokens"])
    if found.kind == "text":
        if found.what.startswith("text:"):
            proposal = proposal.adding((), found.what)
        extent = text_model.Extent(size, len(task.inputs), words)
        sized = text_model.sized(proposal, extent, minutes, speed)
        most = text_model.most_epochs(extent, sized.load().training.epochs)
    else:
        what = " to ".join(found.languages) if found.languages else found.kind
        titled = proposal.adding([setting("title", f"{name_of(source)} ({what})")])
        rules = _rules(str(found.kind))
        if hasattr(rules, "fitted"):
            titled = rules.fitted(titled, facts)
        needed = needed_epochs(size, *rules.USUAL)
        sized, most = timed(titled, needed, minutes, speed), MORE * needed
    spent = (time.monotonic() - started) / 60
    clocked = by_the_clock(sized, most, minutes, spent, ended_by_validation=found.kind != "text")
    few = f"the test split has {counted(held_out, task.recipe.data.reporting.unit)}: its figures are mostly chance"
    return clocked if held_out >= FEW else clocked.adding((), few)


def read(
    source: str, settings: Sequence[str] = (), progress: Progress | None = None
) -> tuple[Look, Proposal, Task, bool]:
    """What some data look like, the proposal that reads them, before their size counts, and the data as a task.

    Last, of a text, whether it is read in words. Raises UserError as `propose` does.
    """
    found, path = _look(source)
    proposals, words = _reading(found, path, settings)
    return found, *opened(proposals, source, progress), words


def _rules(kind: str) -> Any:
    """The module with the proposals of a kind of data, which its record names; raises UserError where it has none."""
    record = find(Data, kind)
    if record is None or record.proposal is None:
        raise UserError(f"no recipe can be proposed for {kind}; give a RECIPE (a .toml file) with --data")
    return resolve_name(record.proposal)


def _look(source: str) -> tuple[Look, Path]:
    path = locate(source)
    found = look(path)
    if found is None:
        there = Counter(file.suffix or "without an ending" for file in all_files(path))
        seen = ", ".join(f"{count:,} {ending}" for ending, count in there.most_common(5)) or "no file"
        raise UserError(
            f"{source}: no data are there that can be recognised (seen: {seen}; tried:"
            f" {', '.join(members(Data))}); give a text file, several by a pattern such as '{source}/*.txt', a folder"
            " with train.txt, valid.txt and test.txt, MIDI files, a table of numbers, or a RECIPE (a .toml) with --data"
        )
    if found.kind is None:
        raise UserError(f"{source}: this is {found.what}; {found.advice}")
    return found, path


def opened(proposals: Sequence[Proposal], source: str, progress: Progress | None = None) -> tuple[Proposal, Task]:
    """The first of some proposals that can read the data, and the data as a task.

    Raises UserError where none can, with the reason of the first.
    """
    first, *rest = proposals
    try:
        return first, open_task(first.load(), source, progress)
    except UserError:
        for proposal in rest:
            with contextlib.suppress(UserError):
                return proposal, open_task(proposal.load(), source, progress)
        raise


def _reading(found: Look, path: Path, settings: Sequence[str]) -> tuple[list[Proposal], bool]:
    """Proposals before the size is known, to be tried in order; of a text, whether it is read in words."""
    if found.kind == "text":
        facts = text.as_read(text_facts(path if path.is_file() else _training_files(path)), settings)
        return [text.reading(facts, cut=path.is_file(), given=settings)], facts.words
    proposals: list[Proposal] = _rules(str(found.kind)).proposals(found, path)
    return [proposal.under(settings) for proposal in proposals], True


def _training_files(path: Path) -> Files:
    options = TextOptions()
    sections = find_sections(path, options)
    require_all(sections, path, options)
    return sections["train"].files
