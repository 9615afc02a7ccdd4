"""A bidirectional LSTM tagger in NumPy, and the rules of the script conlleval, written from what is published.

Schuster & Paliwal 1997, Graves & Schmidhuber 2005: one layer reads the sentence from its beginning, one from its end;
their outputs at a word, side by side, give its tag by a softmax. Weights have the gates i, f, g, o in this order.
"""

import numpy as np


def sigm(x):
    return 1 / (1 + np.exp(-x))


def lstm(W, U, b, xs):
    """The outputs of a layer over the rows of xs, in their order."""
    size = U.shape[1]
    h, c, outputs = np.zeros(size), np.zeros(size), []
    for x in xs:
        i, f, g, o = np.split(W @ x + U @ h + b, 4)
        c = sigm(f) * c + sigm(i) * np.tanh(g)
        h = sigm(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs)


def tagger(vectors, layers, V, d, words):
    """Probabilities of the tags of words, [n, L]; `layers`: for each a list of (W, U, b), forwards first."""
    outputs = vectors[words]
    for directions in layers:
        read = [lstm(*directions[0], outputs)]
        read += [lstm(*weights, outputs[::-1])[::-1] for weights in directions[1:]]
        outputs = np.concatenate(read, 1)
    logits = outputs @ V.T + d
    scores = np.exp(logits - logits.max(1, keepdims=True))
    return scores / scores.sum(1, keepdims=True)


def parted(tag):
    """The beginning and the type of a tag."""
    return ("O", "") if tag == "O" else (tag[0], tag[2:])


def chunk_ends(before, now):
    """`endOfChunk` of conlleval, of the tags B, I and O."""
    (mark, kind), (next_mark, next_kind) = parted(before), parted(now)
    return mark != "O" and (next_mark in ("B", "O") or kind != next_kind)


def chunk_begins(before, now):
    """`startOfChunk` of conlleval, of the tags B, I and O."""
    (mark, kind), (next_mark, next_kind) = parted(before), parted(now)
    return next_mark == "B" or (next_mark == "I" and (mark == "O" or kind != next_kind))


def conlleval(found, right):
    """Chunks right, found and given over sentences, as the script counts them while it walks over the words."""
    correct = guessed = given = 0
    for ours, theirs in zip(found, right, strict=True):
        open_, last, previous = False, ("O", "O"), "O"
        for guess, truth in [*zip(ours, theirs, strict=True), ("O", "O")]:
            ends = chunk_ends(last[0], guess), chunk_ends(last[1], truth)
            if open_ and any(ends):
                correct += all(ends)
                open_ = False
            begins = chunk_begins(last[0], guess), chunk_begins(last[1], truth)
            if all(begins) and parted(guess)[1] == parted(truth)[1]:
                open_ = True
            guessed, given = guessed + begins[0], given + begins[1]
            last, previous = (guess, truth), guess
        assert previous == "O"
    return correct, guessed, given
