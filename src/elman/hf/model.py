"""Language models as transformers calls them: what a network is built from, the network, and its tokeniser.

A model reads batches first, has a state in place of a cache, and does not read padding. The tokeniser has the rules and
the numbers of the run.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import msgspec
import torch
from torch import Tensor
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel, PreTrainedTokenizer
from transformers.utils.generic import ModelOutput

from elman import config
from elman.config.parts import convert
from elman.config.remembered import needed
from elman.config.text import TextOptions
from elman.data.text import subwords
from elman.data.text.reading import TextReader
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.data.windows import start_symbol
from elman.errors import UserError
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.network.state import State, leaves, map_state, rebuild


@final
class ElmanConfig(PretrainedConfig):
    """The recipe's network and plug-ins, its vocabulary's size and counts, its words where the model reads spelling."""

    model_type = "elman"

    def __init__(
        self,
        network: dict[str, Any] | None = None,
        vocab_size: int = 0,
        counts: Sequence[int] = (),
        words: Sequence[str] | None = None,
        plugins: Sequence[dict[str, str]] = (),
        **others: Any,
    ) -> None:
        self.network, self.plugins = network or {}, list(plugins)
        self.vocab_size, self.counts, self.words = vocab_size, list(counts), None if words is None else list(words)
        super().__init__(**others)

    @property
    def recipe(self) -> config.Model:
        """The network as a recipe has it; raises UserError where a plug-in is missing."""
        with needed(self.name_or_path or "the model", self.plugins):
            return convert(self.network, config.Model)


IGNORED = -100
"""Labels that are not counted, as everywhere in transformers."""


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
        log_probs, after = _read(network, input_ids.t(), before, None if mask is None or bool(mask.all()) else mask.t())
        logits = log_probs.transpose(0, 1)
        loss = None
        if labels is not None:
            right = labels[:, 1:]
            found = logits[:, :-1].gather(-1, right.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            loss = -found[right != IGNORED].mean()
        output = ModelOutput(loss=loss, logits=logits[:, -logits_to_keep:])
        if use_cache is not False:
            output["state"] = tuple(leaves(after))
        return output if return_dict is not False else output.to_tuple()

    def prepare_inputs_for_generation(  # type: ignore[override]
        self,
        input_ids: Tensor,
        state: tuple[Tensor, ...] | None = None,
        attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """The last symbol and the state before it, or all symbols without a state."""
        return {
            "input_ids": input_ids if state is None else input_ids[:, -1:],
            "state": state,
            "attention_mask": attention_mask if state is None else None,
            "use_cache": use_cache,
        }

    def _reorder_cache(self, state: tuple[Tensor, ...], beam_idx: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.index_select(0, beam_idx.to(part.device)) for part in state)


def _read(network: LanguageModel, symbols: Tensor, state: State, mask: Tensor | None) -> tuple[Tensor, State]:
    """Log-probabilities [T, B, V] after symbols [T, B], and the state after those that the mask [T, B] has.

    Those at padding are what follows the last symbol before it.
    """
    if mask is None:
        return network.log_probs(symbols, state)
    parts = list[Tensor]()
    for step, there in zip(symbols, mask, strict=True):
        log_probs, after = network.step(step, state)
        state = map_state(
            lambda new, old, there=there: torch.where(there.view(-1, *[1] * (old.ndim - 1)), new, old), after, state
        )
        parts.append(torch.where(there.unsqueeze(-1), log_probs, parts[-1]) if parts else log_probs)
    return torch.stack(parts), state


VOCABULARY = "vocabulary.tsv"


@final
class ElmanTokenizer(PreTrainedTokenizer):
    """Tokens of a text by the rules of the run's data section, before them the symbol that precedes a text (`<eos>`).

    Padding is `<eos>`, which the model never reads there.
    """

    vocab_files_names = {"vocab_file": VOCABULARY, "subwords_file": subwords.FILE}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(
        self,
        vocab_file: str,
        subwords_file: str | None = None,
        options: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        self.rules = msgspec.convert(options or {}, TextOptions)
        self.vocabulary, self.subwords_file = Vocabulary.load(Path(vocab_file)), subwords_file
        spelt = self.rules.tokenisation == "subwords"
        self.tokeniser = Tokeniser(self.rules, subwords.load(Path(str(subwords_file)).parent) if spelt else None)
        words = self.vocabulary.words
        others.setdefault("bos_token", words[start_symbol(self.vocabulary)])
        for name, word in (("unk_token", UNK), ("eos_token", EOS), ("pad_token", EOS)):
            if word in self.vocabulary.ids:
                others.setdefault(name, word)
        others.setdefault("special_tokens_pattern", "bos")
        super().__init__(options=options, **others)

    @property
    def vocab_size(self) -> int:
        """How many symbols the vocabulary has."""
        return len(self.vocabulary)

    def get_vocab(self) -> dict[str, int]:
        """Every symbol and its number."""
        return dict(self.vocabulary.ids)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        try:
            tokens = TextReader(self.vocabulary, self.tokeniser).one(text).read
        except UserError as error:
            raise ValueError(str(error)) from error
        ends = bool(tokens) and tokens[-1] == EOS and self.rules.eos != "exact"
        return tokens[:-1] if ends else tokens

    def _convert_token_to_id(self, token: str) -> int:
        found = self.vocabulary.ids.get(token, self.vocabulary.unk)
        if found is None:
            raise ValueError(f"{token!r} is not in the vocabulary of {len(self.vocabulary):,}, which has no {UNK}")
        return found

    def _convert_id_to_token(self, index: int) -> str:
        return self.vocabulary.words[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Join tokens to the text that they spell."""
        return self.tokeniser.decode(tokens)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write the vocabulary, and the model of subwords if there is one."""
        beginning = f"{filename_prefix}-" if filename_prefix else ""
        path = Path(save_directory) / f"{beginning}{VOCABULARY}"
        self.vocabulary.save(path)
        if self.tokeniser.subwords is None:
            return (str(path),)
        pieces = Path(save_directory) / f"{beginning}{subwords.FILE}"
        if Path(str(self.subwords_file)).resolve() != pieces.resolve():
            shutil.copyfile(str(self.subwords_file), pieces)
        return str(path), str(pieces)
