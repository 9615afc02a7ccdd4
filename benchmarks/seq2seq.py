"""A training step of a sequence-to-sequence model, part by part: `python benchmarks/seq2seq.py`.

Processor time of one thread, the least of several rounds that take the forms of the decoder in turn. Vectors of 200,
two layers of 2 x 200 that read, two of 400 that write, a vocabulary of 10,000, 64 pairs, dropout everywhere.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise

import torch

from elman import config
from elman.data.batches import Batch, Source
from elman.network.build import build_model
from elman.network.seq2seq import SequenceToSequence

PAIRS, SOURCE, TARGET, WORDS = 64, 30, 10, 10_000
FORMS = {
    "at once": {"feed": "nothing"},
    "at once, additive": {"feed": "nothing", "score": "additive"},
    "step by step, output fed": {"feed": "output"},
    "step by step, context fed": {"feed": "context"},
}
PARTS = ("read", "decode", "output", "back")


def model_of(form: dict[str, str]) -> SequenceToSequence:
    """A model in training."""
    layers = {"between_dropout": 0.3, "weight_drop": 0.2}
    vectors = {"kind": "lookup", "size": 200}
    raw = {
        "title": "benchmark",
        "data": {"kind": "pairs"},
        "model": {
            "encoder": vectors,
            "source": {"encoder": vectors, "stack": {"sizes": [200, 200], **layers}},
            "core": {"kind": "attentive", "stack": {"sizes": [400, 400], **layers}, "output_dropout": 0.3, **form},
        },
        "training": {"epochs": 1, "optimiser": {"kind": "sgd", "lr": 1.0}},
    }
    model = build_model(config.parse_recipe(raw, "benchmark").model, WORDS)
    assert isinstance(model, SequenceToSequence)
    return model.train()


def batch_of() -> Batch:
    """Random pairs; the shortest have three fifths of the longest."""
    sides = []
    for longest in (SOURCE, TARGET):
        lengths = torch.randint(longest * 3 // 5, longest + 1, (PAIRS,))
        lengths[0] = longest
        sides.append(Source(torch.randint(WORDS, (longest, PAIRS)), torch.arange(longest).unsqueeze(1) < lengths))
    source, target = sides
    return Batch(target.symbols, target.symbols.roll(-1, 0), target.mask, None, source)


def timed(model: SequenceToSequence, batch: Batch) -> list[float]:
    """Milliseconds of each part; the gradients of the output layer are formed on its way forward."""
    assert batch.source is not None
    assert batch.mask is not None
    clock: Callable[[], float] = time.process_time
    marks = [clock()]
    state = model.read(batch.source)
    marks.append(clock())
    trace, _ = model.trace(batch.inputs, state)
    marks.append(clock())
    loss, _ = model.output.nll(model.output.contexts(trace), batch.targets, batch.mask / batch.mask.sum())
    marks.append(clock())
    loss.backward()
    marks.append(clock())
    model.zero_grad()
    return [1000 * (after - before) for before, after in pairwise(marks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="after one to warm up (default: 4)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = {name: model_of(form) for name, form in FORMS.items()}
    batch = batch_of()
    rounds = [{name: timed(model, batch) for name, model in models.items()} for _ in range(options.rounds + 1)][1:]
    for name in models:
        least = [min(values) for values in zip(*(one[name] for one in rounds), strict=True)]
        parts = {f"{part}_ms": round(value, 1) for part, value in zip(PARTS, least, strict=True)}
        print(json.dumps({"form": name, **parts, "sum_ms": round(sum(least), 1)}), flush=True)


if __name__ == "__main__":
    main()
