"""A run on trees, and what can be computed with the model in its folder."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from elman.data.trees.brackets import Node
from elman.data.trees.shape import NONE, Shape, tree_of
from elman.errors import UserError
from elman.evaluation.labelling import reading
from elman.evaluation.measures import tree_measures
from elman.evaluation.result import OutputQuality, Result
from elman.evaluation.statistics import estimate, estimates
from elman.jobs import Advance
from elman.kinds.trees.baselines import bag_of_words, branching_measures, majority
from elman.kinds.trees.corpus import TreeCorpus, TreeSymbols, gather, open_trees
from elman.kinds.trees.evaluation import Search, choose, label_accuracy, label_constituents, linear_trees, parse
from elman.network.cores.recursive import Recursive
from elman.network.tree_model import TreeModel
from elman.tasks.evaluating import DEFAULT, EvaluationOptions
from elman.tasks.splits import LabelledRun


class Parse(NamedTuple):
    """A tree that was found over a sentence, rooted in `ROOT`, parts of speech `XX`; and its nodes with labels."""

    tree: Node
    shape: Shape
    labels: tuple[str, ...]


class TreeRun(LabelledRun):
    """A trained model of trees with its vocabularies and recipe; raises UserError where the folder is not such a run.

    Example (see docs/trees-and-tags.md)::

        run = elman.load("runs/treebank")
        bracketed(run.parse([["we", "sleep"]])[0].tree)
    """

    kind, reads, allowed = "trees", "set of labels", ("streams", "search")
    symbols, opening = TreeSymbols, open_trees
    inputs: TreeSymbols
    model: TreeModel

    @property
    def is_parser(self) -> bool:
        """Whether it finds trees, rather than labelling the nodes of given ones alone."""
        core = self.recipe.model.core
        return isinstance(core, Recursive) and core.parser

    def result(
        self, corpus: TreeCorpus, name: str, options: EvaluationOptions = DEFAULT, advance: Advance = None
    ) -> Result:
        """The labels of the constituents of a split, and the brackets of the trees that a parser finds.

        Beside them stand baselines that are fitted to the training split.
        """
        if options.search is not None and not self.is_parser:
            raise UserError(f"--search: {self.path} labels given trees and does not parse; leave it out")
        search, batch_size = options.search or self.data.evaluation.search, options.streams or 32
        split = corpus.split(name)
        found = label_constituents(self.model, corpus, split, batch_size=batch_size)
        systems = {
            "this network": found,
            "majority": majority(corpus, split),
            "bag of words": bag_of_words(corpus, [split])[0],
        }
        labels = {name: estimate(label_accuracy(one, len(split))) for name, one in systems.items()}
        output = None
        if self.is_parser:
            texts = [" ".join(words) for words in split.sentences]
            trees = parse(self.model, self.inputs, split.sentences, search, batch_size=batch_size, advance=advance)
            output = OutputQuality(
                beam=1,
                copy_unknown=False,
                search=search,
                measures=estimates(
                    tree_measures(linear_trees(trees, split.sentences, self.inputs), split.linear, texts)
                ),
                baseline=branching_measures(corpus, split),
                baseline_name="right-branching",
            )
        return found.score.result(
            split.name,
            accuracy=labels["this network"].value / 100,
            unknown=split.facts["unknown"],
            pairs=len(split),
            context="every tree by itself",
            method="static",
            output=output,
            labels=labels,
        )

    def parse(
        self,
        sentences: Sequence[Sequence[str]],
        search: Search | None = None,
        *,
        name: str = "sentence",
        advance: Advance = None,
    ) -> list[Parse]:
        """The best tree over every sentence, a list of words; `search` None: as the recipe says.

        Raises UserError where the run is no parser, or a sentence is empty or longer than `evaluation.max_words` of the
        recipe's data; the message calls the sentences by `name` and their numbers.
        """
        self.require_parser("parse")
        limit = self.data.evaluation.max_words
        for number, words in enumerate(sentences, start=1):
            if not 0 < len(words) <= limit:
                raise UserError(
                    f"{name}:{number}: {len(words)} words; a sentence has 1 to {limit} (data.evaluation.max_words of"
                    " the run): divide it"
                )
        found = parse(self.model, self.inputs, sentences, search or self.data.evaluation.search, advance=advance)
        parses = []
        for one, words in zip(found, sentences, strict=True):
            labels = tuple(self.inputs.labels.decode(one.labels))
            parses.append(Parse(tree_of(one.shape, words, labels), one.shape, labels))
        return parses

    @torch.inference_mode()
    def label(self, sentences: Sequence[Sequence[str]], shapes: Sequence[Shape]) -> list[list[str]]:
        """The labels of the nodes of given trees, in the order of their shapes; those that have none keep it."""
        named = []
        for vectors, shape in zip(self.vectors(sentences, shapes), shapes, strict=True):
            log_probs = self.model.label_log_probs(torch.from_numpy(vectors).to(self.device))
            found = self.inputs.labels.decode(choose(log_probs, self.inputs)[0].tolist())
            named.append([one if there else NONE for one, there in zip(found, shape.is_constituent, strict=True)])
        return named

    @torch.inference_mode()
    def vectors(self, sentences: Sequence[Sequence[str]], shapes: Sequence[Shape]) -> list[npt.NDArray[np.float32]]:
        """The vectors of the nodes of trees, [nodes, H] for each sentence, in the order of its shape."""
        model, ids = reading(self.model, self.inputs, sentences)
        found = []
        for one, shape in zip(ids, shapes, strict=True):
            batch = gather(self.inputs, [one], [shape]).to(model.device)
            assert batch.trees is not None
            states = model.nodes(model.leaves(batch.inputs, batch.trees.lengths), batch.trees)
            found.append(states[0].float().cpu().numpy())
        return found

    def require_parser(self, what: str) -> None:
        """Raises UserError where the run cannot search for trees, which `what` needs."""
        if not self.is_parser:
            raise UserError(
                f"{self.path}: {what} needs a parser, and this run labels the nodes of given trees; train one with"
                " model.core.parser = true and a table training.margin"
            )
