"""The functions of `import elman`: open a run; train a recipe; evaluate, sample and score with a run."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import torch

from elman.config.inference import Sampling
from elman.config.recipe import Recipe
from elman.config.toml import load_recipe
from elman.data.text.tokeniser import shown
from elman.errors import UserError
from elman.evaluation.result import Result
from elman.learning.folder import Watcher
from elman.learning.progress import Progress
from elman.learning.trainer import StopReason
from elman.network.device import faster_threads, usable_threads
from elman.tasks.evaluating import DEFAULT, EvaluationOptions
from elman.tasks.experiment import Experiment
from elman.tasks.hub import fetched, named
from elman.tasks.open import entitled, open_run
from elman.tasks.run import Run
from elman.tasks.text.model import TextModel, open_foreign
from elman.tasks.text.run import TextRun
from elman.tasks.tracking.trackers import OFF, names_of, tracked

AnyRun: TypeAlias = Run | Path | str  # an open run, or a run folder


class Trained(NamedTuple):
    """The best model with its recipe, and how training ended.

    `results` are the rows of results.json, of the valid and the test split; empty where training was interrupted.
    """

    run: Run
    outcome: StopReason
    results: list[Result]


class Generated(NamedTuple):
    """A sampled text, and its tokens."""

    text: str
    tokens: list[str]


class Scored(NamedTuple):
    """The tokens of a sentence, and the log-probability (nats) of each, float32 [n]."""

    tokens: list[str]
    log_probs: np.ndarray


def load(path: Path | str, device: torch.device | str = "cpu") -> Run | TextModel:
    """Open a run folder, or `hf://USER/NAME` from the Hub of Hugging Face, as the run of its kind of data.

    `"USER/NAME"` is one on the Hub, too, where neither that folder nor a folder USER is here. An ARPA file and a
    folder of transformers (or `hf://NAME`) are opened as a model that scores text. Raises UserError where the folder is
    not a run, or cannot be fetched.
    """
    folder = fetched(named(path))
    return open_foreign(folder, device, path) or open_run(folder, device)


def train(
    recipe: Recipe | Path | str,
    out: Path | str,
    *,
    data: Path | str | None = None,
    settings: Sequence[str] = (),
    device: torch.device | str = "cpu",
    resume: bool = False,
    init: Path | str | None = None,
    max_minutes: float | None = None,
    track: str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Trained:
    """Train a recipe, or its file such as `recipes/shakespeare/demo.toml`, into a run folder; evaluate its best model.

    `data` is a file, a folder or a known corpus (None: the recipe's own), and `settings` change a recipe that is a
    file: `["training.epochs=3"]`. `resume` resumes the run in `out`; `init` is a run from whose weights to start.
    `track` names trackers, divided by commas: tensorboard, wandb, mlflow, trackio; a resumed run remembers its own.
    `threads` of the CPU; in a notebook they are measured by default (`elman.network.device.faster_threads`),
    elsewhere torch's, and afterwards as before. `progress` prints the course of training on standard error, by default
    in a notebook.

    Raises UserError where the recipe, the data and the folder do not fit each other, or the loss is not finite.
    """
    if isinstance(recipe, Recipe) and settings:
        raise UserError("settings change a recipe that is a file; give elman.load_recipe the file and these settings")
    if threads is not None and threads < 1:
        raise UserError(f"threads = {threads}: give 1 or more, or leave it out")
    read = recipe if isinstance(recipe, Recipe) else load_recipe(recipe, settings)
    read = entitled(read, data, settings)
    start = None if init is None else Path(init)
    extras = () if track is None else names_of(track)
    experiment = Experiment(
        read, Path(out), data=data, device=device, resume=resume, init=start, extras=extras, settings=settings
    )
    notebook, before = "ipykernel" in sys.modules, torch.get_num_threads()
    if threads is None:
        threads = faster_threads() if notebook and experiment.device.type == "cpu" else before
    lines = [_Lines()] if progress or (progress is None and notebook) else []  # type: ignore[abstract]
    torch.set_num_threads(usable_threads(threads))
    try:
        with tracked(experiment, off=track == OFF) as trackers:
            outcome = experiment.train([*lines, *trackers], max_minutes)
            results = [] if outcome is StopReason.INTERRUPTED else experiment.finish()
    finally:
        torch.set_num_threads(before)
    return Trained(open_run(experiment.out, experiment.device), outcome, results)


class _Lines(Watcher):
    """Prints a line when training begins, at every validation and event, and else after ten seconds."""

    def begin(self, epochs: int, windows: int, progress: Progress) -> None:  # noqa: ARG002 - of all watchers
        self.steps, self.spoken = epochs * windows, time.monotonic()
        self._say(f"training: {epochs} epochs, about {self.steps:,} steps, {torch.get_num_threads()} threads")

    def step(self, progress: Progress, tokens: int, loss: float) -> None:  # noqa: ARG002 - of all watchers
        if time.monotonic() - self.spoken > 10:
            self._say(f"step {progress.step:,} of {self.steps:,}: loss {loss:.3f}")

    def record(self, record: dict[str, Any]) -> None:
        if record["kind"] == "valid":
            self._say(f"epoch {record['epoch']:.2f}: validation {record['nll']:.4f}{', the best' * record['best']}")
        elif record["kind"] == "event":
            self._say(f"epoch {record['epoch']:.2f}: {record['message']}")

    def _say(self, line: str) -> None:
        self.spoken = time.monotonic()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def evaluate(
    run: AnyRun, split: str | None = None, data: Path | str | None = None, options: EvaluationOptions = DEFAULT
) -> Result:
    """The result of a split of the run's own data, or of other data; see `Run.evaluate`.

    `split` and `data` take precedence over `options`, whose split is by default the test split.
    """
    opened = run if isinstance(run, Run) else open_run(named(run))
    split, data = split or options.split, options.data if data is None else data
    return opened.evaluate(msgspec.structs.replace(options, split=split, data=data))


def generate(
    run: AnyRun,
    prompt: str = "",
    *,
    count: int = 100,
    seed: int = 0,
    sampling: Sampling | None = None,
    unk: bool = False,
) -> Generated:
    """Sample `count` tokens of text after a prompt; other runs have `compose`, `translate` or `forecast`.

    `unk`: whether `<unk>` may be among them. Raises UserError where it is not a run on text, or a number of `sampling`
    is out of range.
    """
    text = _text(run)
    tokens = text.words(prompt, count=count, seed=seed, sampling=sampling, unk=unk)
    return Generated(shown(tokens, text.options), tokens)


def score(run: AnyRun | TextModel, lines: Sequence[str] | str, *, document: bool = False) -> list[Scored]:
    """The log-probability of every token of every sentence; with `document` each in the context of those before it.

    There is one result for each text of a list, in its order: a text is one sentence, whatever line breaks it holds,
    and an empty one is `<eos>` alone where the run has it. A string is the lines that it holds, or the paragraphs
    where those are the sentences of the run (`eos = "paragraph"`).

    Raises UserError where it is not a run on text, one of a list is no text, or the vocabulary lacks a word or a
    character and has no `<unk>`.
    """
    if isinstance(run, Path | str):
        folder = fetched(named(run))
        opened: TextModel = open_foreign(folder, name=run) or TextRun(folder)
    else:
        opened = _text(run) if isinstance(run, Run) else run
    return [Scored(tokens, log_probs) for tokens, log_probs in opened.score(lines, document=document)]


def _text(run: AnyRun) -> TextRun:
    return run if isinstance(run, TextRun) else TextRun(run.path if isinstance(run, Run) else fetched(named(run)))
