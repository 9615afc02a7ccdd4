"""A language model as transformers calls it: batches first, a state in place of a cache, padding that is not read."""

from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from transformers import GenerationMixin, PreTrainedModel
from transformers.utils.generic import ModelOutput

from elman.hf.configuration import ElmanConfig
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.network.state import State, leaves, map_state, rebuild

IGNORED = -100
"""Labels that are not counted, as everywhere in transformers."""


class _Read(NamedTuple):
    log_probs: Tensor
    state: State


@final
class ElmanForCausalLM(PreTrainedModel, GenerationMixin):
    """The network of a run on text.

    Its logits are log-probabilities (nats). `state` holds the tensors of the state after the symbols that were read,
    and takes the place of `past_key_values`: given back, the model continues after them, with constant memory.
    """

    config_class = ElmanConfig
    main_input_name = "input_ids"
    _is_stateful = True
    network: LanguageModel

    def __init__(self, config: ElmanConfig) -> None:
        super().__init__(config)
        network = build_model(config.recipe, config.vocab_size, config.counts, config.words)
        self.encoder, self.core, self.output = network.encoder, network.core, network.output
        # The same parts as the rest of elman calls them; not a part itself, so that parameters keep their names.
        self.__dict__["network"] = network
        names: dict[int, str] = {}
        self._tied_weights_keys = {}
        for name, parameter in self.named_parameters(remove_duplicate=False):
            first = names.setdefault(id(parameter), name)
            if first != name:
                self._tied_weights_keys[name] = first
        self.config.tie_word_embeddings = bool(self._tied_weights_keys)
        self.post_init()

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Nothing: every tensor is stored."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def get_input_embeddings(self) -> torch.nn.Module:
        """The encoder of symbols."""
        return self.encoder

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        state: tuple[Tensor, ...] | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> ModelOutput | tuple[Tensor, ...]:
        """Read symbols [B, T]; where `attention_mask` is 0 nothing is read, and the state remains unchanged.

        With `labels` [B, T], the symbols themselves, the loss is the mean of -log p of each symbol but the first.
        """
        network = self.network
        beginning = network.begin(len(input_ids))
        before = beginning if state is None else rebuild(beginning, iter(state))
        mask = None if attention_mask is None else attention_mask[:, -input_ids.shape[1] :].bool()
        read = _read(network, input_ids.t(), before, None if mask is None or bool(mask.all()) else mask.t())
        logits = read.log_probs.transpose(0, 1)
        loss = None
        if labels is not None:
            right = labels[:, 1:]
            found = logits[:, :-1].gather(-1, right.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            loss = -found[right != IGNORED].mean()
        output = ModelOutput(loss=loss, logits=logits[:, -logits_to_keep:])
        if use_cache is not False:
            output["state"] = tuple(leaves(read.state))
        return output if return_dict is not False else output.to_tuple()

    def prepare_inputs_for_generation(  # type: ignore[override]
        self,
        input_ids: Tensor,
        state: tuple[Tensor, ...] | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The last symbol and the state before it, or all symbols where there is none."""
        return {
            "input_ids": input_ids if state is None else input_ids[:, -1:],
            "state": state,
            "attention_mask": attention_mask if state is None else None,
            "use_cache": use_cache,
        }

    def _reorder_cache(self, state: tuple[Tensor, ...], beam_idx: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.index_select(0, beam_idx.to(part.device)) for part in state)


def _read(network: LanguageModel, symbols: Tensor, state: State, mask: Tensor | None) -> _Read:
    """Log-probabilities [T, B, V] after symbols [T, B], and the state after those that the mask [T, B] has."""
    if mask is None:
        return _Read(*network.log_probs(symbols, state))
    parts = []
    for step, there in zip(symbols, mask, strict=True):
        log_probs, after = network.step(step, state)
        state = map_state(
            lambda new, old, there=there: torch.where(there.view(-1, *[1] * (old.ndim - 1)), new, old), after, state
        )
        parts.append(log_probs)
    return _Read(torch.stack(parts), state)
