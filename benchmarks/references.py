"""Steps and evaluation beside the published AWD-LSTM, MoS and DOC: `python benchmarks/references.py MODEL FOLDER`.

MODEL is awd-lstm, mos or doc. FOLDER holds checkouts of the public repositories, named `awd-lstm-lm` (salesforce),
`mos` (zihangdai) and `doc_lm` (nttcslab-nlp). None of them runs on a current torch as it is; two of their names are
replaced and nothing else: `embedded_dropout`, and `torch.nn.functional.tanh`. Models have the arguments of their
README, elman's those of its recipes; work is one window of 70 random words, in 20, 12 and 12 columns in training
and 10 in evaluation. Reference and elman in each precision run in turns in one process; one JSON line for each part
has the medians in ms and the gains. With `--memory` each runs alone in a fresh process instead, and a line has the
peak of its memory in MB.
"""

import argparse
import contextlib
import io
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

import timing
import whole
from elman.config.toml import find, load_recipe
from elman.data.windows import Batch
from elman.files import json_text
from elman.network.build import build_model
from elman.network.device import use_large_pages
from elman.network.precision import Precision, products_in

WORDS, LENGTH, EVALUATED_COLUMNS = 10_000, 70, 10
MODELS = {  # repository, columns, arguments of RNNModel after the vocabulary, rate, recipe
    "awd-lstm": ("awd-lstm-lm", 20, (400, 1150, 3, 0.4, 0.25, 0.4, 0.1, 0.5, True), 30.0, "ptb/awd-lstm.toml"),
    "mos": ("mos", 12, (280, 960, 620, 3, 0.4, 0.225, 0.4, 0.1, 0.5, True, 0.29, 15), 20.0, "ptb/awd-lstm-mos.toml"),
    "doc": (
        "doc_lm",
        12,
        (280, 960, 620, 3, 0.4, 0.225, 0.4, 0.1, 0.5, True, 0.6, 15, 0, 0, 5),
        20.0,
        "ptb/awd-lstm-doc.toml",
    ),
}
PARTS: dict[str, tuple[Precision, ...]] = {"train": ("float32", "bf16"), "evaluate": ("float32", "bf16", "int8")}


def embedded_dropout(embedding: nn.Embedding, words: Tensor, dropout: float = 0.1) -> Tensor:
    """Vectors of words, whole words dropped; theirs calls a function that torch no longer has."""
    weight = embedding.weight
    if dropout:
        kept = weight.data.new_empty(weight.size(0), 1).bernoulli_(1 - dropout) / (1 - dropout)
        weight = kept.expand_as(weight) * weight
    return nn.functional.embedding(words, weight)


def published(name: str, folder: Path, words: Tensor, evaluated: Tensor) -> dict[str, Callable[[], object]]:
    """The bodies of the reference's train() and evaluate() on one window."""
    repository, columns, sizes, rate, _ = MODELS[name]
    sys.path.insert(0, str(folder / repository))
    import embed_regularize  # type: ignore[import-not-found]

    embed_regularize.embedded_dropout = embedded_dropout
    with contextlib.redirect_stdout(io.StringIO()):
        import model as theirs  # type: ignore[import-not-found]

        network = theirs.RNNModel("LSTM", WORDS, *sizes)
    nn.functional.tanh = torch.tanh  # type: ignore[assignment]
    optimiser = torch.optim.SGD(network.parameters(), lr=rate, weight_decay=1.2e-6)
    if name == "awd-lstm":
        from splitcross import SplitCrossEntropyLoss  # type: ignore[import-not-found]

        criterion = SplitCrossEntropyLoss(400, splits=[], verbose=False)

    def loss_of(output: Tensor, targets: Tensor) -> Tensor:
        if name == "awd-lstm":
            return criterion(network.decoder.weight, network.decoder.bias, output, targets)
        return nn.functional.nll_loss(output.view(-1, WORDS), targets)

    def train() -> None:
        network.train()
        optimiser.zero_grad()
        output, _, raw, dropped, *prior = network(words[:-1], network.init_hidden(columns), return_h=True)
        loss = loss_of(output, words[1:].reshape(-1))
        loss = loss + 2 * dropped[-1].pow(2).mean() + (raw[-1][1:] - raw[-1][:-1]).pow(2).mean()
        if prior:
            shares = prior[0].sum(0)
            spread = (shares.var() * (shares.size(1) - 1)).sqrt() / shares.mean()
            loss = loss + 0.001 * spread * spread
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.25)
        optimiser.step()

    @torch.no_grad()
    def evaluate() -> None:
        network.eval()
        output, _ = network(evaluated[:-1], network.init_hidden(EVALUATED_COLUMNS))
        loss_of(output, evaluated[1:].reshape(-1))

    return {"train": train, "evaluate": evaluate}


