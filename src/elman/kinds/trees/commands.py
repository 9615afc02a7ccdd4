"""elman parse and elman analyze phrases: the trees of sentences, and the phrases of a treebank near to a phrase."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from elman.cli import progress, show, texts
from elman.cli.groups import Common
from elman.cli.options import DataSource, FreeText, OutText, Positive, TextFile, file_to_write
from elman.errors import UserError, counted
from elman.files import replacing

if TYPE_CHECKING:
    from elman.data.trees.brackets import Node
    from elman.data.trees.shape import Shape
    from elman.kinds.trees.run import TreeRun


class _Found(NamedTuple):
    """A sentence, its tree, and its nodes with their labels."""

    words: list[str]
    tree: "Node"
    shape: "Shape"
    labels: Sequence[str]


def parse(
    run: Annotated[Path, Parameter(help="a run on trees")],
    file: TextFile | None = None,
    /,
    *,
    text: FreeText | None = None,
    given: bool = False,
    raw: bool = False,
    search: Literal["chart", "greedy"] | None = None,
    vectors: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    page: Annotated[Path | None, Parameter(metavar="FILE", validator=file_to_write)] = None,
    out: OutText = None,
    common: Common = Common(),
) -> None:
    """Write the tree of every sentence in brackets, each word with the part of speech XX; ( ) as -LRB- -RRB-.

    Sentences have a line each, words and marks at spaces as in the treebank; a sentence has at most as many words as
    data.evaluation.max_words of the run. With --given trees in brackets are read and the labels of their nodes found.

    Args:
        file: a UTF-8 text with a sentence per line; - is standard input
        text: one sentence instead of a file
        given: read trees in brackets and label their nodes, which a run that is no parser can do too
        raw: split marks off words, as in `data.tokenisation = "raw"` of a text
        search: chart, or greedy, which is faster and worse (default: as the recipe says)
        vectors: also write the vectors of all phrases, as a .npz file
        page: also write a page with the trees drawn
        out: the file to write (default: standard output)
    """
    from elman.data.kinds import Seen
    from elman.data.text.utf8 import to_bytes
    from elman.data.trees.brackets import bracketed
    from elman.kinds.trees.looks import claim
    from elman.kinds.trees.run import TreeRun

    lines, name = texts.sentence_lines(file, text)
    if vectors is not None and vectors.suffix != ".npz":
        raise UserError(f"--vectors is {vectors}; its name must end in .npz")
    loaded = common.open_as(TreeRun, run)
    if given:
        if raw or search is not None:
            raise UserError("--given reads whole trees: leave out --raw and --search")
        found = _labelled(loaded, lines, name)
    elif claim(Seen(Path(name), to_bytes("\n".join([*lines, ""])))):
        raise UserError(f"{name}: trees in brackets; add --given to read them, or give a sentence in each line")
    else:
        found = _parsed(loaded, lines, name, raw=raw, search=search)
    texts.say_unknown(loaded.recipe.model.encoder, loaded.inputs.tally([one.words for one in found]), name)
    if vectors is not None:
        _write_vectors(vectors, loaded, found)
    if page is not None:
        from elman.kinds.trees.phrases import write_tree_page

        write_tree_page(page, f"{loaded.recipe.title} over {Path(name).name}", [(one.words, one.tree) for one in found])
        progress.log().print(f"report: {page}")
    if common.as_json:
        written = show.json_line([_record(one) for one in found]) + "\n"
    else:
        written = "".join(f"{bracketed(one.tree)}\n" for one in found)
    show.write_or_print(out, written, counted(len(found), "tree"))


def _parsed(
    loaded: "TreeRun", lines: list[str], name: str, *, raw: bool, search: Literal["chart", "greedy"] | None
) -> list[_Found]:
    loaded.require_parser("elman parse without --given")
    sentences = texts.sentences(lines, name, raw=raw)
    with progress.counting("parsing") as advance:
        found = loaded.parse(sentences, search, name=name, advance=advance)
    return [_Found(words, *one) for words, one in zip(sentences, found, strict=True)]


def _labelled(loaded: "TreeRun", lines: list[str], name: str) -> list[_Found]:
    from elman.data.trees.brackets import leaves, read_trees
    from elman.data.trees.shape import shape_of, tree_of

    trees = read_trees("\n".join(lines), name)
    sentences = [[leaf.word for leaf in leaves(tree)] for tree in trees]
    shapes = [shape_of(tree, loaded.options.binary, functions=loaded.options.functions) for tree in trees]
    labels = loaded.label(sentences, shapes)
    return [
        _Found(words, tree_of(shape, words, named), shape, named)
        for words, shape, named in zip(sentences, shapes, labels, strict=True)
    ]


def _record(one: _Found) -> dict[str, Any]:
    from elman.data.trees.brackets import bracketed
    from elman.data.trees.shape import NONE

    nodes = [
        {"label": label, "start": start, "end": end}
        for label, (start, end) in zip(one.labels, one.shape.spans, strict=True)
        if label != NONE
    ]
    return {"words": one.words, "tree": bracketed(one.tree), "constituents": nodes}


def _write_vectors(path: Path, loaded: "TreeRun", found: list[_Found]) -> None:
    """Arrays over all nodes: number of the sentence, first word, word after the last, label, vector."""
    import numpy as np

    vectors = loaded.vectors([one.words for one in found], [one.shape for one in found])
    spans = [(number, *span) for number, one in enumerate(found, start=1) for span in one.shape.spans]
    sentence, start, end = np.array(spans, np.int32).T
    labels = np.array([label for one in found for label in one.labels])
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, sentence=sentence, start=start, end=end, label=labels, vector=np.concatenate(vectors))


def phrases(
    run: Annotated[Path, Parameter(help="a run on trees")],
    phrase: tuple[str, ...],
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
        phrase: phrases, words and marks at spaces, or trees in brackets
        k: phrases per phrase
        data: another treebank (default: the run's own)
        split: train, valid or test
    """
    from elman.data.trees.brackets import leaves, read_tree
    from elman.data.trees.shape import shape_of
    from elman.kinds.trees.phrases import Phrases
    from elman.kinds.trees.run import Parse, TreeRun

    loaded = common.open_as(TreeRun, run)
    asked = []
    for number, text in enumerate(phrase, start=1):
        if text.lstrip().startswith("(") and text.rstrip().endswith(")"):
            tree = read_tree(text, f"phrase {number}")
            shape = shape_of(tree, loaded.options.binary, functions=loaded.options.functions)
            asked.append(([leaf.word for leaf in leaves(tree)], Parse(tree, shape, shape.labels)))
        elif words := text.split():
            asked.append((words, loaded.parse([words], name=f"phrase {number}")[0]))
        else:
            raise UserError(f"phrase {number} is empty; give words")
    texts.say_unknown(loaded.recipe.model.encoder, loaded.inputs.tally([words for words, _ in asked]), "the phrases")
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
