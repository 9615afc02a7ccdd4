"""A run on music, and what can be computed with the model in its folder."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from elman.config.inference import Sampling
from elman.config.recipe import Recipe
from elman.errors import notice
from elman.evaluation.dynamic import COLUMNS, SEGMENT
from elman.evaluation.perplexity import Score, traces
from elman.evaluation.result import Result
from elman.jobs import Advance, advancing
from elman.kinds.music.corpus import MusicCorpus, Pieces, open_music
from elman.kinds.music.pitches import Pitches, Roll
from elman.kinds.music.windows import PieceWindows
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.tasks.evaluating import DEFAULT, AdaptationSource, EvaluationOptions
from elman.tasks.splits import SplitRun


def piece_result(score: Score, pieces: Pieces, **others: Any) -> Result:
    """The result of a score over whole pieces, with other figures; tokens are steps."""
    return score.result(pieces.name, pieces=len(pieces.lengths), context="whole pieces", **others)


COLUMNS_READ = 20  # pieces read side by side to evaluate; it affects only the speed


class MusicRun(SplitRun):
    """A trained model of music with its recipe; raises UserError where the folder is not a run on music.

    Example (see docs/music-and-series.md)::

        run = elman.load("runs/nottingham-gru")
        roll = run.compose(steps=64, seed=1)
    """

    service = "elman.kinds.music.serving:MusicService"
    kind, reads, allowed = "music", "pitches", ("streams", "skip_unreadable")
    inputs: Pitches

    def read_inputs(self) -> Pitches:
        return Pitches(self.options.pitches)

    def corpus(self, data: str | Path | None = None) -> MusicCorpus:
        """The run's music, or other music in the form that the run reads; how that was divided is reported."""
        corpus = self.opened(data, lambda source: open_music(source, self.options))
        if data is not None and corpus.division is not None:
            notice(f"{data} is divided: {corpus.division}")
        return corpus

    @staticmethod
    def build(recipe: Recipe, inputs: Pitches) -> LanguageModel:
        return build_model(recipe.model, len(inputs))

    def uniform_nll(self) -> float:
        """Nats per step of a model for which every note is as likely as not."""
        return len(self.inputs) * math.log(2)

    def asked(self, options: EvaluationOptions) -> MusicCorpus:
        """The data that an evaluation asks for; where it asks for that, unreadable files are left out from here on."""
        if options.skip_unreadable:
            self.options = msgspec.structs.replace(self.options, skip_unreadable=True)
        return self.corpus(options.data)

    @torch.inference_mode()
    def result(
        self, corpus: MusicCorpus, name: str, options: EvaluationOptions = DEFAULT, advance: Advance = None
    ) -> Result:
        """NLL (nats per step, every step counted once) and accuracy of a split.

        Accuracy as Bay et al. (2009) define it and Boulanger-Lewandowski et al. (2012) report it for prediction:
        TP / (TP + FP + FN) over all notes of all steps, where at each step a frame is drawn from the model given the
        true frames before it. The draws have a seed of their own and are in the order of the steps, however many pieces
        are read side by side. `advance` is called with (windows done, windows in all).
        """
        split = corpus.split(name)
        model, windows = self.model, PieceWindows(split.frames, split.lengths, options.streams or COLUMNS_READ, 70)
        generator, total, parts = torch.Generator(model.device).manual_seed(0), 0.0, []
        for batch, positions, trace in advancing(traces(model, windows), windows.num_windows, advance):
            total -= model.output.log_prob(trace, batch.targets)[batch.mask].cpu().double().sum().item()
            parts.append((positions[positions >= 0], *(one[batch.mask].cpu() for one in model.output.contexts(trace))))
        order, vectors, priors = (torch.cat(part) for part in zip(*parts, strict=True))
        drawn = []
        for some in order.argsort().split(1024):
            each = vectors[some].to(model.device), priors[some].to(model.device)
            drawn.append(model.output.drawn(*each, 1.0, generator).bool().cpu())
        found, true = torch.cat(drawn), torch.from_numpy(split.frames).bool()
        hits, union = int((found & true).sum()), int((found | true).sum())
        return piece_result(Score(total, len(order)), split, accuracy=hits / max(1, union), method="static")

    def adaptation_source(self, options: EvaluationOptions = DEFAULT) -> AdaptationSource:
        options.require(self.kind, "skip_unreadable")
        music = self.asked(options)
        return self._source(music.split(options.split), music.source)

    def _source(self, pieces: Pieces, data: str) -> AdaptationSource:
        frames, lengths = pieces.frames, pieces.lengths

        def beginning(size: int | None) -> AdaptationSource:
            """The pieces that end within the first `size` steps, at least one; None: all."""
            whole = len(frames) if size is None else size
            some = lengths[: max(1, int(np.searchsorted(np.cumsum(lengths), whole, side="right")))]
            return self._source(dataclasses.replace(pieces, lengths=some, frames=frames[: some.sum()]), data)

        return AdaptationSource(
            data,
            pieces.sha256,
            len(frames),
            beginning=beginning,
            column=lambda length: (self.model, PieceWindows(frames, lengths, 1, length)),
            statistics_windows=lambda: PieceWindows(frames, lengths, COLUMNS, SEGMENT),
            result=lambda score: piece_result(score, pieces),
            discrete=False,
        )

    @torch.inference_mode()
    def compose(self, *, steps: int, seed: int = 0, prompt: Roll | None = None, temperature: float = 1.0) -> Roll:
        """Draw a tune, uint8 [steps, P], which continues the frames [n, P] of the prompt without repeating them.

        The temperature divides the log-odds of each note; below 1 likelier notes, 0 always the likelier of on and off.
        Raises UserError where it is out of range.
        """
        Sampling(temperature=temperature).check()
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
