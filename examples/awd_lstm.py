"""AWD-LSTM (Merity, Keskar & Socher 2018) from the parts of elman.nn, from a text to a test perplexity.

    python examples/awd_lstm.py                            # on the help texts that come with Python
    python examples/awd_lstm.py --data FOLDER              # train.txt, valid.txt and test.txt, words and spaces
    python examples/awd_lstm.py --tiny                     # a few seconds

The sizes are as in recipes/ptb/small-awd-lstm.toml, which trains for 19 minutes on one thread and reaches 103 on the
validation text of Penn Treebank and 99 on its test text. Where both read a tenth of that text, this program reaches
322.9 and 269.4, and the recipe 321.7 and 269.4.
"""

import argparse
import collections
import math
import random
import time
from pathlib import Path
from pydoc_data.topics import topics

import torch
from torch import Tensor

from elman import nn as enn
from elman.nn import penalties

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--data", type=Path, help="a folder with train.txt, valid.txt and test.txt")
parser.add_argument("--save", type=Path, help="a file for the weights, safetensors")
parser.add_argument("--tiny", action="store_true", help="a small model and little text")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--device", default="cpu")
options = parser.parse_args()

torch.manual_seed(options.seed)
draw = random.Random(options.seed)

# The text: words, and <eos> at the end of every line.

if options.data:
    names = ("train", "valid", "test")
    texts = [(options.data / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in names]
else:
    lines = "\n".join(topics.values()).lower().splitlines()
    lines = lines[:600] if options.tiny else lines
    texts = [lines[: -len(lines) // 5], lines[-len(lines) // 5 : -len(lines) // 10], lines[-len(lines) // 10 :]]

words = [[word for line in text for word in (*line.split(), "<eos>")] for text in texts]
counts = collections.Counter(word for text in words for word in text)
if not options.data:  # words that occur once are <unk>; a benchmark has its own
    words = [[word if counts[word] > 1 else "<unk>" for word in text] for text in words]
    counts = collections.Counter(word for text in words for word in text)
number = {word: place for place, (word, _) in enumerate(counts.most_common())}
train, valid, test = (torch.tensor([number[word] for word in text]) for text in words)
print(f"{len(train):,} words of training text, {len(number):,} different ones")


# The model.

EMBEDDING, HIDDEN = (32, 48) if options.tiny else (320, 640)


class AWDLSTM(torch.nn.Module):
    """Word vectors, two layers of LSTM with DropConnect, and a softmax that shares the word vectors."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.encoder = enn.Embedding(vocabulary, EMBEDDING, word_dropout=0.02, dropout=0.2)
        torch.nn.init.uniform_(self.encoder.weight, -0.3, 0.3)
        self.core = enn.LSTM(EMBEDDING, [HIDDEN, EMBEDDING], weight_drop=0.2, between_dropout=0.15, output_dropout=0.25)
        self.output = enn.Softmax(EMBEDDING, vocabulary, weight=self.encoder.weight)

    def forward(self, inputs: Tensor, state: enn.State | None = None, levels: bool = False) -> tuple[Tensor, enn.State]:
        """Hidden states [T, B, D], or all levels of the core, of inputs [T, B], and the state after them."""
        return self.core(self.encoder(inputs), state, levels=levels)


model = AWDLSTM(len(number)).to(options.device)
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")


# Training: 20 columns side by side, in windows of about 35 words, so that the cuts fall elsewhere in every epoch.

COLUMNS, WINDOW = 20, 35
columns = train[: len(train) // COLUMNS * COLUMNS].view(COLUMNS, -1).t().to(options.device)
optimiser = torch.optim.Adam(model.parameters(), betas=(0.0, 0.99))


def rate(done: float) -> float:
    """The learning rate after a share of the training: it rises within a tenth of an epoch, and falls by a cosine."""
    warm = 0.1 / options.epochs
    if done < warm:
        return 4e-3 * done / warm
    return 4e-3 * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (done - warm) / (1 - warm))))


best, best_weights = math.inf, {}
for epoch in range(options.epochs):
    model.train()
    began, at, total, state = time.monotonic(), 0, 0.0, None
    while at < len(columns) - 1:
        length = max(5, int(draw.gauss(WINDOW if draw.random() < 0.95 else WINDOW / 2, 5)))
        length = min(length, WINDOW + 20, len(columns) - 1 - at)
        inputs, targets = columns[at : at + length], columns[at + 1 : at + length + 1]
        lr = rate((epoch + at / len(columns)) / options.epochs)
        for group in optimiser.param_groups:
            group["lr"] = lr * length / WINDOW  # the loss is a mean over the window
        levels, state = model(inputs, state, levels=True)
        state = enn.detach(state)
        nll = model.output.nll(levels, targets)
        loss = nll + penalties.activation(levels, 0.5) + penalties.temporal(levels, 0.5)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
        at, total = at + length, total + nll.item() * length
    perplexity = enn.perplexity(model, valid, columns=10)
    seconds = time.monotonic() - began
    print(f"epoch {epoch + 1}: training {math.exp(total / at):.2f}, validation {perplexity:.2f}, {seconds:.0f} s")
    if perplexity < best:
        best, best_weights = perplexity, {name: one.clone() for name, one in model.state_dict().items()}

# The test, and its beginning: as it is, with a cache of the last 500 words, and learning from what it has read.

model.load_state_dict(best_weights)
first = number["<eos>"]
print(f"validation {best:.2f}, test {enn.perplexity(model, test, first=first):.2f}")
beginning = test[: 300 if options.tiny else 5000]
statistics = enn.gradient_statistics(model, train[:20000])
for name, reader in {
    "as it is": model,
    "with a cache": enn.NeuralCache(model, weight=0.15, theta=0.7, window=500),
    "with dynamic evaluation": enn.DynamicEvaluation(model, statistics, lr=7e-5, decay=0.01125),
}.items():
    print(f"the first {len(beginning):,} words {name} {enn.perplexity(reader, beginning, first=first):.2f}")

if options.save:
    from safetensors.torch import save_model

    save_model(model, str(options.save))
