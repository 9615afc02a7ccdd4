"""Vocabularies of a text, and models of subwords, made once and kept in the cache folder."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from elman.config.text import TextOptions
from elman.data.text import subwords as units
from elman.data.text.bytewise import BYTES
from elman.data.text.cache import Progress, count_words
from elman.data.text.cleaning import clean
from elman.data.text.lines import read_lines
from elman.data.text.sources import Section
from elman.data.text.subwords import Subwords
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.files import write_atomic


def counted(
    source: Path, sections: dict[str, Section], options: TextOptions, folder: Path, progress: Progress | None
) -> tuple[Vocabulary, Subwords | None]:
    """The vocabulary of a text and, of subwords, their model: those in `folder`, or made and written there.

    The vocabulary of bytes has all 256 of them and that of subwords has every piece, whether they occur or not.

    Raises:
        UserError: the text or the sizes cannot be used.

    """
    table, model = folder / "vocabulary.tsv", folder / units.FILE
    if table.is_file():
        return Vocabulary.load(table), units.load(folder) if options.tokenisation == "subwords" else None
    subwords = _train(sections["train"], options) if options.tokenisation == "subwords" else None
    names = sections if options.vocabulary_from == "all" else ["train"]
    counts = count_words([sections[name] for name in names], options, progress, subwords)
    try:
        vocabulary = Vocabulary.from_counts(
            _with_all_units(counts, options, subwords),
            0 if options.open_vocabulary else options.min_count,
            options.max_vocabulary,
            add_eos=options.eos != "none",
            add_unk=options.tokenisation == "raw",
        )
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    if subwords is not None:
        write_atomic(model, subwords.model)
    vocabulary.save(table)  # last: the folder is whole where it is
    return vocabulary, subwords


def _with_all_units(counts: Counter[str], options: TextOptions, subwords: Subwords | None) -> Counter[str]:
    pieces = subwords.pieces if subwords is not None else BYTES if options.tokenisation == "bytes" else ()
    for piece in pieces:
        if piece != "\n":  # it is <eos>, or a space
            counts.setdefault(piece, 0)
    return counts


def _train(section: Section, options: TextOptions) -> Subwords:
    def lines() -> Iterator[str]:
        for line in read_lines(section.path, section.start, section.stop, options):
            text = clean(line.text, options).removesuffix("\n")
            yield text.lower() if options.lowercase else text

    return units.train(lines(), options.subwords)
