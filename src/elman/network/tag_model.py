"""A model of sentences with tags: the tag of every word, given the whole sentence."""

from typing import final

from jaxtyping import Bool, Float, Int
from torch import Tensor

from elman.network.cores.core import Trace
from elman.network.cores.sentence import SentenceCore
from elman.network.model import LanguageModel


@final
class TagModel(LanguageModel):
    """p(tag | sentence, word), each word's tag by itself.

    Shapes: S words, B sentences, L tags. Used as a model of sequences it takes a window as whole sentences.
    """

    core: SentenceCore

    def read(self, words: Int[Tensor, "S B"], mask: Bool[Tensor, "S B"]) -> Trace:
        """What the output layer reads at every word; the mask is false at padding, which has no effect."""
        return self.core.read(self.encoder(words), mask)._replace(inputs=words)

    def tag_log_probs(self, words: Int[Tensor, "S B"], mask: Bool[Tensor, "S B"]) -> Float[Tensor, "S B L"]:
        """Log-probabilities of the tags of every word; those at padding mean nothing."""
        return self.output.log_probs(self.read(words, mask))
