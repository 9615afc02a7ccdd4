"""elman tag: the tag of every word of sentences, and how probable it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from elman.cli import progress, show, texts
from elman.cli.groups import Common
from elman.cli.options import FreeText, OutText, TextFile
from elman.errors import UserError, counted

if TYPE_CHECKING:
    from elman.kinds.tags.columns import TaggedSentence
    from elman.kinds.tags.run import Tagged, TagRun


class _Found(NamedTuple):
    """A tagged sentence, and its given tags; None where they were not given."""

    tagged: "Tagged"
    given: list[str] | None

    def record(self) -> dict[str, Any]:
        return self.tagged._asdict() | ({} if self.given is None else {"given": self.given})

    def lines(self, *, probabilities: bool) -> str:
        """A word per line, with its given tag, the tag found and its probability; a blank line follows."""
        columns = [self.tagged.words, *([] if self.given is None else [self.given]), self.tagged.tags]
        if probabilities:
            columns.append([f"{one:.4f}" for one in self.tagged.probabilities])
        return "".join("\t".join(row) + "\n" for row in zip(*columns, strict=True)) + "\n"


def tag(
    run: Annotated[Path, Parameter(help="a run on tags")],
    file: TextFile | None = None,
    /,
    *,
    text: FreeText | None = None,
    given: bool = False,
    raw: bool = False,
    probabilities: bool = False,
    out: OutText = None,
    common: Common = Common(),
) -> None:
    """Write the tag of every word: a word per line, a tab and its tag, a blank line after each sentence.

    Sentences have a line each, words and marks at spaces as in the data of the run. With --given the file is in the
    form of these data instead, and its own tags stand before those that were found.

    Args:
        file: a UTF-8 text with a sentence per line; - is standard input
        text: one sentence instead of a file
        given: read words with tags, in the form of the data of the run, and report how many tags are right
        raw: split marks off words, as in `data.tokenisation = "raw"` of a text
        probabilities: also write how probable each tag is
        out: the file to write (default: standard output)
    """
    from elman.kinds.tags.recognition import recognised
    from elman.kinds.tags.run import TagRun

    lines, name = texts.sentence_lines(file, text)
    loaded = common.open_as(TagRun, run)
    if given:
        if raw:
            raise UserError("--given reads words as they are given: leave out --raw")
        found = _compared(loaded, lines, name)
    elif recognised(lines):
        raise UserError(f"{name}: words and tags in columns; add --given to read them, or give a sentence in each line")
    else:
        found = [_Found(one, None) for one in _tagged(loaded, texts.sentences(lines, name, raw=raw), name)]
    if common.as_json:
        written = show.json_line([one.record() for one in found]) + "\n"
    else:
        written = "".join(one.lines(probabilities=probabilities) for one in found)
    show.write_or_print(out, written, counted(len(found), "sentence"))


def _tagged(loaded: "TagRun", sentences: list[list[str]], name: str) -> "list[Tagged]":
    with progress.counting("tagging") as advance:
        found = loaded.tag(sentences, name=name, advance=advance)
    texts.say_unknown(loaded.recipe.model.encoder, loaded.inputs.tally(sentences), name)
    return found


def _compared(loaded: "TagRun", lines: list[str], name: str) -> list[_Found]:
    """Sentences with their own tags and those that were found; how many are right is said on standard error."""
    given = _given(loaded, lines, name)
    found = _tagged(loaded, [one.words for one in given], name)
    pairs = [pair for one, own in zip(found, given, strict=True) for pair in zip(one.tags, own.tags, strict=True)]
    right = sum(ours == theirs for ours, theirs in pairs)
    progress.log().print(f"{right:,} of {len(pairs):,} words tagged right ({100 * right / len(pairs):.2f} %)")
    return [_Found(one, own.tags) for one, own in zip(found, given, strict=True)]


def _given(loaded: "TagRun", lines: list[str], name: str) -> "list[TaggedSentence]":
    from elman.kinds.tags.bank import read_bank
    from elman.kinds.tags.columns import read_lines

    if loaded.options.form == "trees":
        return read_bank("\n".join(lines), name, loaded.options.tags)
    return read_lines(lines, name, loaded.options)
