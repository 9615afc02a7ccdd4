"""Linear trees over exactly the words of a source: what a search may write where targets are trees."""

import abc
from typing import final

import torch
from torch import Tensor

from elman.data.pairs.symbols import PairSymbols
from elman.data.pairs.trees import XX, bracket
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.network.state import State


# FOLDED search_constraint.py: What a search for targets may write: a language, symbol by symbol.
class Constraint(abc.ABC):
    """The targets that a search may find, as an automaton over N targets under way, V symbols.

    Where each target is in the language is a value as of a model (`elman.network.state`): tuples of tensors [N, ...], which a
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


# TARGET
OPENED = 10
"""Constituents that may open between two words; the trees of GUM have 6 at most."""

_NEVER, _OPENING, _CLOSING, _WORD, _END = range(5)


@final
class TreeConstraint(Constraint):
    """The lines that `elman.data.pairs.trees.to_tree` takes without repair, with a word for each of the source.

    While w words of the source are left, d constituents are open and n symbols may still be written,

    - `(LABEL` may come if w > 0 and n >= w + d + 2, unless the `opened` symbols before it opened constituents too;
    - `)LABEL` if LABEL is the innermost open constituent, and the last symbol did not open it;
    - a part of speech if w > 0;
    - the end if w = d = 0.

    So n >= w + d stays true, and with it a way to the end. A target whose limit is below the length of its source has
    no such way: all its symbols are allowed. `<unk>` and brackets whose other half is not in the vocabulary never are.

    Args:
        vocabulary: of the targets; its `<eos>` ends them.
        hide_tags: parts of speech are all `XX`, else every symbol that is neither bracket, `<eos>` nor `<unk>`.
        opened: constituents that may open between two words; without a bound a search may open them up to the limit.
        device: where targets are searched for.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        hide_tags: bool,
        opened: int = OPENED,
        device: torch.device | str = "cpu",
    ) -> None:
        sides = [bracket(word) for word in vocabulary.words]
        opening, closing = ({label for side, label in sides if side == one} for one in "()")
        labels = {label: place for place, label in enumerate(sorted(opening & closing))}

        def kind(word: str, side: str, label: str) -> int:
            if side:
                return _NEVER if label not in labels else _OPENING if side == "(" else _CLOSING
            if vocabulary.ids[word] == vocabulary.eos:
                return _END
            return _WORD if word == XX or not (hide_tags or word == UNK) else _NEVER

        kinds = [kind(word, *side) for word, side in zip(vocabulary.words, sides, strict=True)]
        self.opened = opened
        self.kind = torch.tensor(kinds, device=device)
        self.label = torch.tensor([labels.get(label, -1) if side else -1 for side, label in sides], device=device)

    @property
    def has_words(self) -> bool:
        """Whether any symbol stands for a word; without one no source has a tree."""
        return bool((self.kind == _WORD).any())

    def begin(self, lengths: Tensor, limits: Tensor) -> State:
        """Labels of what is open [N, D], and how many: are open, opened last, words and symbols are left, each [N]."""
        most = min(self.opened * int(lengths.max()), int(limits.max()) // 2)
        nothing = torch.zeros_like(lengths)
        return lengths.new_zeros(len(lengths), most + 1), nothing, nothing, lengths, limits

    def allowed(self, state: State) -> Tensor:
        """Which symbols may come next [N, V], by the rules above."""
        labels, depth, opened, words, room = state
        may = torch.stack(
            [
                torch.zeros_like(words, dtype=torch.bool),
                (words > 0) & (opened < self.opened) & (room >= words + depth + 2),
                (depth > 0) & (opened == 0),
                words > 0,
                (words == 0) & (depth == 0),
            ],
            1,
        )
        innermost = labels.gather(1, (depth - 1).clamp(min=0).unsqueeze(1))
        fits = may[:, self.kind] & ((self.kind != _CLOSING) | (self.label == innermost))
        return fits | (room < words + depth).unsqueeze(1)

    def advance(self, state: State, symbols: Tensor) -> State:
        """The state after one more symbol of each [N].

        A symbol that was not allowed leaves a state of some kind, within bounds.
        """
        labels, depth, opened, words, room = state
        kind = self.kind[symbols]
        opens = kind == _OPENING
        labels = labels.scatter(1, depth.unsqueeze(1), self.label[symbols].unsqueeze(1))  # read once it is open
        depth = (depth + opens.long() - (kind == _CLOSING).long()).clamp(0, labels.shape[1] - 1)
        return labels, depth, (opened + 1) * opens, (words - (kind == _WORD).long()).clamp(min=0), room - 1


def constraint_of(symbols: PairSymbols, device: torch.device | str) -> Constraint | None:
    """What the targets of a recipe's pairs must be; None: anything, or no symbol of theirs stands for a word."""
    if symbols.options.form != "trees":
        return None
    trees = TreeConstraint(symbols.target, hide_tags=symbols.options.tags == "XX", device=device)
    return trees if trees.has_words else None
