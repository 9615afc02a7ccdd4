"""A controller of a Turing machine without a state."""

from elman.network.cells.cell import Controller


class Perceptron(Controller, frozen=True, tag="feed-forward"):
    """tanh(W z + b)."""
