"""Tags of words decided one by one, and as a whole sentence: hidden Markov models and conditional random fields.

    python examples/tags_crf.py            # minutes on one thread
    python examples/tags_crf.py --tiny     # seconds

The language is made up: tags follow each other as in a Markov chain, and every word can have several tags. So nobody
tags without errors, and who knows the chain makes the fewest; that bound is computed too.

    counts          each word has the tag that it most often has in the training text
    Markov model    p(tags) p(words | tags) by counts, the best sequence by Viterbi's algorithm
    softmax         an LSTM in both directions, a softmax over the tags of each word
    random field    the same LSTM with a chain over it (Huang, Xu & Yu 2015), the best sequence by Viterbi's algorithm

Sentences count as right where all of their tags are.
"""

import argparse
import statistics

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="few sentences, one seed")
parser.add_argument("--sentences", type=int, default=400, help="of the training text")
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--seeds", type=int, default=3, help="of the language, its text and the networks")
options = parser.parse_args()
if options.tiny:
    options.sentences, options.epochs, options.seeds = 100, 8, 1

torch.set_num_threads(1)
TAGS, WORDS, LONGEST = 8, 200, 12
Text = tuple[Tensor, Tensor, Tensor]  # words and tags [T, B], and lengths [B]


class Language:
    """The Markov chain."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.start = self.draw.dirichlet(np.ones(TAGS))  # and p(tag | tag before), p(word | tag)
        self.moves = self.draw.dirichlet(np.full(TAGS, 0.3), TAGS)
        self.words = self.draw.dirichlet(np.full(WORDS, 0.1), TAGS)

    def text(self, sentences: int) -> Text:
        """Sentences of 4 to 12 words; beyond their ends stand zeros."""
        words, tags = np.zeros((2, LONGEST, sentences), dtype=np.int64)
        lengths = self.draw.integers(4, LONGEST + 1, sentences)
        for b, length in enumerate(lengths):
            for t in range(length):
                tags[t, b] = self.draw.choice(TAGS, p=self.moves[tags[t - 1, b]] if t else self.start)
                words[t, b] = self.draw.choice(WORDS, p=self.words[tags[t, b]])
        return torch.tensor(words), torch.tensor(tags), torch.tensor(lengths)


def within(text: Text) -> Tensor:
    """Where words stand, [T, B]."""
    return torch.arange(LONGEST).unsqueeze(1) < text[2]


def right(found: Tensor, text: Text) -> tuple[float, float]:
    """The shares of words whose tag is right, and of sentences whose tags all are."""
    read, same = within(text), found == text[1]
    return same[read].double().mean().item(), (same | ~read).all(0).double().mean().item()


def most_frequent(text: Text) -> Tensor:
    """The tag that each word has most often, [V]."""
    count, read = torch.zeros(TAGS, WORDS), within(text)
    return count.index_put((text[1][read], text[0][read]), torch.tensor(1.0), accumulate=True).argmax(0)


def markov_model(start: np.ndarray, moves: np.ndarray, words: np.ndarray, text: Text) -> Tensor:
    """The most probable tags [T, B] under a hidden Markov model."""
    chain = enn.LinearChain(TAGS).double()
    with torch.no_grad():
        chain.first.copy_(torch.tensor(start).log())
        chain.transitions.copy_(torch.tensor(moves).log())
    return chain.decode(torch.tensor(words.T).log()[text[0]], text[2])


def counted(text: Text) -> tuple[np.ndarray, ...]:
    """The three distributions of a Markov model by counts, to each of which a tenth is added."""
    start, moves, words = (np.full(shape, 0.1) for shape in (TAGS, (TAGS, TAGS), (TAGS, WORDS)))
    each, tags, read = text[0].numpy(), text[1].numpy(), within(text).numpy()
    np.add.at(start, tags[0], 1)
    np.add.at(moves, (tags[:-1][read[1:]], tags[1:][read[1:]]), 1)
    np.add.at(words, (tags[read], each[read]), 1)
    return tuple(table / table.sum(-1, keepdims=True) for table in (start, moves, words))


class Tagger(torch.nn.Module):
    """Scores [T, B, K] of the tags of each word, by an LSTM in both directions, and a chain over them or none."""

    def __init__(self, *, chained: bool) -> None:
        super().__init__()
        self.encoder = enn.Embedding(WORDS, 32)
        self.core = enn.LSTM(32, 32, bidirectional=True)
        self.last, self.chain = torch.nn.Linear(64, TAGS), enn.LinearChain(TAGS) if chained else None

    def scores(self, text: Text) -> Tensor:
        """Of packed sentences, so that both directions begin and end with their own words."""
        vectors = torch.nn.functional.dropout(self.encoder(text[0]), 0.3, self.training)
        packed = torch.nn.utils.rnn.pack_padded_sequence(vectors, text[2], enforce_sorted=False)
        outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(self.core(packed)[0], total_length=LONGEST)
        return self.last(torch.nn.functional.dropout(outputs, 0.3, self.training))

    def loss(self, text: Text) -> Tensor:
        """Nats of a sentence."""
        if self.chain is not None:
            return self.chain.nll(self.scores(text), text[1], text[2]).mean()
        each = cross_entropy(self.scores(text).flatten(0, 1), text[1].flatten(), reduction="none")
        return (each * within(text).flatten()).sum() / len(text[2])

    def tags(self, text: Text) -> Tensor:
        """The tags [T, B] that it decides on."""
        scores = self.eval().scores(text)
        return scores.argmax(-1) if self.chain is None else self.chain.decode(scores, text[2])


def trained(text: Text, seed: int, *, chained: bool) -> Tagger:
    """A tagger after some epochs by Adam."""
    torch.manual_seed(seed)
    tagger = Tagger(chained=chained)
    optimiser = torch.optim.Adam(tagger.parameters(), lr=1e-2)
    for _ in range(options.epochs):
        for columns in torch.randperm(len(text[2])).split(20):
            optimiser.zero_grad()
            tagger.loss((text[0][:, columns], text[1][:, columns], text[2][columns])).backward()
            torch.nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
            optimiser.step()
    return tagger


results: dict[str, list[tuple[float, float]]] = {}
for seed in range(options.seeds):
    language = Language(seed)
    train, test = language.text(options.sentences), language.text(1000)
    found = {
        "counts": most_frequent(train)[test[0]],
        "Markov model": markov_model(*counted(train), test),
        "softmax": trained(train, seed, chained=False).tags(test),
        "random field": trained(train, seed, chained=True).tags(test),
        "who knows the chain": markov_model(language.start, language.moves, language.words, test),
    }
    for name, tags in found.items():
        results.setdefault(name, []).append(right(tags, test))
for name, shares in results.items():
    words, sentences = (statistics.mean(column) for column in zip(*shares, strict=True))
    print(f"{name}: {words:.1%} of the words, {sentences:.1%} of the sentences", [f"{one:.1%}" for _, one in shares])
