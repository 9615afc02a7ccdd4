"""The initial weights of training on words: from another run, and word classes by their vectors."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from elman.errors import UserError
from elman.network.encoders.characters import CharactersEncoder
from elman.network.encoders.lookup import LookupEncoder
from elman.network.model import LanguageModel
from elman.network.output.adaptive import AdaptiveChoice
from elman.network.output.flat import FlatChoice
from elman.network.output.input_gate import is_of_gate
from elman.network.output.mixtape import MixtapeChoice
from elman.network.output.rare_class import RareClassChoice
from elman.network.output.tree import TreeChoice, by_example, by_similarity
from elman.tasks.text.run import TextRun

Rows = list[int]  # numbers of rows of a parameter
View = Callable[[Tensor], Tensor]  # from a parameter to a view of it, whose first axis has the rows that are meant


def start_from(model: LanguageModel, words: Sequence[str], run: TextRun) -> int:
    """Copy the weights of a run into a model; what stands for words, or for letters, is mapped by these.

    Rows of words or letters that the run lacks keep their random weights, and so does an input-to-output gate. A tree
    of words takes the clusters of the run. Returns the number of words found in the other vocabulary; raises UserError
    where the two networks have parameters of other names or sizes, or rows for other words that cannot be mapped.
    """
    theirs, known = _weights(run.model), run.vocabulary.ids
    here = [index for index, word in enumerate(words) if word in known]
    there = [known[words[index]] for index in here]
    if tuple(words) != tuple(run.vocabulary.words):
        _require_mappable(model, run)
    mapped = _mapped(_tables(model, len(words)), _tables(run.model, len(run.vocabulary)), here, there)
    if isinstance(model.encoder, CharactersEncoder) and isinstance(run.model.encoder, CharactersEncoder):
        letters = model.encoder.alphabet.shared(run.model.encoder.alphabet)
        mapped["encoder.weight"] = _Mapped([one for one, _ in letters], [one for _, one in letters])
    for name, parameter in _weights(model).items():
        other, rows = theirs.get(name), mapped.get(name)
        if other is not None and rows is not None and rows.fit(parameter, other):
            rows.copy_(parameter, other)
        elif other is not None and parameter.shape == other.shape:
            parameter.copy_(other)
        elif other is not None or not is_of_gate(name):
            found = "missing" if other is None else tuple(other.shape)
            raise UserError(
                f"--init {run.path}: its network differs: {name} is {found} there and {tuple(parameter.shape)} here;"
                " use the same model section in both recipes"
            )
    if isinstance(model.output.choice, TreeChoice) and isinstance(run.model.output.choice, TreeChoice):
        model.output.choice.arrange(by_example(run.model.output.choice, here, there, len(words)))
    return len(here)


def _weights(model: LanguageModel) -> dict[str, Tensor]:
    """The parameters, and what the core draws once and does not learn, such as a reservoir."""
    drawn = model.core.named_buffers(prefix="core")
    return {name: tensor.detach() for name, tensor in (*model.named_parameters(), *drawn)}


def _require_mappable(model: LanguageModel, run: TextRun) -> None:
    """Raises UserError where rows stand for words by their rank, or for other clusters of words."""
    choice, other = model.output.choice, run.model.output.choice
    if isinstance(choice, RareClassChoice) or (isinstance(choice, AdaptiveChoice) and choice.tied is None):
        kind = "rare-class" if isinstance(choice, RareClassChoice) else "adaptive"
        raise UserError(
            f'--init {run.path}: its vocabulary is another, and with model.output.choice.kind = "{kind}" rows are'
            " words by their rank; train on its vocabulary, or use a choice that is tied or flat in both"
        )
    if isinstance(choice, TreeChoice) and isinstance(other, TreeChoice) and len(choice.starts) != len(other.starts):
        clusters, own = len(other.starts) - 1, len(choice.starts) - 1
        raise UserError(
            f"--init {run.path}: its words are in {clusters} clusters, and here they would be in {own}; add"
            f" --set model.output.choice.clusters={clusters}"
        )


class _Table(NamedTuple):
    """A parameter that, as `view` shows it, has a row for each word, the rows of all words [V], and other rows."""

    words: Rows
    others: Rows
    view: View


class _Mapped(NamedTuple):
    """Rows here and rows there that stand for the same, of two parameters as they are viewed."""

    ours: Rows
    theirs: Rows
    views: tuple[View, View] = (Tensor.detach, Tensor.detach)

    def fit(self, parameter: Tensor, other: Tensor) -> bool:
        return self.views[0](parameter).shape[1:] == self.views[1](other).shape[1:]

    def copy_(self, parameter: Tensor, other: Tensor) -> None:
        self.views[0](parameter)[self.ours] = self.views[1](other)[self.theirs]


def _tables(model: LanguageModel, num_words: int) -> dict[str, _Table]:
    """The parameters with a row for each word, by their names."""
    choice, core, gate = model.output.choice, model.core, model.output.contexts.gate
    names = ("weight", "bias", *(("gate_weight", "gate_bias") if isinstance(choice, FlatChoice) else ()))
    held: list[tuple[object, str]] = [(choice, name) for name in names]
    held += [(model.encoder, "weight")] if isinstance(model.encoder, LookupEncoder) else []
    held += [(gate, "weight")] if gate is not None else []
    parameters = (getattr(module, name, None) for module, name in held)
    tables = [one for one in parameters if isinstance(one, Tensor) and len(one) == num_words]
    found = {id(table): _Table([*range(num_words)], [], Tensor.detach) for table in tables}
    if isinstance(choice, AdaptiveChoice) and choice.tied is not None and choice.bias is not None:
        head, tails = choice.cutoffs[0], len(choice.cutoffs)
        words = [*range(head), *range(head + tails, num_words + tails)]
        found[id(choice.bias)] = _Table(words, [*range(head, head + tails)], Tensor.detach)
    if isinstance(choice, MixtapeChoice):
        shared, nodes = choice.frequent, choice.components - 1
        words, others = [min(word, shared) for word in range(num_words)], [shared] * (shared < num_words)
        found[id(choice.gate_word)] = _Table(words, others, Tensor.detach)
        found[id(choice.gate_bias)] = _Table(words, others, lambda bias: bias.view(-1, nodes))
    if core.hears:
        found[id(core.weight_ch)] = _Table([*range(num_words)], [], Tensor.t)
    return {name: found[id(parameter)] for name, parameter in model.named_parameters() if id(parameter) in found}


def _mapped(ours: dict[str, _Table], theirs: dict[str, _Table], here: Rows, there: Rows) -> dict[str, _Mapped]:
    """By the names of parameters, rows here and rows there that stand for the same."""
    found = {}
    for name in ours.keys() & theirs.keys():
        own, other = ours[name], theirs[name]
        pairs = [(own.words[i], other.words[j]) for i, j in zip(here, there, strict=True)]
        pairs = [pair for pair in pairs if pair[0] not in own.others]
        if len(own.others) == len(other.others):
            pairs += zip(own.others, other.others, strict=True)
        found[name] = _Mapped([one for one, _ in pairs], [one for _, one in pairs], (own.view, other.view))
    return found


def arrange_clusters(model: LanguageModel) -> None:
    """Put the words of a tree together by the vectors that training starts from."""
    tree, encoder = model.output.choice, model.encoder
    assert isinstance(tree, TreeChoice)
    assert isinstance(encoder, LookupEncoder | CharactersEncoder)
    vectors = encoder.weight if isinstance(encoder, LookupEncoder) else encoder.encode_words(encoder.words)
    tree.arrange(by_similarity(vectors.detach().numpy(), len(tree.cluster_weight)))
