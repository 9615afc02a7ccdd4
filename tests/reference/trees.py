"""Networks over trees in NumPy, one node at a time, written from the papers.

A tree is the number of a word, or a pair (or longer tuple) of trees. Weights are named as in the papers: Socher et al.
2013 (W, b), Socher et al. 2012 (W, W_M), Tai et al. 2015 (W and b by gate of leaves, U by gate, by child and gate in
the binary form).
"""

import itertools

import numpy as np


def sigm(x):
    return 1 / (1 + np.exp(-x))


def affine(W, b):
    """p = tanh(W [a; b] + b_w)."""
    return lambda left, right: (np.tanh(W @ np.concatenate([left[0], right[0]]) + b),)


def matrix_vector(W, W_M):
    """p = tanh(W [B a; A b]), P = W_M [A; B]."""

    def compose(left, right):
        (a, A), (b, B) = left, right
        return np.tanh(W @ np.concatenate([B @ a, A @ b])), W_M @ np.concatenate([A, B])

    return compose


def word_matrix(diagonal, u, v):
    """A = I + U V + diag(s)."""
    return np.eye(len(diagonal)) + u @ v + np.diag(diagonal)


def lstm_leaf(W, b, x):
    """A leaf of either tree LSTM: no children; W and b by gate."""
    i, o, u = sigm(W["i"] @ x + b["i"]), sigm(W["o"] @ x + b["o"]), np.tanh(W["u"] @ x + b["u"])
    c = i * u
    return o * np.tanh(c), c


def binary_lstm(U, b):
    """Tai et al. 2015, eqs 9-14 with N = 2, no input; U[gate][child], forget gates f1 and f2 with U[f1][child]."""

    def compose(left, right):
        (h_1, c_1), (h_2, c_2) = left, right
        gate = {name: U[name][0] @ h_1 + U[name][1] @ h_2 + b[name[0]] for name in ("i", "o", "u", "f1", "f2")}
        c = sigm(gate["i"]) * np.tanh(gate["u"]) + sigm(gate["f1"]) * c_1 + sigm(gate["f2"]) * c_2
        return sigm(gate["o"]) * np.tanh(c), c

    return compose


def child_sum_lstm(U, b):
    """Tai et al. 2015, eqs 2-8, no input."""

    def compose(*children):
        total = sum(h for h, _ in children)
        i, o = (sigm(U[name] @ total + b[name]) for name in "io")
        c = i * np.tanh(U["u"] @ total + b["u"])
        for h, below in children:
            c = c + sigm(U["f"] @ h + b["f"]) * below
        return o * np.tanh(c), c

    return compose


def states(tree, leaves, compose):
    """The states of all nodes by their spans, and the tree's own span."""
    found = {}

    def visit(one):
        if isinstance(one, int):
            found[one, one + 1] = leaves[one]
            return (one, one + 1)
        spans = [visit(child) for child in one]
        span = (spans[0][0], spans[-1][1])
        found[span] = compose(*(found[below] for below in spans))
        return span

    return found, visit(tree)


def binary_trees(start, end):
    """All binary trees over words start to end - 1."""
    if end - start == 1:
        yield start
    for middle in range(start + 1, end):
        for left in binary_trees(start, middle):
            for right in binary_trees(middle, end):
                yield (left, right)


def chart(length, leaves, compose, score, label_score):
    """One vector per span: of the division with the greatest u'p and scores of both parts; the best label is added.

    `score` of a vector is u'p; `label_score` of (vector, start, end) is that of the best label. The score and the tree.
    """
    best = {(n, n + 1): (label_score(leaves[n][0], n, n + 1), n, leaves[n]) for n in range(length)}
    for size in range(2, length + 1):
        for start in range(length - size + 1):
            end, found = start + size, None
            for middle in range(start + 1, end):
                (one, tree_one, left), (two, tree_two, right) = best[start, middle], best[middle, end]
                node = compose(left, right)
                total = score(node[0]) + one + two
                if found is None or total > found[0]:
                    found = (total, (tree_one, tree_two), node)
            total, tree, node = found
            best[start, end] = (total + label_score(node[0], start, end), tree, node)
    return best[0, length][:2]


def greedy(length, leaves, compose, score):
    """Neighbours with the greatest u'p are put together until one tree is left."""
    nodes = [(n, leaves[n]) for n in range(length)]
    while len(nodes) > 1:
        pairs = [compose(one[1], two[1]) for one, two in itertools.pairwise(nodes)]
        place = max(range(len(pairs)), key=lambda n: score(pairs[n][0]))
        nodes[place : place + 2] = [((nodes[place][0], nodes[place + 1][0]), pairs[place])]
    return nodes[0][0]
