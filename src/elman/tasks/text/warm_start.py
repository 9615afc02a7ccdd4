"""The initial weights of training: on words another run's weights and word classes by their vectors; a gate alone."""

from collections.abc import Sequence
from pathlib import Path

import torch

from elman import config
from elman.errors import UserError
from elman.network.encoders.characters import Characters
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.network.output.input_gate import is_of_gate, train_alone
from elman.network.output.tree import Tree, by_similarity
from elman.tasks.text.run import TextRun


def start_from(model: LanguageModel, words: Sequence[str], run: TextRun) -> int:
    """Copy the weights of a run into a model; rows that stand for words are mapped by the words' spelling.

    An input-to-output gate that the run lacks keeps its random weights. Returns the number of words found in the other
    vocabulary; raises UserError where the two networks have parameters of other names or sizes.
    """
    theirs = dict(run.model.named_parameters())
    known = run.vocabulary.ids
    here = [index for index, word in enumerate(words) if word in known]
    there = [known[words[index]] for index in here]
    for name, parameter in model.named_parameters():
        other = theirs.get(name)
        by_word = len(parameter.shape) > 0 and parameter.shape[0] == len(words)
        same_rest = other is not None and parameter.shape[1:] == other.shape[1:]
        if other is not None and by_word and same_rest and other.shape[0] == len(run.vocabulary):
            with torch.no_grad():
                parameter[here] = other[there]
        elif other is not None and parameter.shape == other.shape:
            with torch.no_grad():
                parameter.copy_(other)
        elif other is not None or not is_of_gate(name):
            found = "missing" if other is None else tuple(other.shape)
            raise UserError(
                f"--init {run.path}: its network differs: {name} is {found} there and {tuple(parameter.shape)} here;"
                " use the same model section in both recipes"
            )
    return len(here)


def arrange_clusters(output: config.Output, model: LanguageModel, init: Path | None) -> None:
    """Where the recipe asks for it, put the words of a tree together by the vectors that training starts from.

    Raises UserError where the vectors are random, since no run is started from.
    """
    if not (isinstance(output.choice, config.Tree) and output.choice.assignment == "similarity"):
        return
    if init is None:
        raise UserError(
            'model.output.choice.assignment = "similarity" needs trained word vectors: train with'
            ' "frequency" first and give that run with --init, or keep "frequency"'
        )
    tree, encoder = model.output.choice, model.encoder
    assert isinstance(tree, Tree)
    assert isinstance(encoder, Lookup | Characters)
    vectors = encoder.weight if isinstance(encoder, Lookup) else encoder.encode_words(encoder.words)
    tree.arrange(by_similarity(vectors.detach().numpy(), len(tree.cluster_weight)))


def freeze_all_but_gate(output: config.Output, model: LanguageModel, init: Path | None, *, resume: bool) -> None:
    """Where the recipe asks for it, train the input-to-output gate alone, on the weights that training starts from.

    Raises UserError where these are random, since no run is started from.
    """
    if output.gate is None or not output.gate.alone:
        return
    if init is None and not resume:
        raise UserError(
            "model.output.gate.alone trains the gate of a trained model, and its weights are random here: train the"
            " network without the gate first and give that run with --init, or set alone = false"
        )
    train_alone(model)