def ours(name: str, part: str, precision: Precision, words: Tensor, evaluated: Tensor) -> Callable[[], object]:
    """The same work by elman: a step of the recipe, or the likelihood of the window."""
    recipe = load_recipe(find(MODELS[name][-1]))
    torch.manual_seed(0)
    network = build_model(recipe.model, WORDS)
    if part == "train":
        chosen = msgspec.structs.replace(recipe.training, precision=precision)
        given = msgspec.structs.replace(recipe, training=chosen)
        return whole.training_step(network, given, Batch(words[:-1], words[1:]))
    state = network.eval().begin(EVALUATED_COLUMNS)

    def evaluate() -> None:
        with torch.inference_mode(), products_in(precision):
            network.log_prob(evaluated[:-1], evaluated[1:], state)

    return evaluate


def candidates(name: str, part: str, which: list[str], folder: Path) -> timing.Candidates:
    torch.manual_seed(0)
    words = torch.randint(WORDS, (LENGTH + 1, MODELS[name][1]))
    evaluated = torch.randint(WORDS, (LENGTH + 1, EVALUATED_COLUMNS))
    made: timing.Candidates = {}
    for one in which:
        if one == "reference":
            made[one] = published(name, folder, words, evaluated)[part]
        else:
            made[one] = ours(name, part, msgspec.convert(one, Precision), words, evaluated)
    return made


def compare(name: str, part: str, options: argparse.Namespace) -> dict[str, Any]:
    """Medians of one part by the reference and by elman in each precision, in turns."""
    found = timing.in_turns(candidates(name, part, ["reference", *PARTS[part]], options.folder), options)
    times = {one: timing.spread(seconds)["median_ms"] for one, seconds in found.items()}
    gains = {f"{one} against the reference": times["reference"] / times[one] for one in PARTS[part]}
    gains["bf16 against float32"] = times["float32"] / times["bf16"]
    return {one: round(1e3 * time, 1) for one, time in times.items()} | {
        key: round(gain, 2) for key, gain in gains.items()
    }


def memory(part: str) -> dict[str, int]:
    """Peak MB of each candidate, alone in a process."""
    found = {}
    for one in ("reference", *PARTS[part]):
        command = [sys.executable, __file__, *sys.argv[1:], "--alone", part, one]
        found[one] = int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def main() -> None:
    use_large_pages()
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=Path, help="where awd-lstm-lm, mos and doc_lm are checked out")
    parser.add_argument("--memory", action="store_true", help="peak memory, each alone in a process, instead of times")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    parser.set_defaults(cpu_time=False, device=torch.device("cpu"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.alone:
        part, one = options.alone
        (run,) = candidates(options.model, part, [one], options.folder).values()
        for _ in range(3):
            run()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)
        return
    for part in PARTS:
        facts = memory(part) if options.memory else compare(options.model, part, options)
        print(json_text({"model": options.model, "part": part, "threads": options.threads} | facts), flush=True)


if __name__ == "__main__":
    main()
