"""Perplexity beside what it costs: processor time of training and of streaming, and the size of weights and state."""

import math
import statistics
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from elman.data.windows import TrainingWindows
from elman.learning.bptt import bptt
from elman.network.state import leaves
from elman.objective.loss import Objective
from elman.report.metrics import Valid, read_metrics
from elman.reproduce.arm import Measurement
from elman.reproduce.perplexity import with_test_text
from elman.reproduce.tokens import BLOCKS
from elman.tasks.text.run import TextRun

TRAINING, STREAMING = "microseconds per token", "microseconds per streamed token"
PARAMETERS, STATE, IN_TIME = "parameters", "numbers of the state", "valid perplexity in the time"

COSTS = {
    TRAINING: "processor time of a training step for one token, in microseconds",
    STREAMING: "processor time for one token of a single stream, in microseconds",
    STATE: "numbers that one stream keeps",
    PARAMETERS: "parameters",
}

CONSTANTS = {"windows": 40, **BLOCKS}
"""Windows of training text, and tokens of a stream, that are timed; and how the test text is read."""


def training_time(run: TextRun, windows: int) -> float:
    """Processor time of a training step without the update of the weights, for one token, in microseconds.

    The median over the first `windows` windows of the training text, read in training mode from the state that the one
    before left; the first is not counted.
    """
    training = run.recipe.training
    read = TrainingWindows(run.corpus().split("train").tokens, training.batch_size, training.window.length)
    model = run.model.train()
    state, seconds = model.begin(training.batch_size), []
    for span in islice(read.spans(0), windows + 1):
        batch, begun = read.batch(span), time.process_time()
        _, state = bptt(model, Objective(), batch, state)
        seconds.append((time.process_time() - begun) / batch.targets.numel())
        model.zero_grad()
    model.eval()
    return 1e6 * statistics.median(seconds[1:])


@torch.inference_mode()
def streaming_time(run: TextRun, tokens: int) -> float:
    """Processor time from one token of a single stream to the distribution of the next, in microseconds; a median."""
    model, seconds = run.model.eval(), []
    state, symbols = model.begin(1), run.corpus().split("valid").tokens[: tokens + 1]
    for symbol in torch.from_numpy(symbols.astype(np.int64)).split(1):
        begun = time.process_time()
        _, state = model.step(symbol, state)
        seconds.append(time.process_time() - begun)
    return 1e6 * statistics.median(seconds[1:])


def perplexity_and_time(folder: Path, windows: int, block: int, streams: int) -> Measurement:
    """Perplexities, and the time of a training step."""
    found = with_test_text(folder, block, streams)
    return Measurement(found.figures | {TRAINING: training_time(TextRun(folder), windows)}, found.curves)


def perplexity_and_costs(folder: Path, windows: int, seconds: float, block: int, streams: int) -> Measurement:
    """Perplexities and `COSTS`, and the validation perplexity that is reached in so many seconds of training steps."""
    found, run = with_test_text(folder, block, streams), TextRun(folder)
    each = training_time(run, windows)
    epoch = 1e-6 * each * len(run.corpus().split("train").tokens)
    figures = {
        TRAINING: each,
        STREAMING: streaming_time(run, windows),
        STATE: float(sum(part.numel() for part in leaves(run.model.begin(1)))),
        PARAMETERS: float(sum(parameter.numel() for parameter in run.model.parameters())),
        IN_TIME: math.exp(nats_after(read_metrics(folder / "metrics.jsonl").valid, seconds / epoch)),
    }
    return Measurement(found.figures | figures, found.curves)


def nats_after(checks: Sequence[Valid], epochs: float) -> float:
    """The lowest nats per token of the validations up to a number of epochs, which need not be whole.

    Between validations the lowest so far is interpolated; before the first it is infinite.
    """
    lowest = np.minimum.accumulate([one.nll for one in checks])
    return float(np.interp(epochs, [one.epoch for one in checks], lowest, left=math.inf))
