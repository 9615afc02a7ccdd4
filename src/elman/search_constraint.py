"""What a search for targets may write: a language, symbol by symbol."""

import abc

from torch import Tensor

from elman.state import State


class Constraint(abc.ABC):
    """The targets that a search may find, as an automaton over N targets under way, V symbols.

    Where each target is in the language is a value as of a model (`elman.state`): tuples of tensors [N, ...], which a
    search reorders with its hypotheses.
    """

    @abc.abstractmethod
    def begin(self, lengths: Tensor, limits: Tensor) -> State:
        """The state of N targets that have not begun.

        Args:
            lengths: symbols of the source of each [N].
            limits: symbols that each may have at most, without its end [N].

        """

    @abc.abstractmethod
    def allowed(self, state: State) -> Tensor:
        """Which symbols may come next [N, V], bool: those after which a target of the language can be finished."""

    @abc.abstractmethod
    def advance(self, state: State, symbols: Tensor) -> State:
        """The state after one more symbol of each [N], which may be any of those that are not followed up."""
