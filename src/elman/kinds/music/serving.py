"""Answers of a run on music: how a piece is predicted, what may sound next, and what is drawn."""

import math
import secrets
from collections.abc import Sequence

import numpy as np
import torch
from torch import Generator, Tensor

from elman.kinds.music.pitches import Roll
from elman.kinds.music.run import MusicRun
from elman.network.state import State, select
from elman.serve import answers, questions
from elman.serve.limits import Limits
from elman.serve.prefixes import begin
from elman.serve.service import Service, place_in
from elman.serve.tabs import Tab
from elman.serve.worker import Stream, Work

DRAWS = 200  # next steps that are drawn to see how often each pitch sounds
CHUNK = 32  # steps read in one unit of work
QUARTER_SECONDS = 0.5  # of a quarter note, where a piece is played


class MusicService(Service[MusicRun]):
    """A run on music; a piece is the MIDI pitches that sound at each of its steps, and begins after silence."""

    static = "elman.kinds.music.static:write_music"
    kind, foreign = "music", ("text", "after", "top_k", "top_p")

    def __init__(self, name: str, run: MusicRun, limits: Limits) -> None:
        super().__init__(name, run, limits)
        self.pitches = run.inputs
        self.answers = {"score": self.score, "next": self.next, "generate": self.generate}

    def facts(self) -> answers.RunFacts:
        seconds = QUARTER_SECONDS / self.run.options.steps_per_quarter
        return self._facts(len(self.pitches), lowest=self.pitches.lowest, step_seconds=seconds)

    def score(self, question: questions.Score, tab: Tab) -> Work[answers.MusicScore]:  # noqa: ARG002
        """Every step of a piece with its surprisal."""
        frames = self._frames(question.roll)
        state, bits = begin(self.run.model), list[float]()
        for at in range(0, len(frames) - 1, CHUNK):
            part = frames[at : at + CHUNK + 1]
            log_prob, state = self._log_prob(part[:-1], part[1:], state)
            bits += (-log_prob / math.log(2)).tolist()
            yield
        steps = [
            answers.Step(notes=notes, bits=one)
            for notes, one in zip(self.pitches.sounding(_roll(frames[1:])), bits, strict=True)
        ]
        return answers.MusicScore(steps=steps, bits=sum(bits), computed=len(steps))

    def next(self, question: questions.Next, tab: Tab) -> Work[answers.NextNotes]:  # noqa: ARG002
        """How often each pitch sounds in the step at a position, by `DRAWS` draws with a fixed seed."""
        frames, state = yield from self._placed(question)
        shares = self._shares(frames[-1:], state, question.temperature)
        yield
        found = [(place + self.pitches.lowest, share) for place, share in enumerate(shares) if share > 0]
        return answers.NextNotes(pitches=[one for one, _ in found], shares=[one for _, one in found], draws=DRAWS)

    def generate(self, question: questions.Generate, tab: Tab) -> Stream[object]:  # noqa: ARG002
        """Steps that continue a piece, one event each."""
        frames, state = yield from self._placed(question, question.after_roll)
        seed = secrets.randbits(48) if question.seed is None else question.seed
        generator, frame = Generator(self.run.device).manual_seed(seed), frames[-1:]
        yield answers.Begun(seed=seed)
        for _ in range(question.drawn):
            frame, state = self._sample(frame, state, question.temperature, generator)
            (notes,) = self.pitches.sounding(_roll(frame))
            yield answers.DrawnStep(notes=notes)
        yield answers.Ended(reason="length")

    def _placed(self, question: questions.Weighed, after: Sequence[questions.Chord] = ()) -> Work[tuple[Tensor, State]]:
        """The frames [T, 1, P] up to a position, and the state before the last of them."""
        frames = self._frames([*question.roll[: place_in(question.position, len(question.roll), "steps")], *after])
        state = begin(self.run.model)
        for at in range(0, len(frames) - 1, CHUNK):
            state = self._read(frames[at : min(at + CHUNK, len(frames) - 1)], state)
            yield
        return frames, state

    def _frames(self, roll: Sequence[questions.Chord]) -> Tensor:
        """A silent frame and the frames of a roll, [T + 1, 1, P]; raises UserError where a pitch is out of range."""
        frames = np.zeros((len(roll) + 1, len(self.pitches)), np.float32)
        for step, notes in enumerate(roll, start=1):
            self.pitches.require(notes, f"step {step}")
            frames[step, np.array(notes, dtype=np.int64) - self.pitches.lowest] = 1
        return torch.from_numpy(frames).unsqueeze(1).to(self.run.device)

    @torch.inference_mode()
    def _log_prob(self, inputs: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        log_prob, state = self.run.model.log_prob(inputs, targets, state)
        return log_prob[:, 0].double(), state

    @torch.inference_mode()
    def _read(self, frames: Tensor, state: State) -> State:
        return self.run.model.trace(frames, state)[1]

    @torch.inference_mode()
    def _sample(self, frame: Tensor, state: State, temperature: float, generator: Generator) -> tuple[Tensor, State]:
        return self.run.model.sample(frame, state, temperature, generator)

    @torch.inference_mode()
    def _shares(self, frame: Tensor, state: State, temperature: float) -> list[float]:
        rows = torch.zeros(DRAWS, dtype=torch.int64, device=frame.device)
        generator = Generator(self.run.device).manual_seed(0)
        drawn, _ = self.run.model.sample(frame[:, rows], select(state, rows), temperature, generator)
        shares: list[float] = drawn[0].float().mean(0).tolist()
        return shares


def _roll(frames: Tensor) -> Roll:
    return frames[:, 0].to(torch.uint8).numpy(force=True)
