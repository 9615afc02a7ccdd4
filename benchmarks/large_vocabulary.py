"""Adaptive and hierarchical softmax beside the flat one, of 800,000 words: `python benchmarks/large_vocabulary.py`.

A one-layer LSTM over word vectors of 256 with 512 units, windows of 20 steps and 20 columns, words drawn by Zipf's law.
Each line is measured in a fresh process, so that its peak memory is its own: seconds of processor time of a training
step (forward, backward, update by SGD), of the evaluation of 2,000 tokens, and of a generated token, which needs the
probabilities of all words.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import torch

from elman import config
from elman.data.batches import Batch
from elman.data.windows import EvaluationWindows
from elman.decoding.sampling import Sampling, generate
from elman.evaluation.perplexity import evaluate
from elman.learning.bptt import bptt
from elman.learning.optimisers import Optimiser
from elman.network.build import build_model
from elman.network.device import use_large_pages
from elman.objective.loss import build_objective
from growth import timed

CHOICES = {
    "adaptive": lambda words: config.Adaptive(cutoffs=tuple(cut for cut in (4000, 40_000, 200_000) if cut < words)),
    "tree": lambda _: config.Tree(),
    "flat": lambda _: config.Flat(),
}
STEPS, COLUMNS, TOKENS, GENERATED = 20, 20, 2000, 10


def measure(kind: str, num_words: int) -> dict[str, object]:
    """The figures of one output layer, in this process."""
    use_large_pages()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    output = config.Output(choice=CHOICES[kind](num_words))
    shape = config.Model(encoder=config.Lookup(size=256), core=config.Stack(sizes=(512,)), output=output)
    weights = 1 / np.arange(1, num_words + 1)
    draw = np.random.default_rng(0)

    def words(*shape: int) -> np.ndarray:
        return np.searchsorted(np.cumsum(weights) / weights.sum(), draw.random(shape)).clip(max=num_words - 1)

    model = build_model(shape, num_words, (weights * 1e7).astype(int).tolist()).train()
    built = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    sgd = config.SGD(lr=0.1)
    optimiser, objective = Optimiser(sgd, list(model.parameters())), build_objective(config.Training(1, optimiser=sgd))
    state = model.begin(COLUMNS)

    def step() -> None:
        block = torch.from_numpy(words(STEPS + 1, COLUMNS))
        optimiser.zero_grad()
        bptt(model, objective, Batch(block[:-1], block[1:]), state)
        optimiser.step()

    seconds = timed(step)
    trained = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    del optimiser
    model.eval()
    started = time.process_time()
    evaluate(model, EvaluationWindows(words(TOKENS).astype(np.int32), 0, streams=20))
    evaluated = time.process_time() - started
    started = time.process_time()
    stream = generate(model, [0], model.begin(1), Sampling(), torch.Generator().manual_seed(0))
    for _ in range(GENERATED):
        next(stream)
    return {
        "output": kind,
        "words": num_words,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "step_s": round(seconds, 3),
        "built_mb": round(built),
        "peak_mb": round(trained),
        "evaluation_s": round(evaluated, 3),
        "generated_token_s": round((time.process_time() - started) / GENERATED, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=800_000)
    parser.add_argument("--point", choices=CHOICES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(options.point, options.words)), flush=True)
        return
    for kind in CHOICES:
        subprocess.run([sys.executable, __file__, "--point", kind, "--words", str(options.words)], check=True)


if __name__ == "__main__":
    main()
