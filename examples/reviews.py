"""One label for a whole text: reviews, read by an LSTM in both directions, beside the words without their order.

    python examples/reviews.py                      # on made-up reviews, in half a minute
    python examples/reviews.py --data reviews.tsv   # lines of a label, a tab and a text
    python examples/reviews.py --tiny               # a few seconds

The label is read from the last states of both directions (Dai & Le 2015, Semi-supervised sequence learning, NIPS,
without their pretraining). A made-up review is as good as its last clause; `not` and `hardly` turn a clause around, and
so does `but`: its words say little, their order all.
"""

import argparse
import itertools
import random
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--data", type=Path, help="reviews, a label, a tab and a text on each line")
parser.add_argument("--tiny", action="store_true", help="few reviews and a small network")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
COUNT, H, EPOCHS = (600, 32, 6) if options.tiny else (2000, 64, 10)
torch.manual_seed(options.seed)
draw = random.Random(options.seed)

THINGS = ["plot", "music", "cast", "ending", "food", "room", "service", "view"]
WORDS = {"good": ["good", "fine", "great", "lovely", "superb"], "bad": ["bad", "poor", "dull", "awful", "grim"]}


def clause(label: str) -> str:
    """A clause that says good or bad of a thing."""
    turned, mild = draw.choice(["not ", "hardly ", "", ""]), draw.choice(["very ", "really ", ""])
    said = {"good": "bad", "bad": "good"}[label] if turned else label
    return f"the {draw.choice(THINGS)} was {turned}{mild}{draw.choice(WORDS[said])}"


def review() -> tuple[str, str]:
    """A label and a text of one to three clauses, of which the last one counts; `but` stands where they differ."""
    labels = [draw.choice(["good", "bad"]) for _ in range(draw.randint(1, 3))]
    text = clause(labels[0])
    for before, label in itertools.pairwise(labels):
        text += (" and " if before == label else " but ") + clause(label)
    return labels[-1], text


if options.data:
    reviews = [tuple(line.split("\t", 1)) for line in options.data.read_text("utf-8").splitlines() if "\t" in line]
    draw.shuffle(reviews)
else:
    reviews = [review() for _ in range(COUNT)]
reviews = [*dict.fromkeys(reviews)]  # each once, so that none of the test is in the training too
held = len(reviews) // 5
labels = sorted({label for label, _ in reviews})
known = sorted({word for _, text in reviews[held:] for word in text.lower().split()})
number = {word: place for place, word in enumerate(known, start=1)}  # 0 is a word that training lacks
pairs = [
    (torch.tensor([number.get(word, 0) for word in text.lower().split()] or [0]), label) for label, text in reviews
]
test, train = pairs[:held], pairs[held:]


class InOrder(torch.nn.Module):
    """The last states of an LSTM in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.dropout = enn.Embedding(len(known) + 1, H), torch.nn.Dropout(0.2)
        self.core, self.output = enn.LSTM(H, H, bidirectional=True), torch.nn.Linear(2 * H, len(labels))

    def forward(self, texts: list[Tensor]) -> Tensor:
        """Logits of labels [n, V] of n texts."""
        packed = pack_sequence([self.dropout(self.encoder(one)) for one in texts], enforce_sorted=False)
        h, _ = self.core(packed)[1]
        return self.output(self.dropout(torch.cat([*h], -1)))


class WithoutOrder(torch.nn.Module):
    """A weight of every word for every label, summed (logistic regression)."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.EmbeddingBag(len(known) + 1, len(labels), mode="sum")
        torch.nn.init.zeros_(self.weights.weight)

    def forward(self, texts: list[Tensor]) -> Tensor:
        """Logits of labels [n, V] of n texts."""
        return self.weights(torch.cat(texts), torch.tensor([0, *map(len, texts[:-1])]).cumsum(0))


rates = {}
for name, model in {"without order": WithoutOrder(), "in order": InOrder()}.items():
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(train)).split(25):
            texts, true = zip(*[train[row] for row in rows], strict=True)
            optimiser.zero_grad()
            logits = model.train()([*texts])
            torch.nn.functional.cross_entropy(logits, torch.tensor([*map(labels.index, true)])).backward()
            optimiser.step()
    with torch.no_grad():
        found = model.eval()([text for text, _ in test]).argmax(-1).tolist()
    rates[name] = sum(labels[place] == label for place, (_, label) in zip(found, test, strict=True)) / held
    print(f"{name}: {100 * rates[name]:.1f} % of {held} reviews have the right label", flush=True)
