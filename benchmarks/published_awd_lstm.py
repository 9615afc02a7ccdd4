"""A peer of the race: the published AWD-LSTM code, trained for so many minutes on a recipe's text.

    python benchmarks/published_awd_lstm.py FOLDER recipes/ptb/minutes-5.toml --data ptb --minutes 5 [--hidden 480 ...]

FOLDER is a checkout of salesforce/awd-lstm-lm. Its network, loss, windows and evaluation are used, and the body of its
train(); `embedded_dropout`, which calls a function that torch no longer has, is replaced, a weight that its evaluation
leaves registered, which a current torch refuses to replace, is removed, and its script, which saves checkpoints in a
form of its time, is not run. Only the table [data] of the recipe is used. SGD at a constant rate, as
published, and from `--average-from` of the time on its averaged form, which the published rule would begin only after
some epochs that do not fit. The time runs from before the text is read to the last update. Prints a JSON line.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import peers
from references import embedded_dropout

ALPHA, BETA, DECAY, BPTT = 2.0, 1.0, 1.2e-6, 70
"""Of the published command: penalties on activations, weight decay, mean length of a window."""


class Published:
    """Their network, loss and windows, with the sizes and dropout of the options."""

    def __init__(self, text: peers.Text, options: argparse.Namespace) -> None:
        sys.path.insert(0, str(options.folder))
        import embed_regularize  # type: ignore[import-not-found]

        embed_regularize.embedded_dropout = embedded_dropout
        import model as theirs  # type: ignore[import-not-found]
        import utils  # type: ignore[import-not-found]
        from splitcross import SplitCrossEntropyLoss  # type: ignore[import-not-found]

        drops = (options.dropout, options.dropouth, options.dropouti, options.dropoute, options.wdrop)
        sizes = (options.size, options.hidden, options.layers)
        with contextlib.redirect_stdout(io.StringIO()):
            self.network = theirs.RNNModel("LSTM", text.symbols, *sizes, *drops, tie_weights=True)
        self.criterion, self.utils = SplitCrossEntropyLoss(options.size, splits=[], verbose=False), utils
        self.settings = SimpleNamespace(bptt=BPTT, cuda=False)
        self.columns = {name: utils.batchify(tokens, 10, self.settings) for name, tokens in text.splits.items()}
        self.columns["train"] = utils.batchify(text.splits["train"], options.batch, self.settings)
        self.columns["test"] = utils.batchify(text.splits["test"], 1, self.settings)

    def window(self, name: str, at: int, length: int) -> tuple[Tensor, Tensor]:
        """Inputs [T, B] and targets [T B] of so many steps of a split from a step on."""
        found: tuple[Tensor, Tensor] = self.utils.get_batch(self.columns[name], at, self.settings, seq_len=length)
        return found

    def loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """The mean over targets of what the network gives for them."""
        decoder = self.network.decoder
        found: Tensor = self.criterion(decoder.weight, decoder.bias, output, targets)
        return found

    @torch.no_grad()
    def nats(self, name: str) -> float:
        """As their evaluate()."""
        self.network.eval()
        columns, total = self.columns[name], 0.0
        hidden = self.network.init_hidden(columns.shape[1])
        for at in range(0, len(columns) - 1, BPTT):
            data, targets = self.window(name, at, BPTT)
            output, hidden = self.network(data, hidden)
            total += len(data) * float(self.loss(output, targets))
        for layer in self.network.rnns:
            if hasattr(layer, "module"):  # with dropout of weights, whose masked form is set at every call
                layer.module._parameters.pop("weight_hh_l0", None)
        return total / len(columns)

    def step(self, optimiser: torch.optim.Optimizer, at: int, hidden: Any, rate: float) -> tuple[int, Any]:
        """As the body of their train(): the length of the window, and the state after it."""
        bptt = BPTT if np.random.random() < 0.95 else BPTT / 2
        length = max(5, int(np.random.normal(bptt, 5)))
        optimiser.param_groups[0]["lr"] = rate * length / BPTT
        self.network.train()
        data, targets = self.window("train", at, length)
        hidden = self.utils.repackage_hidden(hidden)
        optimiser.zero_grad()
        output, hidden, raw, dropped = self.network(data, hidden, return_h=True)
        loss = self.loss(output, targets) + ALPHA * dropped[-1].pow(2).mean()
        loss = loss + BETA * (raw[-1][1:] - raw[-1][:-1]).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 0.25)
        optimiser.step()
        return length, hidden


def averaged(network: nn.Module, optimiser: torch.optim.Optimizer, work: Callable[[], None]) -> None:
    """Do something with the averaged weights, where there are any, as their loop over epochs does."""
    kept = {}
    for parameter in network.parameters():
        if "ax" in optimiser.state[parameter]:
            kept[parameter] = parameter.data.clone()
            parameter.data.copy_(optimiser.state[parameter]["ax"])
    work()
    for parameter, data in kept.items():
        parameter.data.copy_(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkout of salesforce/awd-lstm-lm")
    peers.add_arguments(parser)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--hidden", type=int, default=1150)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--lr", type=float, default=30.0)
    parser.add_argument(
        "--average-from", type=float, default=0.7, help="share of the time after which weights are averaged"
    )
    for name, value in (("dropout", 0.4), ("dropouth", 0.25), ("dropouti", 0.4), ("dropoute", 0.1), ("wdrop", 0.5)):
        parser.add_argument(f"--{name}", type=float, default=value)
    options = parser.parse_args()
    text = peers.read(options)
    np.random.seed(options.seed)
    clock, peer = peers.Clock(text.begun, options), Published(text, options)
    network, steps, tokens, at = peer.network, 0, 0, 0
    hidden = network.init_hidden(options.batch)
    optimiser: torch.optim.Optimizer = torch.optim.SGD(network.parameters(), lr=options.lr, weight_decay=DECAY)
    while clock.share < 1:
        if isinstance(optimiser, torch.optim.SGD) and clock.share >= options.average_from:
            optimiser = torch.optim.ASGD(network.parameters(), lr=options.lr, t0=0, lambd=0.0, weight_decay=DECAY)
        length, hidden = peer.step(optimiser, at, hidden, options.lr)
        steps, tokens, at = steps + 1, tokens + length * options.batch, at + length
        if at >= len(peer.columns["train"]) - 2:
            at, hidden = 0, network.init_hidden(options.batch)
        if clock.due():
            averaged(network, optimiser, lambda: clock.keep(peer.nats("valid")))
    seconds, found = clock.seconds, dict[str, float]()
    averaged(network, optimiser, lambda: found.update({name: peer.nats(name) for name in ("valid", "test")}))
    clock.tell(network, steps, tokens, seconds, found)


if __name__ == "__main__":
    main()
