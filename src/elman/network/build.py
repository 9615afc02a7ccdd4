"""Builds the network of a recipe: its parts in order, joined and initialised."""

import contextlib
import json
import math
import os
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from torch.overrides import TorchFunctionMode

from elman import config
from elman.config.toml import flatten
from elman.errors import UserError
from elman.network.cores.core import build_core
from elman.network.cores.stack import Stack
from elman.network.encoders.encoder import build_encoder
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.network.output.choice import Choice, Chord, build_choice, unigram
from elman.network.output.contexts import build_contexts
from elman.network.output.layer import OutputLayer

_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn)


def build_model(
    recipe: config.Model,
    num_words: int,
    counts: Sequence[int] | None = None,
    words: Sequence[str] | None = None,
    num_source: int | None = None,
    num_labels: int | None = None,
) -> LanguageModel:
    """The network of a recipe, initialised from torch's global random state; raises UserError where parts do not fit.

    `num_words` is V, symbols of the vocabulary, pitches of a frame, or values of a step. `counts` are the occurrences
    of each word, falling, for outputs that treat frequent words differently (by default Zipf's law is assumed), `words`
    the vocabulary for encoders that read spelling (by default words are spelled as their numbers). A source's
    vocabulary has `num_source` symbols, by default as many as the target's. A network over trees or a tagger chooses
    from `num_labels` labels, by default as many as there are words, and `counts` are theirs; a network over sequences
    predicts as many values, where it reads others too.

    A network that does not fit into the memory of the machine is refused before it is allocated.
    """
    with contextlib.nullcontext() if torch.get_default_device().type == "meta" else _WithinMemory(recipe):
        locked = recipe.masks == "locked"
        encoder = build_encoder(recipe.encoder, num_words, words, locked=locked)
        memory = None if recipe.source is None else recipe.source.memory_size
        core = build_core(recipe.core, encoder.size, num_words, locked=locked, memory_size=memory)
        contexts = build_contexts(recipe.output, core.dims)
        if recipe.output.gate is not None:
            from elman.network.output.input_gate import build_input_gate

            contexts.gate = build_input_gate(recipe.output.gate, encoder, core, num_words)
        num_outputs = num_labels or num_words
        output = OutputLayer(contexts, build_choice(recipe.output, contexts.size, encoder, num_outputs, counts))
        if core.hears and not isinstance(output.choice, Choice):
            raise UserError(
                'model.core.kind = "jordan" feeds the distribution of the next symbol back, and the distribution of'
                ' vectors cannot be listed; set model.core.feedback = "target"'
            )
        if core.reads == "trees":
            from elman.network.tree_model import TreeModel

            model: LanguageModel = TreeModel(encoder, core, output)
        elif core.reads == "sentences":
            from elman.network.tag_model import TagModel

            model = TagModel(encoder, core, output)
        elif recipe.source is None:
            model = LanguageModel(encoder, core, output)
        else:
            from elman.network.seq2seq import build_seq2seq

            model = build_seq2seq(recipe, encoder, core, output, num_source or num_words)
        if torch.get_default_device().type != "meta":  # where there is nothing to fill
            model.initialise(recipe.initialisation)
        if recipe.initialisation.output_bias == "unigram" and not isinstance(output.choice, Chord):
            if not isinstance(output.choice, Choice):
                raise UserError(
                    'model.initialisation.output_bias = "unigram" is for symbols and notes; set it to "zeros"'
                )
            output.choice.begin_at(unigram(num_outputs, counts))
        return model


def tiny_model(num_words: int = 7, size: int = 4) -> LanguageModel:
    """A small LSTM language model for examples and tests."""
    return build_model(config.Model(encoder=Lookup(size=size), core=Stack(sizes=(size,))), num_words)


class _WithinMemory(TorchFunctionMode):
    """Adds up the tensors that are made in a block, and refuses the first that exceeds the memory of the machine."""

    def __init__(self, recipe: config.Model) -> None:
        super().__init__()
        self.recipe, self.allowed, self.total = recipe, _memory(), 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            shape = kwargs.get("size", args)
            shape = shape[0] if shape and not isinstance(shape[0], int) else shape
            self.total += math.prod(shape) * (kwargs.get("dtype") or torch.float32).itemsize
            if self.total > self.allowed:
                self._refuse()
        return func(*args, **kwargs)

    def _refuse(self) -> None:
        values = dict(flatten(msgspec.to_builtins(self.recipe, str_keys=True), "model"))
        key = max(values, key=lambda key: _greatest(values[key]))
        raise UserError(
            f"{key} = {json.dumps(values[key])}: the network needs {self.total:,} bytes or more, and this machine has"
            f" {self.allowed:,}; choose a smaller size"
        )


def _greatest(value: Any) -> int:
    values = value if isinstance(value, list | tuple) else [value]
    return max((one for one in values if type(one) is int), default=0)


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40
