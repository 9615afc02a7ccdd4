"""Tags of words decided one by one, and as a whole sentence: hidden Markov models and conditional random fields.

    python examples/tags_crf.py            # a minute on one thread
    python examples/tags_crf.py --tiny     # seconds

The language is made up: tags follow each other as in a Markov chain, and every word can have several tags, so that even
who knows the chain makes errors. Shares of right words and of sentences without an error, means of 3 seeds:

    counts          71.8 %, 11.4 %    the tag that each word has most often in the training text
    Markov model    84.6 %, 39.1 %    p(tags) p(words | tags) by counts, decoded by Viterbi's algorithm
    softmax         80.0 %, 26.1 %    an LSTM in both directions, a softmax for each word
    random field    80.8 %, 29.5 %    the same LSTM with a chain over it (Huang, Xu & Yu 2015), decoded likewise
    knowing the chain 87.0 %, 44.1 %
"""

import argparse

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="few sentences, one seed")
parser.add_argument("--seeds", type=int, default=3, help="of the language, its text and the networks")
options = parser.parse_args()

torch.set_num_threads(1)
TAGS, WORDS, LONGEST, SENTENCES, EPOCHS = 8, 200, 12, *((100, 8) if options.tiny else (400, 20))
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
    same = (found == text[1]) | ~within(text)
    return same[within(text)].double().mean().item(), same.all(0).double().mean().item()


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
    each, tags, read = (one.numpy() for one in (*text[:2], within(text)))
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
        vectors = dropout(self.encoder(text[0]), 0.3, self.training)
        packed = pack_padded_sequence(vectors, text[2], enforce_sorted=False)
        outputs, _ = pad_packed_sequence(self.core(packed)[0], total_length=LONGEST)
        return self.last(dropout(outputs, 0.3, self.training))

    def loss(self, text: Text) -> Tensor:
        """Nats of a sentence."""
        if self.chain is not None:
            return self.chain.nll(self.scores(text), text[1], text[2]).mean()
        each = cross_entropy(self.scores(text).flatten(0, 1), text[1].flatten(), reduction="none")
        return (each * within(text).flatten()).sum() / len(text[2])

    def tags(self, text: Text) -> Tensor:
        """What it decides on, [T, B]."""
        return self.scores(text).argmax(-1) if self.chain is None else self.chain.decode(self.scores(text), text[2])


def trained(text: Text, seed: int, *, chained: bool) -> Tagger:
    """A tagger after some epochs by Adam."""
    torch.manual_seed(seed)
    tagger = Tagger(chained=chained)
    optimiser = torch.optim.Adam(tagger.parameters(), lr=1e-2)
    for _ in range(EPOCHS):
        for columns in torch.randperm(len(text[2])).split(20):
            optimiser.zero_grad()
            tagger.loss((text[0][:, columns], text[1][:, columns], text[2][columns])).backward()
            torch.nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
            optimiser.step()
    return tagger.eval()


results: dict[str, list[tuple[float, float]]] = {}
for seed in range(1 if options.tiny else options.seeds):
    language = Language(seed)
    train, test = language.text(SENTENCES), language.text(1000)
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
    words, sentences = np.mean(shares, axis=0)
    print(f"{name}: {words:.1%} of the words, {sentences:.1%} of the sentences", [f"{one:.1%}" for _, one in shares])
