"""The labels of sequences that are longer than they: beams for networks trained by CTC or as transducers.

A prior adds what else is known of labels, such as the log-probabilities of a language model.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from elman.nn.embedding import Embedding
from elman.nn.functional import transducer_nll
from elman.nn.output import Reduction

Labels: TypeAlias = tuple[int, ...]
Prior: TypeAlias = Callable[[Labels], Sequence[float]]
"""From labels to the V logarithms that each next label adds to a hypothesis; at the place of the blank, their end."""


P = TypeVar("P")


class Hypothesis(NamedTuple):
    """Labels that a beam has found, with the two parts of their score."""

    labels: Labels
    log_prob: float
    """log p(labels | the sequence), nats, of the alignments that the beam has kept"""
    prior: float
    """what the prior adds"""


def ctc_beam(log_probs: Tensor, width: int = 16, blank: int = 0, prior: Prior | None = None) -> list[Hypothesis]:
    """The likeliest labels under a network trained by `torch.nn.CTCLoss`, the best first.

    Prefix search (Graves & Jaitly 2014, Towards end-to-end speech recognition with recurrent neural networks, ICML,
    algorithm 1): p(l, t) is the sum of the alignments of l with the frames up to t, in two parts, since a label that
    follows itself is another one only after a blank:

        p_blank(l, t) = (p_blank(l, t-1) + p_label(l, t-1)) y_t(blank)
        p_label(l k, t) = p_label(l k, t-1) y_t(k) + (p_blank(l, t-1) + [k is not the last of l] p_label(l, t-1)) y_t(k)

    Args:
        log_probs: log y [T, V] of the frames of one sequence
        width: hypotheses that are kept after each frame
        blank: the label that says nothing
        prior: None: no prior

    Raises ValueError where `width` or `blank` is out of its range.
    """
    _require(width, blank, log_probs.shape[-1])
    added = _sums(prior)
    beam: dict[Labels, tuple[float, float]] = {(): (0.0, -math.inf)}
    for row in log_probs.tolist():
        blanks: dict[Labels, float] = {}
        labelled = defaultdict[Labels, float](lambda: -math.inf)
        for labels, (p_blank, p_label) in beam.items():
            both = _add(p_blank, p_label)
            blanks[labels] = both + row[blank]
            for k, y in enumerate(row):
                if k != blank:
                    repeated = labels[-1:] == (k,)
                    longer = (*labels, k)
                    labelled[longer] = _add(labelled[longer], (p_blank if repeated else both) + y)
                    if repeated:
                        labelled[labels] = _add(labelled[labels], p_label + y)
        found = {one: (blanks.get(one, -math.inf), labelled[one]) for one in (*blanks, *labelled)}
        beam = _best(found, width, lambda one, parts: _add(*parts) + added(one))
    return _ranked({labels: _add(*parts) for labels, parts in beam.items()}, added, blank, prior)


def transducer_beam(
    log_probs: Callable[[int, list[Labels]], Tensor],
    frames: int,
    width: int = 8,
    blank: int = 0,
    prior: Prior | None = None,
    most: int = 2,
) -> list[Hypothesis]:
    """The likeliest labels under a transducer (`elman.nn.functional.transducer_nll`), the best first.

    The search of Graves 2012, Sequence transduction with recurrent neural networks, arXiv:1211.3711, section 2.5, by
    frames: each hypothesis says up to `most` labels, and moves to the next frame by a blank; equal labels are summed.

    Args:
        log_probs: from a frame t and n hypotheses to log p(k | t, labels) [n, V]
        frames: T
        width: hypotheses that are kept at each place
        blank: the label that moves to the next frame
        prior: None: no prior
        most: labels of one frame

    Raises ValueError where `width` or `blank` is below its range.
    """
    _require(width, blank)
    added = _sums(prior)
    beam: dict[Labels, float] = {(): 0.0}
    for t in range(frames):
        left = defaultdict[Labels, float](lambda: -math.inf)
        for said in range(most + 1):
            grown = defaultdict[Labels, float](lambda: -math.inf)
            for (labels, p), row in zip(beam.items(), log_probs(t, list(beam)).tolist(), strict=True):
                left[labels] = _add(left[labels], p + row[blank])
                for k, y in enumerate(row if said < most else []):
                    if k != blank:
                        grown[*labels, k] = _add(grown[*labels, k], p + y)
            beam = _best(grown, width, lambda one, p: p + added(one))
        beam = _best(left, width, lambda one, p: p + added(one))
    return _ranked(beam, added, blank, prior)


class Transducer(nn.Module):
    """The output of a network that says labels between its frames, by what it has said before.

    Graves, Mohamed & Hinton 2013, Speech recognition with deep recurrent neural networks, ICASSP, section 3.2.
    p_u is the output of a recurrent layer after the u labels before, of which a blank is the first; of the state f_t of
    a frame and p_u

        p(k | t, u) = softmax(V tanh(W f_t + U p_u + b) + c)

    T frames, B sequences of D numbers, U labels.

    Args:
        frame_size: D
        vocabulary: the labels with the blank
        size: of the vectors of labels, of p_u and of b
        core: a recurrent layer of torch or of elman from `size` to `size` numbers; None: `torch.nn.LSTM`
        blank: the label that moves to the next frame
    """

    def __init__(
        self, frame_size: int, vocabulary: int, size: int, core: nn.Module | None = None, blank: int = 0
    ) -> None:
        super().__init__()
        self.blank = blank
        self.labels, self.core = Embedding(vocabulary, size), core or nn.LSTM(size, size)
        self.of_frame, self.of_labels = nn.Linear(frame_size, size), nn.Linear(size, size, bias=False)
        self.joint = nn.Linear(size, vocabulary)

    def forward(self, frames: Tensor, targets: Tensor) -> Tensor:
        """Log p(k | t, u) [B, T, U + 1, V] of frames [T, B, D] and labels [B, U]."""
        said, _ = self.core(self.labels(pad(targets, (1, 0), value=self.blank).t()))
        return self._joined(self.of_frame(frames).transpose(0, 1)[:, :, None], said.transpose(0, 1)[:, None])

    def _joined(self, of_frame: Tensor, said: Tensor) -> Tensor:
        joined: Tensor = self.joint(torch.tanh(of_frame + self.of_labels(said))).log_softmax(-1)
        return joined

    def nll(
        self, frames: Tensor, targets: Tensor, lengths: Tensor, target_lengths: Tensor, reduction: Reduction = "mean"
    ) -> Tensor:
        """`elman.nn.functional.transducer_nll` of frames [T, B, D], `lengths` [B] of each, and labels [B, U]."""
        return transducer_nll(
            self(frames, targets), targets, lengths, target_lengths, blank=self.blank, reduction=reduction
        )

    @torch.no_grad()
    def beam(self, frames: Tensor, width: int = 8, prior: Prior | None = None, most: int = 2) -> list[Hypothesis]:
        """`transducer_beam` of the frames [T, D] of one sequence."""
        of_frames = self.of_frame(frames)

        @functools.cache
        def after(labels: Labels) -> tuple[Tensor, Any]:
            last, state = (labels[-1], after(labels[:-1])[1]) if labels else (self.blank, None)
            outputs, state = self.core(self.labels(torch.tensor([[last]], device=frames.device)), state)
            return outputs[0, 0], state

        def log_probs(t: int, beam: list[Labels]) -> Tensor:
            return self._joined(of_frames[t], torch.stack([after(labels)[0] for labels in beam]))

        return transducer_beam(log_probs, len(frames), width, self.blank, prior, most)


def _require(width: int, blank: int, number: float = math.inf) -> None:
    if width < 1 or not 0 <= blank < number:
        raise ValueError(f"width is {width} and blank {blank}; a beam is 1 or more wide, and the blank is a label")


def _add(a: float, b: float) -> float:
    """Log(exp(a) + exp(b))."""
    low, high = (a, b) if a < b else (b, a)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _sums(prior: Prior | None) -> Callable[[Labels], float]:
    """What a prior adds to labels in all, without their end."""
    next_of = functools.cache(prior) if prior else None

    @functools.cache
    def added(labels: Labels) -> float:
        return added(labels[:-1]) + next_of(labels[:-1])[labels[-1]] if labels and next_of else 0.0

    return added


def _best(found: dict[Labels, P], width: int, score: Callable[[Labels, P], float]) -> dict[Labels, P]:
    return dict(sorted(found.items(), key=lambda one: score(*one), reverse=True)[:width])


def _ranked(
    beam: dict[Labels, float], added: Callable[[Labels], float], blank: int, prior: Prior | None
) -> list[Hypothesis]:
    """The hypotheses with what the prior adds to them and to their end, the best first."""
    ends = {labels: added(labels) + (prior(labels)[blank] if prior else 0.0) for labels in beam}
    found = [Hypothesis(labels, p, ends[labels]) for labels, p in beam.items()]
    return sorted(found, key=lambda one: one.log_prob + one.prior, reverse=True)
