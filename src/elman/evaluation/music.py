"""A model of music evaluated over whole pieces: NLL per step and frame-level accuracy."""

from collections.abc import Callable

import msgspec
import numpy as np
import torch

from elman.data.music.corpus import Pieces
from elman.data.music.pitches import Pitches, Roll
from elman.data.music.windows import PieceWindows
from elman.evaluation.perplexity import Score, traces
from elman.evaluation.result import Result
from elman.network.model import LanguageModel


@torch.inference_mode()
def evaluate_pieces(
    model: LanguageModel,
    pieces: Pieces,
    *,
    columns: int = 20,
    length: int = 70,
    advance: Callable[[int, int], None] | None = None,
) -> Result:
    """NLL (nats per step, every step counted once) and accuracy of a split.

    The accuracy is that of Bay et al. (2009), as Boulanger-Lewandowski et al. (2012) report it for prediction:
    TP / (TP + FP + FN) over all notes of all steps, where at each step a frame is drawn from the model given the true
    frames before it. The draws have a seed of their own. Pieces are read `columns` side by side in windows of `length`
    steps; the columns change only the speed and, by the draws, slightly the accuracy. `advance` is called with
    (windows done, windows in all).
    """
    windows = PieceWindows(pieces.frames, pieces.lengths, columns, length)
    generator = torch.Generator(model.device).manual_seed(0)
    total, count, hits, union = 0.0, 0, 0, 0
    for done, (batch, _, trace) in enumerate(traces(model, windows), start=1):
        assert batch.mask is not None
        total -= model.output.log_prob(trace, batch.targets)[batch.mask].double().sum().item()
        drawn, true = model.output.sample(trace, 1.0, generator)[batch.mask].bool(), batch.targets[batch.mask].bool()
        count += len(true)
        hits += int((drawn & true).sum())
        union += int((drawn | true).sum())
        if advance is not None:
            advance(done, windows.num_windows)
    result = piece_result(Score(total, count), pieces)
    return msgspec.structs.replace(result, accuracy=hits / max(1, union), method="static")


def piece_result(score: Score, pieces: Pieces) -> Result:
    """The result of a score over whole pieces; tokens are steps."""
    return Result(
        split=pieces.name,
        nll=score.nll,
        perplexity=score.perplexity,
        bits_per_token=score.bits,
        tokens=score.count,
        pieces=len(pieces.lengths),
        context="whole pieces",
    )


def notes_of(roll: Roll, pitches: Pitches) -> list[list[int]]:
    """The MIDI pitches that sound at each step."""
    return [(np.flatnonzero(frame) + pitches.lowest).tolist() for frame in roll]
