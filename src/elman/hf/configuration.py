"""What a network is built from, as transformers stores it in config.json."""

from collections.abc import Sequence
from typing import Any, final

from transformers import PretrainedConfig

from elman import config
from elman.config.parts import convert


@final
class ElmanConfig(PretrainedConfig):
    """The recipe's network, its vocabulary's size and counts, and its words where the model reads their spelling."""

    model_type = "elman"

    def __init__(
        self,
        network: dict[str, Any] | None = None,
        vocab_size: int = 0,
        counts: Sequence[int] = (),
        words: Sequence[str] | None = None,
        **others: Any,
    ) -> None:
        self.network = network or {}
        self.vocab_size, self.counts, self.words = vocab_size, list(counts), None if words is None else list(words)
        super().__init__(**others)

    @property
    def recipe(self) -> config.Model:
        """The network as a recipe has it."""
        return convert(self.network, config.Model)
