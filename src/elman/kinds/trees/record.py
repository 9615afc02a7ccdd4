"""Trees as data: sentences with their constituents, labelled by the treebank's own categories."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from elman.config.data import Data
from elman.config.parts import tag_of
from elman.config.recipe import Recipe
from elman.config.record import Positive, Record, Reporting
from elman.kinds.pairs.record import PairOptions


class TreeOptions(Record, frozen=True, kw_only=True):
    """How a treebank becomes words, labels and trees.

    Attributes:
        split, valid, test: which trees of a single file are held out, and how many, as of pairs: those whose sentence
            has the smallest SHA-256 (`hash`), or the `last`. Folders that bring their own splits are taken as they are.
        binary: how a constituent of more than two children becomes binary: its last children are put together
            (`right`), its first ones (`left`), or it is left unchanged (`none`).
        lowercase: fold capitals of words, never of labels.
        functions: keep functions of labels (`NP-SBJ`), else `NP`.
        min_count: words seen less often in training become `<unk>`.
        max_vocabulary: greatest number of words.
        min_label: labels seen less often in training become `<unk>`, which a parser never writes.
        max_words: longer training sentences are left out.
    """

    split: Literal["hash", "last"] = "hash"
    valid: Positive = 300
    test: Positive = 300
    binary: Literal["right", "left", "none"] = "right"
    lowercase: bool = False
    functions: bool = False
    min_count: Positive = 2
    max_vocabulary: Annotated[int, Meta(ge=4)] | None = None
    min_label: Positive = 2
    max_words: Positive = 100

    @property
    def files(self) -> PairOptions:
        """How the files are found, read and divided: as pairs of a sentence and its tree."""
        return PairOptions(
            form="trees", split=self.split, valid=self.valid, test=self.test, tags="keep", functions=self.functions
        )


class TreeEvaluation(Record, frozen=True, kw_only=True):
    """How trees are searched for when a parser is evaluated (`decoding/parsing.py`).

    `max_words`: longer sentences are refused by `elman parse`; a chart takes time and memory by the cube of the length.
    Held-out trees are always read as a whole.
    """

    search: Literal["chart", "greedy"] = "chart"
    max_words: Positive = 150


class TreeData(TreeOptions, Data, frozen=True, kw_only=True, tag_field="kind", tag="trees"):
    """A treebank in brackets; `corpus` is a file or a folder, unless --data names another."""

    encoders = ("lookup", "characters")
    command = "parse --text SENTENCE"
    proposal = "elman.kinds.trees.proposal"
    needs = "trees in brackets, in one file or a folder with train, valid and test"
    task = "elman.kinds.trees.task:TreeTask"
    own_core = "recursive"
    reporting = Reporting(
        "NLL",
        "nll",
        "constituent",
        "NLL is the mean negative log-likelihood of the label of a constituent, given its tree, in nats; accuracy is"
        " the share of constituents whose most probable label is right. The loss of a"
        " parser in training and validation adds the NLL of the labels of all nodes and the structured margin.",
        ("accuracy", "accuracy"),
        (("lines", "sentences"), ("unknown", "unknown words")),
        (
            ("nll", "nats/label", ".4f"),
            ("accuracy", "accuracy", ".4f"),
            ("tokens", "constituents", ","),
            ("pairs", "trees", ","),
        ),
        read="word",
    )

    corpus: str | None = None
    digest: str | None = None
    evaluation: TreeEvaluation = TreeEvaluation()

    def check(self, recipe: Recipe) -> None:
        """Raise ValueError where parts of a network over trees do not belong together."""
        core: Any = recipe.model.core  # of the kind "recursive"
        if core.parser != (recipe.training.margin is not None):
            raise ValueError("model.core.parser = true and the table training.margin belong together; set both or none")
        if self.binary == "none" and (core.parser or tag_of(core.composition) != "child-sum-lstm"):
            raise ValueError(
                'data.binary = "none": constituents of any number of children need the composition child-sum-lstm and'
                ' a network that is no parser; set data.binary = "right"'
            )
