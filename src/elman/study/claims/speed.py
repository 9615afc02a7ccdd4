"""What a model reaches beside what it costs: processor time of training and of streaming, size of weights and state."""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from elman.data.batches import Whole
from elman.learning.bptt import bptt
from elman.network.model import LanguageModel
from elman.network.state import leaves
from elman.objective.loss import Objective
from elman.report.metrics import Valid, read_metrics
from elman.study.claim import Measurement
from elman.study.measures import BLOCKS, results, with_test_text
from elman.tasks.open import open_run, open_task, recorded_source
from elman.tasks.task import Task

TRAINING, STREAMING = "microseconds per token", "microseconds per streamed token"
PARAMETERS, STATE = "parameters", "numbers of the state"

COSTS = {
    TRAINING: "processor time of a training step for one token, in microseconds",
    STREAMING: "processor time for one token of a single stream, in microseconds",
    STATE: "numbers that one stream keeps",
    PARAMETERS: "parameters",
}

CONSTANTS = {"windows": 40, **BLOCKS}
"""Windows of training data, and tokens of a stream, that are timed; and how the test text is read."""

UNITS: dict[str, Callable[[float], float]] = {
    "perplexity": math.exp,
    "bits per character": lambda nats: nats / math.log(2),
    "nats per step": float,
}
"""Figures from nats per token, character or step."""


SECONDS = "processor time of training steps, in seconds"


def course(unit: str) -> tuple[str, str]:
    return SECONDS, f"{unit}, valid"


def in_time(unit: str) -> str:
    return f"valid {unit} in the time"


def training_time(model: LanguageModel, task: Task, windows: int) -> float:
    """Processor time of a training step without the update of the weights, for one token, in microseconds.

    The median over the first `windows` windows of the training data, read in training mode from the state that the one
    before left; the first is not counted.
    """
    read, seconds = task.windows(None), []
    state = model.train().begin(task.recipe.training.batch_size)
    for span in islice(read.spans(0), windows + 1):
        batch, begun = read.batch(span), time.process_time()
        loss, state = bptt(model, Objective(), batch, state)
        seconds.append((time.process_time() - begun) / int(loss.num_counted))
        model.zero_grad()
    model.eval()
    return 1e6 * statistics.median(seconds[1:])


@torch.inference_mode()
def streaming_time(model: LanguageModel, task: Task, tokens: int) -> float:
    """Processor time from one token of a single stream to the distribution of the next, in microseconds; a median.

    Of music, to a draw of the next frame of notes. The tokens are the first ones of the training data.
    """
    read, seconds = task.windows(None), []
    batches = (read.batch(span) for span in read.spans(0))
    symbols = itertools.chain.from_iterable(batch.inputs[:, :1] for batch in batches)
    state = model.eval().begin(1)
    for symbol in islice(symbols, tokens + 1):
        begun = time.process_time()
        _, state = model.step(symbol, state) if symbol.ndim == 1 else model.sample(symbol.unsqueeze(0), state)
        seconds.append(time.process_time() - begun)
    return 1e6 * statistics.median(seconds[1:])


def perplexity_and_costs(
    folder: Path, windows: int, seconds: float, block: int, streams: int, unit: str = "perplexity"
) -> Measurement:
    """The figures of both splits, `COSTS`, and what the validation reaches in a number of seconds of training steps.

    Only perplexities have nats by block: their ratios are judged by token.
    """
    found = with_test_text(folder, block, streams) if unit == "perplexity" else results(folder)
    run = open_run(folder)
    model, task = run.model, open_task(run.recipe, recorded_source(folder, run.recipe))
    each = training_time(model, task, windows)
    read = task.windows(None)
    tokens = sum(int(Whole.of(read.batch(span)).counted) for span in read.spans(0))
    checks, per_epoch = read_metrics(folder / "metrics.jsonl").valid, 1e-6 * each * tokens
    reached = nats_after(checks, seconds / per_epoch)
    figures = {
        TRAINING: each,
        STREAMING: streaming_time(model, task, windows),
        STATE: float(sum(part.numel() for part in leaves(model.begin(1)))),
        PARAMETERS: float(sum(parameter.numel() for parameter in model.parameters())),
        in_time(unit): UNITS[unit](reached),
    }
    x, y = course(unit)
    curves = {x: [per_epoch * one.epoch for one in checks], y: [UNITS[unit](one.nll) for one in checks]}
    return Measurement(found.figures | figures, found.curves | curves)


def nats_after(checks: Sequence[Valid], epochs: float) -> float:
    """The lowest nats per token of the validations up to a number of epochs, which need not be whole.

    Between validations the lowest so far is interpolated; before the first it is infinite.
    """
    lowest = np.minimum.accumulate([one.nll for one in checks])
    return float(np.interp(epochs, [one.epoch for one in checks], lowest, left=math.inf))
