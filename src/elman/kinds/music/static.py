"""A model of music in a page without a server: a graph up to what notes are drawn from, and the choice of notes."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elman.errors import UserError, notice
from elman.export.onnx import BATCH, OnnxGraph, states_of, write_onnx
from elman.export.step import Comparison, FrameStep
from elman.kinds.music.pitches import Roll
from elman.kinds.music.run import MusicRun
from elman.kinds.music.serving import MusicService
from elman.network.output.bernoulli import BernoulliChoice
from elman.network.output.nade import NADEChoice
from elman.serve.static_graphs import Differences, beginning_facts, write_graphs

GRAPH, CHOICE = "model.onnx", "choice.bin"

COMPARED = 200  # steps of music


def write_music(
    service: MusicService, folder: Path, data: str | None, *, int8: bool
) -> tuple[Differences, dict[str, Any]]:
    """Write the graph and the choice of notes; what the page must know of the model."""
    run = service.run
    step = FrameStep(run.model)
    arrays = arrays_of(step.model.output.choice)
    roll = _roll_of(run, data)

    def write(place: Path) -> None:
        states = states_of(step.beginning)
        inputs = {"frames": (torch.zeros(2, len(run.inputs)), BATCH), **states}
        outputs = ["contexts", "log_prior", *(f"next_{name}" for name in states)]
        write_onnx(step, place / GRAPH, inputs, outputs, {"model_type": "elman"})

    found = write_graphs(folder, write, lambda place: _compare(run, step, place / GRAPH, roll), int8=int8)
    (folder / CHOICE).write_bytes(b"".join(one.numpy(force=True).astype("<f4").tobytes() for one in arrays.values()))
    return found, {
        "choice": {name: list(one.shape) for name, one in arrays.items()},
        "states": beginning_facts(step.beginning),
    }


def arrays_of(choice: torch.nn.Module) -> dict[str, Tensor]:
    """The arrays of a choice of notes by the names that `notes.js` has for them, in the order of the file.

    Raises UserError for a choice that the page does not know.
    """
    match choice:
        case BernoulliChoice():
            bias = choice.weight.new_zeros(len(choice.weight)) if choice.bias is None else choice.bias
            return {"visible": choice.weight, "visible_bias": bias}
        case NADEChoice():
            return {
                "visible": choice.visible.weight,
                "visible_bias": choice.visible.bias,
                "hidden": choice.hidden.weight,
                "hidden_bias": choice.hidden.bias,
                "given": choice.given,
                "weight": choice.weight,
            }
    raise UserError(
        f"the page without a server draws notes by the choices bernoulli and nade, not by {type(choice).__name__};"
        " open it with `elman serve`"
    )


def _roll_of(run: MusicRun, data: str | None) -> Roll:
    """Steps to compare on: of the valid split, else drawn by the model."""
    try:
        return run.corpus(data).split("valid").frames[:COMPARED]
    except UserError as error:
        if data is not None:
            raise
        notice(f"the valid split cannot be read, so steps that the model draws are compared: {error}")
        return run.compose(steps=COMPARED)


@torch.inference_mode()
def _compare(run: MusicRun, step: FrameStep, path: Path, roll: Roll) -> Comparison:
    """The log-probability of every step of a roll, by the model and by the graph."""
    graph, state = OnnxGraph(path), [one.numpy() for one in step.beginning]
    frames = torch.from_numpy(np.concatenate([np.zeros_like(roll[:1]), roll])).float()
    right, _ = run.model.log_prob(
        frames[:-1].unsqueeze(1).to(run.device), frames[1:].unsqueeze(1).to(run.device), run.model.begin(1)
    )
    found = []
    for frame, target in itertools.pairwise(frames):
        contexts, log_prior, *state = graph(frame.unsqueeze(0).numpy(), *state)
        choice = step.model.output.choice
        found.append(
            choice.mixture_log_prob(torch.from_numpy(contexts), torch.from_numpy(log_prior), target.unsqueeze(0))
        )
    difference = (torch.cat(found) - right[:, 0].cpu()).abs().max()
    return Comparison(float("inf") if difference.isnan() else float(difference), len(roll))
