"""The constraint of a search to linear trees over the words of the source, where targets are trees."""

from typing import final

import torch
from torch import Tensor

from elman.data.text.vocabulary import UNK, Vocabulary
from elman.data.trees.brackets import XX, bracket
from elman.decoding.beam import Constraint
from elman.kinds.pairs.symbols import PairSymbols
from elman.network.state import State, leaves

OPENED = 10  # constituents that may open between two words; the trees of GUM have at most 6
_NEVER, _OPENING, _CLOSING, _WORD, _END = range(5)


@final
class TreeConstraint(Constraint):
    """The lines that `elman.data.trees.brackets.to_tree` reads without repair, with one word per word of the source.

    While w words of the source are left, d constituents are open and n symbols may still be written,

    - `(LABEL` may come if w > 0 and n >= w + d + 2, unless the `opened` symbols before it opened constituents too;
    - `)LABEL` if LABEL is the innermost open constituent, and the last symbol did not open it;
    - a part of speech if w > 0;
    - the end if w = d = 0.

    So n >= w + d remains true, and the target can be finished. A target whose limit is below the length of its source
    cannot: all its symbols are allowed. `<unk>` and brackets whose other half is not in the vocabulary never are.

    The vocabulary's `<eos>` ends targets. With `hide_tags` every part of speech is `XX`; otherwise any symbol but
    brackets, `<eos>` and `<unk>` is one. Without the bound `opened` a search may open constituents up to the limit.
    """

    def __init__(
        self, vocabulary: Vocabulary, *, hide_tags: bool, opened: int = OPENED, device: torch.device | str = "cpu"
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
        """Whether any symbol stands for a word; otherwise no source has a tree."""
        return bool((self.kind == _WORD).any())

    def begin(self, lengths: Tensor, limits: Tensor) -> State:
        """Labels of open constituents [N, D]; [N] each: number open, number just opened, words left, symbols left."""
        most = min(self.opened * int(lengths.max()), int(limits.max()) // 2)
        nothing = torch.zeros_like(lengths)
        return lengths.new_zeros(len(lengths), most + 1), nothing, nothing, lengths, limits

    def allowed(self, state: State) -> Tensor:
        """Which symbols may come next [N, V], by the rules above."""
        labels, depth, opened, words, room = leaves(state)
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
        """The state after one more symbol of each [N]; after one that was not allowed arbitrary, but within bounds."""
        labels, depth, opened, words, room = leaves(state)
        kind = self.kind[symbols]
        opens = kind == _OPENING
        labels = labels.scatter(1, depth.unsqueeze(1), self.label[symbols].unsqueeze(1))  # read once it is open
        depth = (depth + opens.long() - (kind == _CLOSING).long()).clamp(0, labels.shape[1] - 1)
        return labels, depth, (opened + 1) * opens, (words - (kind == _WORD).long()).clamp(min=0), room - 1


def constraint_of(symbols: PairSymbols, device: torch.device | str) -> Constraint | None:
    """The constraint on the targets of a recipe's pairs; None if there is none, or no symbol stands for a word."""
    if symbols.options.form != "trees":
        return None
    trees = TreeConstraint(symbols.target, hide_tags=symbols.options.tags == "XX", device=device)
    return trees if trees.has_words else None
