"""elman analyze phrases: the phrases of a treebank that are nearest to a phrase."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from elman.cli import show
from elman.cli.groups import Common
from elman.cli.options import DataSource, Positive
from elman.cli.texts import say_unknown
from elman.errors import UserError


def phrases(
    run: Annotated[Path, Parameter(help="a run on trees")],
    texts: tuple[str, ...],
    /,
    *,
    k: Annotated[Positive, Parameter(name="-k")] = 5,
    data: DataSource = None,
    split: str = "train",
    common: Common = Common(),
) -> None:
    """The phrases of a treebank nearest to a phrase, by the cosine of their vectors.

    A phrase is parsed, and the vector of its topmost node is compared with the vectors of all constituents of more than
    one word. A run that is no parser needs phrases as trees in brackets. Prints a table, no page.

    Args:
        texts: phrases, words and marks at spaces, or trees in brackets
        k: phrases per phrase
        data: another treebank (default: the run's own)
        split: train, valid or test
    """
    from elman.analysis.phrases import Phrases
    from elman.data.trees.brackets import leaves, read_tree
    from elman.data.trees.shape import shape_of
    from elman.kinds.trees.run import Parse, TreeRun

    loaded = common.open_as(TreeRun, run)
    asked = []
    for number, text in enumerate(texts, start=1):
        if text.lstrip().startswith("(") and text.rstrip().endswith(")"):
            tree = read_tree(text, f"phrase {number}")
            shape = shape_of(tree, loaded.options.binary, functions=loaded.options.functions)
            asked.append(([leaf.word for leaf in leaves(tree)], Parse(tree, shape, shape.labels)))
        elif words := text.split():
            asked.append((words, loaded.parse([words], name=f"phrase {number}")[0]))
        else:
            raise UserError(f"phrase {number} is empty; give words")
    say_unknown(loaded, [words for words, _ in asked], "the phrases")
    known = Phrases(loaded, loaded.corpus(data).split(split))
    found = [(words, known.nearest(parse, words, k)) for words, parse in asked]
    facts = {
        "run": str(run),
        "split": split,
        "phrases": [{"phrase": " ".join(words), "nearest": [one._asdict() for one in near]} for words, near in found],
    }
    rows = [
        [" ".join(words) if not place else "", one.text, one.label, f"{one.cosine:.3f}"]
        for words, near in found
        for place, one in enumerate(near)
    ]
    table = (f"{run}: nearest phrases of {split}", ["phrase", "nearest", "label", "cosine"], rows)
    show.print_result(common.as_json, facts, table)
