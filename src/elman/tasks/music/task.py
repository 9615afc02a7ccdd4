"""Music: frames of notes, whole pieces."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

from elman import config
from elman.data.music.corpus import open_music
from elman.data.music.midi import require_mido, write_midi
from elman.data.music.pitches import Pitches
from elman.data.music.windows import PieceWindows
from elman.errors import UserError
from elman.evaluation.music import evaluate_pieces, notes_of
from elman.evaluation.perplexity import evaluate
from elman.evaluation.result import Result
from elman.network.model import LanguageModel
from elman.tasks.music.run import MusicRun
from elman.tasks.task import Advance, Task, write_json

SAMPLE_STEPS = 128
"""Steps of the samples in a run folder."""


class Music(Task):
    """Piano rolls.

    Raises:
        UserError: the music cannot be used, or the recipe asks for what only text has.

    """

    kind, in_perplexity = "music", False

    def __init__(self, recipe: config.Recipe, source: str) -> None:
        self.recipe = recipe
        _require_fit(recipe.training)
        require_mido()  # the samples are MIDI files: better said now than after training
        self.music = open_music(source, recipe.data.music)
        self.inputs, self.digest, self.source = Pitches(recipe.data.music.pitches), self.music.digest, source

    def windows(self, max_extra: int | None) -> PieceWindows:  # noqa: ARG002 - windows of pieces are never random
        """The training pieces, in another order each epoch."""
        pieces, training = self.music.split("train"), self.recipe.training
        return PieceWindows(
            pieces.frames, pieces.lengths, training.batch_size, training.window.length, seed=self.recipe.seed
        )

    def validate(self, model: LanguageModel) -> float:
        """Nats a step over whole pieces."""
        pieces, rules = self.music.split("valid"), self.recipe.evaluation
        return evaluate(model, PieceWindows(pieces.frames, pieces.lengths, rules.streams, rules.length)).nll

    def write(self, folder: Path) -> None:
        """data.json."""
        write_json(folder / "data.json", self.music.describe())

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Weights of a run on the same pitches with the same network."""
        theirs = MusicRun(folder).model.state_dict()
        ours = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        if ours != {name: tuple(tensor.shape) for name, tensor in theirs.items()}:
            raise UserError(f"--init {folder}: its network differs; use the same model section and pitches for both")
        model.load_state_dict(theirs)

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:
        """results.json over whole pieces; samples.json, and each sample as sample-SEED.mid."""
        run = MusicRun(out, device)
        results = [
            msgspec.structs.replace(evaluate_pieces(run.model, self.music.split(name), advance=advance), model="best")
            for name in ("valid", "test")
        ]
        write_json(out / "results.json", msgspec.to_builtins(results))
        samples = []
        for seed in range(len(prompts)):
            roll = run.tune(steps=SAMPLE_STEPS, seed=seed)
            write_midi(out / f"sample-{seed}.mid", roll, self.recipe.data.music)
            notes = notes_of(roll, run.inputs)
            samples.append({"text": f"sample-{seed}.mid", "seed": seed, "temperature": 1.0, "roll": notes})
        write_json(out / "samples.json", samples)
        return results

    def summary(self) -> list[str]:
        """Pieces and steps of each split."""
        lines = [
            f"{name:5} {len(pieces.frames):>11,} steps, {len(pieces.lengths):,} pieces"
            for name, pieces in self.music.splits.items()
        ]
        return [*lines, f"pitches {len(self.inputs)}"]


def _require_fit(training: config.Training) -> None:
    if training.window.random:
        raise UserError("training.window.random: windows of music are cut by pieces; set random = false")
    if training.slices != 1:
        raise UserError(f"training.slices = {training.slices}: a batch of pieces is not cut into slices; set it to 1")
