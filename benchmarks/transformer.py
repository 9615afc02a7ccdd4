"""The outsider of the race: a small transformer of torch's own layers, trained for so many minutes on a recipe's text.

    python benchmarks/transformer.py recipes/ptb/small-awd-lstm.toml --data ptb --minutes 5 [--size 256 --layers 4 ...]

Only the table [data] of the recipe is used. Pre-norm layers (torch.nn.TransformerEncoder), learned positions, tied
vectors, AdamW with a warm-up and a cosine over the time that is left, random windows of the training text, matrix
products in bf16 under autocast. Evaluation reads windows that overlap by half and counts every token once, the first
ones of the text with the context there is. The time runs from before the text is read to the last update. Prints a JSON
line; with `--out FOLDER` it is validated every minute, which takes time too.
"""

import argparse
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

import peers

WARM_UP = 0.05


class Transformer(nn.Module):
    """Causal layers over symbols; log-probabilities of the next one by the vectors that are read."""

    def __init__(self, symbols: int, options: argparse.Namespace) -> None:
        super().__init__()
        self.vectors = nn.Embedding(symbols, options.size)
        self.positions = nn.Parameter(torch.zeros(options.context, options.size))
        self.dropout = nn.Dropout(options.dropout)
        layer = nn.TransformerEncoderLayer(
            options.size, options.heads, 4 * options.size, options.dropout, "gelu", batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(options.size)
        self.layers = nn.TransformerEncoder(layer, options.layers, norm, enable_nested_tensor=False)
        self.bias = nn.Parameter(torch.zeros(symbols))
        nn.init.normal_(self.vectors.weight, std=0.02)
        nn.init.normal_(self.positions, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores [B, T, V] of what follows each of tokens [B, T]."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.dropout(self.vectors(tokens) * math.sqrt(self.vectors.embedding_dim) + self.positions[:length])
        return functional.linear(self.layers(hidden, mask, is_causal=True), self.vectors.weight, self.bias)


def train(model: Transformer, text: peers.Text, clock: peers.Clock, options: argparse.Namespace) -> int:
    """Train until the minutes are over; the number of steps."""
    tokens = text.splits["train"]
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.99))
    generator, steps = torch.Generator().manual_seed(options.seed), 0
    offsets = torch.arange(options.context + 1)
    model.train()
    while (share := clock.share) < 1:
        rate = options.lr * min(share / WARM_UP, 0.5 * (1 + math.cos(math.pi * share)))
        for group in optimiser.param_groups:
            group["lr"] = max(rate, 1e-2 * options.lr)
        starts = torch.randint(len(tokens) - options.context - 1, (options.batch,), generator=generator)
        window = tokens[starts[:, None] + offsets]
        with torch.autocast("cpu", torch.bfloat16):
            scores = model(window[:, :-1])
        loss = functional.cross_entropy(scores.float().flatten(0, 1), window[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        steps += 1
        if clock.due():
            clock.keep(nats(model, text.splits["valid"], text.first, options.context))
            model.train()
    return steps


@torch.inference_mode()
def nats(model: Transformer, tokens: Tensor, first: int, context: int, batch: int = 16) -> float:
    """The mean over tokens, each counted once, with half a context before them or more."""
    model.eval()
    stride = context // 2
    inputs = torch.cat([torch.tensor([first]), tokens[:-1]])
    total = 0.0
    head = functional.cross_entropy(model(inputs[None, :context])[0], tokens[:context], reduction="sum")
    total += float(head)
    starts = torch.arange(stride, len(tokens) - context + stride, stride)
    for some in starts.split(batch):
        windows = [slice(int(start), int(start) + context) for start in some]
        whole = [window for window in windows if window.stop <= len(tokens)]
        if whole:
            scores = model(torch.stack([inputs[window] for window in whole]))[:, stride:]
            targets = torch.stack([tokens[window] for window in whole])[:, stride:]
            total += float(functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum"))
        for window in windows[len(whole) :]:
            scores = model(inputs[None, window])[0, stride:]
            total += float(functional.cross_entropy(scores, tokens[window][stride:], reduction="sum"))
    return total / len(tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    peers.add_arguments(parser)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    options = parser.parse_args()
    text = peers.read(options)
    clock = peers.Clock(text.begun, options)
    model = Transformer(text.symbols, options)
    steps = train(model, text, clock, options)
    seconds = clock.seconds
    found = {name: nats(model, text.splits[name], text.first, options.context) for name in ("valid", "test")}
    clock.tell(model, steps, steps * options.batch * options.context, seconds, found)


if __name__ == "__main__":
    main()
