"""The task of music: frames of notes, whole pieces."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from elman.config.recipe import Recipe
from elman.data.catalog.known import info
from elman.data.windows import WHOLE, ColumnsOf, Part
from elman.drawing.piano_roll import PianoRoll
from elman.errors import counted
from elman.evaluation.perplexity import Score, evaluate
from elman.evaluation.result import Result
from elman.kinds.music.corpus import open_music
from elman.kinds.music.midi import require_mido, write_midi
from elman.kinds.music.pitches import Pitches
from elman.kinds.music.run import MusicRun, piece_result
from elman.kinds.music.tune import TEMPO
from elman.kinds.music.windows import PieceWindows
from elman.network.model import LanguageModel
from elman.network.output.choice import Chord, log_odds_of_notes
from elman.tasks.samples import Sample
from elman.tasks.splits import SplitTask
from elman.tasks.task import Size, copy_weights, require_no_random_windows

SAMPLE_STEPS = 128  # steps of the samples in a run folder
_STEPS, _PITCHES = {"nottingham": 176_561}, {"nottingham": 93}
"""Approximate training steps and pitches, where no count is published."""


class MusicTask(SplitTask):
    kind, run, opening = "music", MusicRun, open_music
    inputs: Pitches

    def require(self) -> None:
        require_no_random_windows(self.recipe.training, "pieces")
        require_mido()  # the samples are MIDI files: better refused now than after training

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        """Training steps and pitches of the recipe's own corpus, as published or approximate."""
        name = cls.own_corpus(recipe)
        published = info(name).published
        return Size(_STEPS.get(name) or published["train"], _PITCHES.get(name) or published["vocabulary"])

    def windows(self, max_extra: int | None) -> PieceWindows:  # noqa: ARG002 - windows of pieces are never random
        """The training pieces, in another order and, where the recipe asks for it, other keys each epoch."""
        pieces, training = self.corpus.split("train"), self.recipe.training
        columns, length = training.batch_size, training.window.length
        seed, transpose = self.recipe.seed, self.data.transpose
        return PieceWindows(pieces.frames, pieces.lengths, columns, length, seed=seed, transpose=transpose)

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        """Nats over the steps of whole pieces, in columns."""
        pieces, rules = self.corpus.split("valid"), self.data.evaluation
        windows = PieceWindows(pieces.frames, pieces.lengths, rules.streams, rules.length)
        return evaluate(model, ColumnsOf(windows, part))

    def begin(self, model: LanguageModel) -> None:
        """The log-odds of every note in the training pieces, where the recipe asks for them."""
        super().begin(model)
        if self.recipe.model.initialisation.output_bias == "unigram":
            frames = torch.from_numpy(self.corpus.split("train").frames)
            assert isinstance(model.output.choice, Chord)
            model.output.choice.begin_at(log_odds_of_notes(frames.sum(0), len(frames)))

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:  # noqa: ARG002 - no order
        """Every note with its frequency in training, and with that where it sounded, or not, a step before."""
        train = self.corpus.split("train")
        rows = []
        for name, held in (("notes' frequencies", False), ("notes held", True)):
            after = train.before if held else np.zeros_like(train.frames)
            odds = [
                log_odds_of_notes(*(torch.from_numpy(one.sum(0, np.int64)) for one in (train.frames * there, there)))
                for there in (1 - after, after)
            ]
            for split in map(self.corpus.split, splits):
                now, before = (torch.from_numpy(one).bool() for one in (split.frames, split.before))
                chances = torch.where(before & held, odds[1], odds[0]).sigmoid()
                drawn = torch.rand(chances.shape, generator=torch.Generator().manual_seed(0)) < chances
                nll = -torch.where(now, chances, 1 - chances).log().sum().item()
                accuracy = int((drawn & now).sum()) / max(1, int((drawn | now).sum()))
                rows.append(piece_result(Score(nll, len(now)), split, accuracy=accuracy, name=name))
        return rows

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        copy_weights(model, MusicRun(folder), "the same model section and pitches")

    def samples(self, run: MusicRun, count: int) -> list[Sample]:
        """Tunes, which are also written as sample-SEED.mid."""
        samples = []
        for seed in range(count):
            roll = run.compose(steps=SAMPLE_STEPS, seed=seed)
            write_midi(run.path / f"sample-{seed}.mid", roll, self.data.options)
            step = 60 / TEMPO / self.data.steps_per_quarter
            figure = PianoRoll(run.inputs.sounding(roll), step)
            samples.append(Sample(text=f"sample-{seed}.mid", seed=seed, temperature=1.0, figure=figure))
        return samples

    def summary(self) -> list[str]:
        parts = self.corpus.splits.items()
        lines = [f"{name:5} {len(one.frames):>11,} steps, {counted(len(one.lengths), 'piece')}" for name, one in parts]
        division = [f"divided: {self.corpus.division}"] if self.corpus.division else []
        left_out = [f"left out: {len(self.corpus.unreadable):,} that cannot be read"] if self.corpus.unreadable else []
        return [*lines, *division, *left_out, f"pitches {len(self.inputs)}"]
