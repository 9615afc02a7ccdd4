"""A recipe for sentences with tags of the user's own."""

from pathlib import Path

from elman.data.kinds import Look
from elman.data.lines import lines_of
from elman.data.text.utf8 import read_text
from elman.kinds.pairs.files import find_files
from elman.kinds.tags.corpus import read_sentences
from elman.kinds.tags.dependencies import dependencies
from elman.kinds.tags.record import TagOptions
from elman.tasks.proposal.proposal import Proposal, changed, held_out

USUAL = 86_000, 8  # words of the sentences that the recipe is for, and epochs that are enough for them


def proposals(found: Look, path: Path) -> list[Proposal]:
    form = found.form or "columns"
    options = TagOptions(form=form)  # type: ignore[arg-type]
    files = find_files(path, options.files)
    paths = files.get("all") or files["train"]
    layout = dependencies(lines_of(read_text(paths[0]))) if form == "columns" else None
    columns = (layout.word, layout.tag) if layout and layout.tag is not None else None
    if columns:
        options = TagOptions(form="columns", word_column=columns[0], tag_column=columns[1])
    sentences = sum(len(read_sentences(path, options)) for path in paths)
    return [of_tags(form, sentences, cut="all" in files, columns=columns)]


def of_tags(form: str, sentences: int, *, cut: bool, columns: tuple[int, int] | None = None) -> Proposal:
    """A recipe for some sentences; `cut`: of one file, of which some are held out; `columns`: of words and tags."""
    recipe = "tagging/small-bidirectional-characters.toml"
    values = {"data.form": form, **(held_out(sentences) if cut else {})}
    column = {"conllu": "UPOS", "joined": "behind the last mark of each word"}.get(form, "the last column of tags")
    if columns:
        values |= {"data.word_column": columns[0], "data.tag_column": columns[1]}
        column = f"column {columns[1]}, words column {columns[0]} (the first is 0); heads of dependencies are not read"
    reason = f"words and tags: a tagger that reads in both directions and spells words; tags are {column}"
    return Proposal(recipe, changed(recipe, values), (reason,))
