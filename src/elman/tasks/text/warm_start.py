"""The initial weights of training: on words another run's weights and word classes by their vectors; a gate alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from elman import config
from elman.errors import UserError
from elman.network.encoders.characters import Characters
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.network.output.adaptive import Adaptive
from elman.network.output.flat import Flat
from elman.network.output.input_gate import is_of_gate, train_alone
from elman.network.output.rare_class import RareClass
from elman.network.output.tree import Tree, by_similarity
from elman.tasks.text.run import TextRun

Rows = list[int]
"""Numbers of rows of a parameter."""


def start_from(model: LanguageModel, words: Sequence[str], run: TextRun) -> int:
    """Copy the weights of a run into a model; rows that stand for words, or for letters, are mapped by these.

    Rows of words or letters that the run lacks keep their random weights, and so does an input-to-output gate. Returns
    the number of words found in the other vocabulary; raises UserError where the two networks have parameters of other
    names or sizes, or rows for other words that cannot be mapped.
    """
    theirs, known = dict(run.model.named_parameters()), run.vocabulary.ids
    here = [index for index, word in enumerate(words) if word in known]
    there = [known[words[index]] for index in here]
    if tuple(words) != tuple(run.vocabulary.words):
        _require_mappable(model, run)
    mapped = _mapped(_rows_of_words(model, len(words)), _rows_of_words(run.model, len(run.vocabulary)), here, there)
    if isinstance(model.encoder, Characters) and isinstance(run.model.encoder, Characters):
        letters = model.encoder.alphabet.shared(run.model.encoder.alphabet)
        mapped["encoder.weight"] = [one for one, _ in letters], [one for _, one in letters]
    for name, parameter in model.named_parameters():
        other = theirs.get(name)
        if other is not None and name in mapped and parameter.shape[1:] == other.shape[1:]:
            ours, own = mapped[name]
            with torch.no_grad():
                parameter[ours] = other[own]
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


def _require_mappable(model: LanguageModel, run: TextRun) -> None:
    """Raises UserError where rows stand for words by their rank, as those of tails and of a class of rare words."""
    choice = model.output.choice
    if isinstance(choice, RareClass) or (isinstance(choice, Adaptive) and choice.tied is None):
        kind = "rare-class" if isinstance(choice, RareClass) else "adaptive"
        raise UserError(
            f'--init {run.path}: its vocabulary is another, and with model.output.choice.kind = "{kind}" rows are'
            " words by their rank; train on its vocabulary, or use a choice that is tied or flat in both"
        )


class _Table(NamedTuple):
    """A parameter with a row for each word: those rows [V], and its other rows, such as those of tails."""

    words: Rows
    others: Rows


def _rows_of_words(model: LanguageModel, num_words: int) -> dict[str, _Table]:
    """The parameters with a row for each word, by their names."""
    choice, gate = model.output.choice, model.output.contexts.gate
    names = ("weight", "bias", *(("gate_weight", "gate_bias") if isinstance(choice, Flat) else ()))
    held: list[tuple[object, str]] = [(choice, name) for name in names]
    held += [(model.encoder, "weight")] if isinstance(model.encoder, Lookup) else []
    held += [(gate, "weight")] if gate is not None else []
    parameters = (getattr(module, name, None) for module, name in held)
    tables = [one for one in parameters if isinstance(one, Tensor) and len(one) == num_words]
    found = {id(table): _Table([*range(num_words)], []) for table in tables}
    if isinstance(choice, Adaptive) and choice.tied is not None and choice.bias is not None:
        head, tails = choice.cutoffs[0], len(choice.cutoffs)
        words = [*range(head), *range(head + tails, num_words + tails)]
        found[id(choice.bias)] = _Table(words, [*range(head, head + tails)])
    return {name: found[id(parameter)] for name, parameter in model.named_parameters() if id(parameter) in found}


def _mapped(
    ours: dict[str, _Table], theirs: dict[str, _Table], here: Rows, there: Rows
) -> dict[str, tuple[Rows, Rows]]:
    """By the names of parameters, rows here and rows there that stand for the same."""
    found = {}
    for name in ours.keys() & theirs.keys():
        own, other = ours[name], theirs[name]
        both = [own.words[at] for at in here], [other.words[at] for at in there]
        alike = len(own.others) == len(other.others)
        found[name] = (both[0] + own.others, both[1] + other.others) if alike else both
    return found


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
