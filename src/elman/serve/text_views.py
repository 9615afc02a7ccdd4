"""Looks into a run on text: its mixture, its states, its words, minimal pairs, and another run beside it."""

import math
from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor

from elman.analysis.agreement import Components, principal_components
from elman.analysis.embedding import neighbourhoods, num_layers
from elman.analysis.mixture import components, effective_number, levels_of
from elman.config.inference import Sampling
from elman.data.minimal_pairs import Pair
from elman.decoding.sampling import draw
from elman.errors import UserError
from elman.evaluation.scoring import surprisal
from elman.learning.constraint import spectral_radii
from elman.network.model import LanguageModel
from elman.network.output.contexts import MixtureContexts
from elman.network.state import State
from elman.serve import answers, questions
from elman.serve.limits import Limits
from elman.serve.prefixes import begin
from elman.serve.tabs import Tab
from elman.serve.text_reader import Adapted, TextReader, marks_of, read_text, token_shown, words_of
from elman.serve.worker import Work
from elman.tasks.text.run import TextRun
from elman.tasks.text.suites import judge

COLUMNS, DRAWN = 16, 32
"""Texts that the model draws side by side, and tokens of each; their states give the principal components."""

SHOWN = 400  # the last marks of a text whose states are shown
CHUNK = 64  # symbols read in one unit of work


class TextViews(TextReader):
    """What can be shown of a run on text beside its predictions."""

    def __init__(self, name: str, run: TextRun, limits: Limits) -> None:
        super().__init__(name, run, limits)
        self.num_layers = num_layers(self.run)
        self._components: dict[int, Components] = {}
        self._radii: list[float] | None = None
        self.answers = {"states": self.states, "neighbours": self.neighbours, "pairs": self.pairs}
        if isinstance(self.run.model.output.contexts, MixtureContexts):
            self.answers["components"] = self.components

    def components(self, question: questions.Components, tab: Tab) -> Work[answers.Mixed]:
        """The weights of a mixture's components at a position, and what each predicts."""
        text, (model, unread, state), _ = yield from self.placed(question, tab)
        prior, each = _mixture(model, unread, state)
        position = text.length if question.position is None else question.position
        return self._mixed(levels_of(model), prior, each, question.count, position)

    @torch.inference_mode()
    def _mixed(self, levels: Sequence[int], prior: Tensor, each: Tensor, count: int, position: int) -> answers.Mixed:
        probs, entropy = each.exp(), torch.special.entr(each.exp()).sum(-1) / math.log(2)
        places = [levels[: at + 1].count(level) for at, level in enumerate(levels)]
        found = [
            answers.Component(
                name=f"{level}.{place}",
                layer=level,
                weight=float(weight),
                entropy=float(bits),
                words=self._likely(row, count),
            )
            for level, place, weight, bits, row in zip(levels, places, prior, entropy, probs, strict=True)
        ]
        shares = []
        for level in dict.fromkeys(levels):
            own = [at for at, one in enumerate(levels) if one == level]
            weight = float(prior[own].sum())
            mixed = (prior[own].unsqueeze(1) * probs[own]).sum(0) / max(weight, 1e-300)
            shares.append(answers.LayerShare(layer=level, weight=weight, words=self._likely(mixed, count)))
        in_use = float(effective_number(prior.numpy(force=True)))
        return answers.Mixed(components=found, layers=shares, in_use=in_use, position=position)

    def _likely(self, probs: Tensor, count: int) -> list[answers.Likely]:
        best, words = probs.topk(min(count, len(probs))), self.run.vocabulary.words
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [answers.Likely(token=token_shown(self.run, words[one]), probability=share) for one, share in rows]

    def states(self, question: questions.States, tab: Tab) -> Work[answers.Trajectory]:
        """The path of the state along a text, in the plane of its principal components."""
        last = self.num_layers - 1
        layer = last if question.layer is None else question.layer
        if layer > last:
            raise UserError(f"layer is {layer}; this model has the layers 0 (the input vectors) to {last}")
        basis = yield from self.basis(layer)
        adapted = tab.find(self.name, Adapted)
        text = read_text(self.run, question.text, known_only=adapted is not None)
        scored = yield from self.scored(text, tab)
        model = text.symbols.model if adapted is None else adapted.model
        states = yield from _along(model, [self.run.first, *text.symbols.inputs], layer)
        marks = [mark for mark in marks_of(self.run, text, scored) if mark.at is not None][-SHOWN:]
        places = [0, *(mark.at + mark.tokens for mark in marks if mark.at is not None)]
        if self._radii is None:
            self._radii = spectral_radii(self.run.model.core)
        return answers.Trajectory(
            labels=["", *("↵" if mark.ends else mark.text for mark in marks)],
            points=basis.project(states[places])[:, :3].round(5).tolist(),
            shares=basis.shares[:3].tolist(),
            norms=np.linalg.norm(states[places], axis=1).round(5).tolist(),
            radii=self._radii,
            layer=layer,
            layers=self.num_layers,
        )

    def basis(self, layer: int) -> Work[Components]:
        """The principal components of the states along texts that the model draws; computed once."""
        if layer not in self._components:
            model, draws = self.run.model, Generator(self.run.device).manual_seed(0)
            symbols = torch.full((1, COLUMNS), self.run.first, device=model.device)
            sampling, state, parts = Sampling(forbidden=self.run.unspeakable), begin(model, COLUMNS), []
            for _ in range(DRAWN):
                states, symbols, state = _grow(model, symbols, state, layer, sampling, draws)
                parts.append(states)
                yield
            self._components[layer] = principal_components(parts, count=3)
        return self._components[layer]

    def neighbours(self, question: questions.Neighbours, tab: Tab) -> Work[answers.Nearest]:  # noqa: ARG002
        """The words whose encoder vectors are nearest to a word's; none where it has no vector."""
        word = question.word.lower() if self.run.options.lowercase else question.word
        if word not in self.run.vocabulary.ids and not self.run.reads_spelling:
            yield
            return answers.Nearest(word=word, known=False, neighbours=[])
        (found,) = neighbourhoods(self.run.model, self.run.vocabulary, [word], question.count)
        yield
        near = [
            answers.Near(word=token_shown(self.run, one.word), cosine=min(1.0, one.cosine)) for one in found.neighbours
        ]
        return answers.Nearest(word=found.word, known=found.known, neighbours=near)

    def pairs(self, question: questions.Pairs, tab: Tab) -> Work[answers.JudgedPairs]:  # noqa: ARG002
        """The surprisal of both sentences of each pair in bits, each read by itself with its end."""
        found = list[answers.JudgedPair]()
        for place, pair in enumerate(question.pairs, start=1):
            judged = judge(self.run, [Pair(pair.good, pair.bad, "pairs", item=str(place))])
            bits = surprisal(judged.log_probs[0])
            same = judged.coded[0].same
            found.append(
                answers.JudgedPair(
                    good=None if same else float(bits[0]),
                    bad=None if same else float(bits[1]),
                    correct=None if same else bool(bits[0] < bits[1]),
                    unknown=list(dict.fromkeys(judged.coded[0].unknown)),
                )
            )
            yield
        right = [one.correct for one in found if one.correct is not None]
        return answers.JudgedPairs(pairs=found, accuracy=sum(right) / len(right) if right else None)


