"""A run on music: what can be asked of the model in its folder."""

from pathlib import Path

import numpy as np
import torch

from elman.data.music.corpus import MusicCorpus, open_music
from elman.data.music.pitches import Pitches, Roll
from elman.tasks.run import MUSIC, OpenedRun


class MusicRun(OpenedRun):
    """A trained model of music with its recipe.

    Example (see docs/music.md)::

        run = MusicRun("runs/nottingham-gru")
        roll = run.tune(steps=64, seed=1)

    Args:
        path: the run folder.
        device: where the model lives.

    Raises:
        UserError: the folder is not a run on music.

    """

    kind = MUSIC
    inputs: Pitches

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        super().__init__(path, device)
        self.inputs = Pitches(self.recipe.data.music.pitches)

    def music(self, data: str | Path | None = None) -> MusicCorpus:
        """The run's music, or other music in the form that the run reads."""
        return open_music(self.facts["source"] if data is None else data, self.recipe.data.music)

    @torch.inference_mode()
    def tune(self, *, steps: int, seed: int = 0, prompt: Roll | None = None, temperature: float = 1.0) -> Roll:
        """Draw a tune, uint8 [steps, P].

        Args:
            steps: how many steps to draw.
            seed: of the draws.
            prompt: frames [n, P] that the tune goes on from; the result does not repeat them.
            temperature: divides the log-odds of each note; below 1 likelier notes, 0 always the likelier of on and off.

        """
        generator = torch.Generator(self.device).manual_seed(seed)
        silence = np.zeros((1, len(self.inputs)), np.uint8)
        read = silence if prompt is None else np.concatenate([silence, prompt])
        frames, state = torch.from_numpy(read).unsqueeze(1).to(self.device), self.model.begin(1)
        if len(frames) > 1:
            _, state = self.model.trace(frames[:-1], state)
        frame, roll = frames[-1:], []
        for _ in range(steps):
            frame, state = self.model.sample(frame, state, temperature, generator)
            roll.append(frame.view(-1).to(torch.uint8).cpu())
        return torch.stack(roll).numpy() if roll else silence[:0]
