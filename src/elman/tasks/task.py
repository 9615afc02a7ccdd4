"""What an experiment must know of its data: all that differs between words, music and pairs."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Sized
from pathlib import Path
from typing import Any, Protocol

import torch

from elman.data.windows import Windows
from elman.evaluation.result import Result
from elman.files import write_atomic
from elman.network.model import LanguageModel

Advance = Callable[[int, int], None] | None
"""Told how much is done, and how much there is."""


class Inputs(Sized, Protocol):
    """What a model reads: a vocabulary, or the pitches of a frame."""

    @property
    def digest(self) -> str:
        """Tells one from another."""


class Task(ABC):
    """Data and what is asked of a model of it.

    Attributes:
        inputs: the vocabulary or the pitches.
        counts: how often each word was seen, where there are words.
        words: these words.
        num_source: symbols of the source's vocabulary, where there are sources.
        digest: of the data.
        kind: what the data is, in a word.
        source: where it came from.
        in_perplexity: whether losses are told as perplexities; else as nats a step.

    """

    inputs: Inputs
    counts: Sequence[int] | None = None
    words: Sequence[str] | None = None
    num_source: int | None = None
    digest: str
    kind: str
    source: str
    in_perplexity: bool

    @abstractmethod
    def windows(self, max_extra: int | None) -> Windows:
        """The training split; `max_extra` caps random windows."""

    @abstractmethod
    def validate(self, model: LanguageModel) -> float:
        """The validation NLL (nats a token or a step) by the recipe's rules."""

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Begin a run folder: data.json and what belongs to it."""

    @abstractmethod
    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Copy the weights of a run into a model; raises UserError where they do not fit."""

    @abstractmethod
    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:
        """Evaluate the best model of a run on valid and test, draw samples, write both; the rows of results.json."""

    @abstractmethod
    def summary(self) -> list[str]:
        """Lines that say what data there is."""


def write_json(path: Path, value: Any) -> None:
    """Write JSON, wholly or not at all."""
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