def compare(first: TextReader, second: TextReader, question: questions.Compare, tab: Tab) -> Work[answers.Compared]:
    """A text under two runs; words that they read otherwise, or that one does not know, have no difference."""
    sides = []
    for service in (first, second):
        text = read_text(service.run, question.text)
        scored = yield from service.scored(text, tab)
        total = sum(one.bits for one in scored)
        sides.append((list(words_of(service.run, text, scored)), total))
    (left, left_total), (right, right_total) = sides
    same = [word.lower() for word, *_ in left] == [word.lower() for word, *_ in right]
    others: Iterable[tuple[str, float | None, bool]] = right if same else repeat(("", None, False), len(left))
    rows = [
        _compared(word, one, other, unknown=lacks or also)
        for (word, one, lacks), (_, other, also) in zip(left, others, strict=True)
    ]
    unknown = [sum(flag for *_, flag in side) for side in (left, right)]
    return answers.Compared(words=rows, first=left_total, second=right_total, same_words=same, unknown=unknown)


def _compared(word: str, first: float | None, second: float | None, *, unknown: bool) -> answers.ComparedWord:
    difference = None if first is None or second is None or unknown else second - first
    return answers.ComparedWord(word=word, first=first, second=second, difference=difference, unknown=unknown)


@torch.inference_mode()
def _mixture(model: LanguageModel, unread: Sequence[int], state: State) -> tuple[Tensor, Tensor]:
    """The weights [K] and log-probabilities [K, V] of the components after the symbols."""
    inputs = torch.tensor(unread, device=model.device).unsqueeze(1)
    if len(unread) > 1:
        _, state = model.trace(inputs[:-1], state)
    trace, _ = model.trace(inputs[-1:], state)
    prior, each = components(model, trace)
    return prior[0], each[0]


@torch.inference_mode()
def _grow(
    model: LanguageModel, symbols: Tensor, state: State, layer: int, sampling: Sampling, draws: Generator
) -> tuple[npt.NDArray[np.float32], Tensor, State]:
    """The states [B, H] of a layer after symbols [1, B], symbols [1, B] drawn to follow them, and the state."""
    trace, state = model.trace(symbols, state)
    drawn = draw(model.output.log_probs(trace)[0], sampling, draws)
    return trace.raw[layer][0].float().numpy(force=True), drawn.unsqueeze(0), state


def _along(model: LanguageModel, symbols: Sequence[int], layer: int) -> Work[npt.NDArray[np.float32]]:
    """The states [n, H] of a layer after each symbol."""
    state, parts = begin(model), []
    for at in range(0, len(symbols), CHUNK):
        part, state = _trace(model, symbols[at : at + CHUNK], state, layer)
        parts.append(part)
        yield
    return np.concatenate(parts)


@torch.inference_mode()
def _trace(
    model: LanguageModel, symbols: Sequence[int], state: State, layer: int
) -> tuple[npt.NDArray[np.float32], State]:
    inputs = torch.tensor(symbols, device=model.device).unsqueeze(1)
    trace, state = model.trace(inputs, state)
    return trace.raw[layer][:, 0].float().numpy(force=True), state
