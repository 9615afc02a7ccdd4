"""Steps and evaluation beside the published AWD-LSTM, MoS and DOC: `python benchmarks/references.py MODEL FOLDER`.

MODEL is awd-lstm, mos or doc. FOLDER holds checkouts of the public repositories, named `awd-lstm-lm` (salesforce),
`mos` (zihangdai) and `doc_lm` (nttcslab-nlp). None of them runs on a current torch as it is; their
`embedded_dropout` is replaced and nothing else. Models have the arguments of their README, elman's those of its
recipes; work is one window of 70 random words, in the recipe's columns in training and 10 in evaluation. Reference
and elman in each precision run in turns in one process; one JSON line for each part has the medians in ms and the
gains. With `--memory` each runs alone in a fresh process instead, and a line has the peak of its memory in MB.
"""

import argparse
import contextlib
import io
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn

import timing
import whole
from elman.config.toml import find, load_recipe
from elman.files import json_text
from elman.network.build import build_model
from elman.network.device import use_large_pages
from elman.network.fast.precision import Precision
from precision import EVALUATED, EVALUATED_COLUMNS, LENGTH, TRAINED, evaluation, training

WORDS = 10_000
MODELS = {  # recipe, repository, arguments of RNNModel after the vocabulary
    "awd-lstm": ("ptb/awd-lstm.toml", "awd-lstm-lm", (400, 1150, 3, 0.4, 0.25, 0.4, 0.1, 0.5, True)),
    "mos": ("ptb/awd-lstm-mos.toml", "mos", (280, 960, 620, 3, 0.4, 0.225, 0.4, 0.1, 0.5, True, 0.29, 15)),
    "doc": ("ptb/awd-lstm-doc.toml", "doc_lm", (280, 960, 620, 3, 0.4, 0.225, 0.4, 0.1, 0.5, True, 0.6, 15, 0, 0, 5)),
}


def parts(options: argparse.Namespace) -> dict[str, tuple[Precision, ...]]:
    """The precisions of each part on the device; int8 is for CPUs."""
    return {"train": TRAINED, "evaluate": EVALUATED if options.device.type == "cpu" else TRAINED}


def embedded_dropout(embedding: nn.Embedding, words: Tensor, dropout: float = 0.1) -> Tensor:
    """Vectors of words, whole words dropped; theirs calls a function that torch no longer has."""
    weight = embedding.weight
    if dropout:
        kept = weight.data.new_empty(weight.size(0), 1).bernoulli_(1 - dropout) / (1 - dropout)
        weight = kept.expand_as(weight) * weight
    return nn.functional.embedding(words, weight)


def published(options: argparse.Namespace) -> dict[str, Callable[[], object]]:
    """The bodies of the reference's train() and evaluate() on one window, in the recipe's columns and at its rate."""
    recipe, repository, sizes = MODELS[options.model]
    chosen = load_recipe(find(recipe)).training
    words = torch.randint(WORDS, (LENGTH + 1, chosen.batch_size), device=options.device)
    evaluated = torch.randint(WORDS, (LENGTH + 1, EVALUATED_COLUMNS), device=options.device)
    sys.path.insert(0, str(options.folder / repository))
    import embed_regularize  # type: ignore[import-not-found]

    embed_regularize.embedded_dropout = embedded_dropout
    with contextlib.redirect_stdout(io.StringIO()):
        import model as theirs  # type: ignore[import-not-found]

        network = theirs.RNNModel("LSTM", WORDS, *sizes).to(options.device)
    optimiser = torch.optim.SGD(network.parameters(), lr=chosen.optimiser.lr, weight_decay=1.2e-6)
    if options.model == "awd-lstm":
        from splitcross import SplitCrossEntropyLoss  # type: ignore[import-not-found]

        criterion = SplitCrossEntropyLoss(400, splits=[], verbose=False)

    def loss_of(output: Tensor, targets: Tensor) -> Tensor:
        if options.model == "awd-lstm":
            return criterion(network.decoder.weight, network.decoder.bias, output, targets)
        return nn.functional.nll_loss(output.view(-1, WORDS), targets)

    def train() -> None:
        network.train()
        optimiser.zero_grad()
        output, _, raw, dropped, *prior = network(words[:-1], network.init_hidden(chosen.batch_size), return_h=True)
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


def candidates(part: str, which: Collection[str], options: argparse.Namespace) -> timing.Candidates:
    made: timing.Candidates = {}
    if "reference" in which:
        made["reference"] = published(options)[part]
    if precisions := [precision for precision in parts(options)[part] if precision in which]:
        recipe = load_recipe(find(MODELS[options.model][0]))
        if part == "train":
            made |= training(recipe, options, precisions)
        else:
            made |= evaluation(build_model(recipe.model, WORDS).to(options.device), options, precisions)
    return made


def compare(part: str, options: argparse.Namespace) -> dict[str, float]:
    """Medians of one part by the reference and by elman in each precision, in turns."""
    precisions = parts(options)[part]
    found = timing.in_turns(candidates(part, ["reference", *precisions], options), options)
    times = {one: 1e3 * median(seconds) for one, seconds in found.items()}
    gains = {f"{one} against the reference": times["reference"] / times[one] for one in precisions}
    gains["bf16 against float32"] = times["float32"] / times["bf16"]
    return {one: round(time, 1) for one, time in times.items()} | {one: round(gain, 2) for one, gain in gains.items()}


def memory(part: str, options: argparse.Namespace) -> dict[str, int]:
    """Peak MB of each candidate, alone in a process."""
    found = {}
    for one in ("reference", *parts(options)[part]):
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
    timing.add_device(parser)
    parser.set_defaults(cpu_time=False, words=WORDS)
    options = parser.parse_args()
    theirs = options.folder / MODELS[options.model][1] / "model.py"
    if not theirs.is_file():
        parser.error(f"no file {theirs}: FOLDER must hold a checkout of that repository")
    torch.set_num_threads(options.threads)
    if options.alone:
        part, one = options.alone
        (run,) = candidates(part, [one], options).values()
        for _ in range(3):
            run()
        print(whole.peak_mb(options.device))
        return
    torch.manual_seed(0)
    for part in parts(options):
        facts = memory(part, options) if options.memory else compare(part, options)
        about = {"model": options.model, "part": part, "device": str(options.device), "threads": options.threads}
        print(json_text(about | facts), flush=True)


if __name__ == "__main__":
    main()
