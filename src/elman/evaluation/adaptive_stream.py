"""A stream that a model reads piece by piece while adapting to it, and that can be saved and continued."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.config.inference import Rule
from elman.errors import UserError
from elman.evaluation.dynamic import DIVERGED, DynamicModel, Statistics, has_diverged, read_static
from elman.evaluation.scoring import Prediction, Symbols, predict
from elman.learning import checkpoint
from elman.network.model import LanguageModel
from elman.network.state import numbered, rebuild

Tokens: TypeAlias = np.ndarray | Sequence[int]


class AdaptiveStream:
    """One text, scored and learnt from in segments, in whatever pieces it arrives.

    The model learns when a segment is full, so that the pieces make no difference: the beginning of a segment waits,
    already scored, for the rest. The trained `model` is not changed, `statistics` are needed by the rule "rms", and
    `first` is the symbol that precedes the text.

    `inputs` replace tokens where they are read: to a model that reads spelling (`LanguageModel.knowing`) unknown words
    have numbers of their own, and are `<unk>` where they are predicted. Raises UserError where the adaptation diverged.
    """

    def __init__(self, model: LanguageModel, rule: Rule, statistics: Statistics | None, first: int) -> None:
        self.dynamic = DynamicModel(model, rule, statistics)
        self.state = model.begin(1)
        self._read, self._waiting = np.array([first], dtype=np.int64), np.empty(0, dtype=np.int64)

    @property
    def model(self) -> LanguageModel:
        """The copy of the model that learns."""
        return self.dynamic.model

    @property
    def unread(self) -> list[int]:
        """The symbols read since `state`, never empty."""
        symbols: list[int] = self._read.tolist()
        return symbols

    def score(self, tokens: Tokens, inputs: Tokens | None = None) -> np.ndarray:
        """The log-probability (nats) of each token, float32 [n], each under a model that has not seen it."""
        return self._advance(tokens, inputs, lambda *_: None)

    def predict(self, tokens: Tokens, inputs: Tokens | None = None, spaces: Sequence[int] = ()) -> Prediction:
        """Score tokens and learn from them, with all figures; after the last token they are the adapted model's."""
        parts: list[tuple[Tensor, ...]] = []

        def look(inputs: Tensor, targets: Tensor, new: int) -> None:
            found, _ = predict(self.model, inputs, targets, self.state, spaces)
            parts.append(tuple(part[-new:, 0] for part in found))

        self._advance(tokens, inputs, look)
        unread = self._column(self._read)
        after, _ = predict(self.model, unread, torch.zeros_like(unread), self.state, spaces)
        parts.append(tuple(part[:0, 0] for part in after))  # of a text without tokens there is no other part
        log_prob, rank, entropy, space = (torch.cat(part) for part in zip(*parts, strict=True))
        entropy, space = torch.cat([entropy, after.entropy[-1]]), torch.cat([space, after.space[-1]])
        return Prediction(
            log_prob.float().cpu().numpy(),
            rank.cpu().numpy(),
            entropy.float().cpu().numpy(),
            space.float().cpu().numpy(),
        )

    def score_all(self, sentences: Symbols, inputs: Symbols | None = None) -> Iterator[np.ndarray]:
        """Score the sentences of a document (`scoring.score_document`); segments run across their ends."""
        return map(self.score, *_given(sentences, inputs))

    def predict_all(
        self, sentences: Symbols, inputs: Symbols | None = None, spaces: Sequence[int] = ()
    ) -> Iterator[Prediction]:
        """Predict the sentences of a document (`scoring.predict_document`), adapting."""
        return map(functools.partial(self.predict, spaces=spaces), *_given(sentences, inputs))

    def _advance(
        self, tokens: Tokens, inputs: Tokens | None, look: Callable[[Tensor, Tensor, int], None]
    ) -> np.ndarray:
        """Score and learn; `look` is called with inputs, targets and the number of new ones before each update."""
        parts = [np.empty(0, dtype=np.float32)]
        remaining = np.asarray(tokens, dtype=np.int64)
        to_read = remaining if inputs is None else np.asarray(inputs, dtype=np.int64)
        while len(remaining):
            room = self.dynamic.rule.segment - len(self._waiting)
            new, remaining = remaining[:room], remaining[room:]
            segment, read = np.concatenate([self._waiting, new]), np.concatenate([self._read, to_read[:room]])
            to_read = to_read[room:]
            before, targets = self._column(read[:-1]), self._column(segment)
            look(before, targets, len(new))
            if len(new) == room:
                log_prob, _, self.state = self.dynamic.read(before, targets, self.state)
                self._read, self._waiting = read[-1:], segment[:0]
            else:
                log_prob, _, _ = read_static(self.model, before, targets, self.state)
                self._read, self._waiting = read, segment
            if has_diverged(log_prob):
                raise UserError(DIVERGED)
            parts.append(log_prob[-len(new) :, 0].float().cpu().numpy())
        return np.concatenate(parts)

    def _column(self, symbols: np.ndarray) -> Tensor:
        return torch.tensor(symbols, device=self.model.device).unsqueeze(1)

    def saved(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The adapted weights and the rule: with `state` and `unread`, all that the rest of the text depends on."""
        weights = checkpoint.model_tensors(self.model)
        rule = msgspec.to_builtins(self.dynamic.rule)
        return {f"weights/{name}": tensor for name, tensor in weights.items()}, {"rule": rule}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Continue from the tensors and facts of a state file; one without weights continues from the trained ones."""
        self.state = rebuild(self.state, (leaf.to(self.model.device) for leaf in numbered(tensors)))
        weights = {name.removeprefix("weights/"): tensor for name, tensor in tensors.items() if "/" in name}
        with torch.no_grad():
            for name, parameter in self.model.named_parameters() if weights else ():
                parameter.copy_(weights[name])
        read = np.array(facts["unread"], dtype=np.int64)
        self._read, self._waiting = read[:1], read[:0]
        self.score(read[1:])


def _given(sentences: Symbols, inputs: Symbols | None) -> tuple[Symbols, ...]:
    return (sentences,) if inputs is None else (sentences, inputs)


def saved_rule(facts: dict[str, Any], rule: Rule | None, default: Rule) -> Rule:
    """The rule to continue with: the file's; raises UserError for another, as it cannot change in a stream."""
    if "rule" not in facts:
        return rule or default
    kept = msgspec.convert(facts["rule"], Rule)
    if rule is not None and rule != kept:
        raise UserError(
            f"--load-state: the stream adapts by {_shown(kept)}, not by {_shown(rule)}; leave out the options of the"
            " rule, or begin a new stream"
        )
    return kept


def _shown(rule: Rule) -> str:
    return " ".join(f"{name}={value}" for name, value in msgspec.to_builtins(rule).items())
