"""A recipe for a treebank of the user's own."""

from pathlib import Path

from elman.data.kinds import Look
from elman.kinds.pairs.files import find_files, read_pairs
from elman.kinds.pairs.record import PairOptions
from elman.tasks.proposal.proposal import Proposal, changed, held_out

USUAL = 51_000, 10  # constituents of the treebank that the recipe is for, and epochs that are enough for it


def proposals(found: Look, path: Path) -> list[Proposal]:  # noqa: ARG001 - trees look alike
    options = PairOptions(form="trees", skip_empty=True)
    files = find_files(path, options)
    trees, _ = read_pairs(files.get("all") or files["train"], options)
    return [of_trees(len(trees), cut="all" in files)]


def of_trees(trees: int, *, cut: bool) -> Proposal:
    """A recipe for this number of trees; `cut`: of one file, of which some are held out."""
    recipe = "treebank/small-parser.toml"
    return Proposal(recipe, changed(recipe, held_out(trees) if cut else {}), ("trees: a parser that labels nodes",))
