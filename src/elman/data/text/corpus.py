"""A corpus of text: a vocabulary and the splits as memory-mapped ids."""

import dataclasses
from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions, identity
from elman.data.catalog.known import locate
from elman.data.text.block_reading import Progress
from elman.data.text.cache import Counts, Made, kept
from elman.data.text.files import plain_name
from elman.data.text.passages import passages, stop_after
from elman.data.text.preparation import encode, vocabulary_of
from elman.data.text.sources import Corpus, Found, Section, find_sections, named, one_text, require_all
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.utf8 import as_utf8, read_lines
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.files import cache_folder, sha256_lines

if TYPE_CHECKING:
    from elman.data.text.subwords import Subwords


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split(Counts):
    """One split of a corpus, its ids [N] int32 memory-mapped.

    A model that reads spelling reads `inputs` [N] int32 instead of `tokens`, where that was asked for: there unknown
    words have numbers from V on, in the order of `unknown_words` (`elman.data.text.sentences.spelled_split`).
    """

    name: str
    tokens: npt.NDArray[np.int32]
    inputs: npt.NDArray[np.int32] | None = None
    unknown_words: tuple[str, ...] = ()

    def counted(self, *, skip_first: bool) -> "Split":
        """What a score counts: the split, or all but its first token, with the counts of that part."""
        if not skip_first:
            return self
        left = {name: getattr(self, name) - value for name, value in msgspec.structs.asdict(self.first).items()}
        inputs = None if self.inputs is None else self.inputs[1:]
        return dataclasses.replace(self, tokens=self.tokens[1:], inputs=inputs, **left)


ALL = "all"  # the name of all splits together, in the order of the text
_FORMAT = 4
_FACTS = ("unknown", "characters", "num_bytes", "num_words", "lines", "sha256")


@dataclasses.dataclass(frozen=True, eq=False)
class TextCorpus(Corpus[TextOptions, Split]):
    vocabulary: Vocabulary
    subwords: "Subwords | None" = None

    def split(self, name: str) -> Split:
        """As `Corpus.split`; `all` is the splits one after another, a whole file that was cut."""
        if name != ALL:
            return split_named(self.splits, name, self.source)
        splits = list(self.splits.values())
        summed = ("unknown", "characters", "num_bytes", "num_words", "unseparated", "lines")
        return Split(
            name=ALL,
            tokens=np.concatenate([split.tokens for split in splits]),
            **{name: sum(getattr(split, name) for split in splits) for name in summed},
            first=splits[0].first,
            sha256=sha256_lines(*(split.sha256 for split in splits)),
        )

    @property
    def tokeniser(self) -> Tokeniser:
        return Tokeniser(self.options, self.subwords)

    @property
    def digest(self) -> str:
        """SHA-256 over the vocabulary, the source files and the options."""
        parts = [self.vocabulary.digest, identity(self.options)]
        parts += [] if self.subwords is None else [self.subwords.digest]
        return sha256_lines(*parts, *(f"{name} {split.sha256}" for name, split in self.splits.items()))

    def facts(self) -> dict[str, Any]:
        return {
            "vocabulary": {"size": len(self.vocabulary), "digest": self.vocabulary.digest},
            "splits": {
                name: {"tokens": len(split.tokens), **{fact: getattr(split, fact) for fact in _FACTS}}
                for name, split in self.splits.items()
            },
        }


def open_corpus(
    source: str | Path,
    options: TextOptions,
    *,
    vocabulary: Vocabulary | None = None,
    partial: bool = False,
    subwords: "Subwords | None" = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> TextCorpus:
    """Open a corpus, encoding it first if that was not done before.

    The source is the name of a known corpus (`elman data list`), a folder with `train.txt`, `valid.txt` and `test.txt`,
    or one text file, which is cut by the rule of `elman.data.text.sources.cut`. A folder with the name of a known
    corpus is written `./name`. Encoded texts are kept in `cache`, by default `elman.files.cache_folder()`.

    With a vocabulary, as for evaluation with the one of a run, and its model of subwords, splits may be missing, and
    `min_count`, `max_vocabulary` and `vocabulary_from` have no effect. Without it the vocabulary is counted, and all
    three splits must be there unless `partial`.

    Raises UserError where the source, one of its files or its text cannot be used.
    """
    cache = cache_folder() if cache is None else cache
    path = locate(source, "text", cache)
    try:
        sections = _find(path, cache / "utf-8", options, all_three=vocabulary is None and not partial)
        digests = [f"{name} {one.sha256} {one.start} {one.stop}" for name, one in sections.items()]
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}); give a text file") from None

    def kept_in(name: str, *facts: str) -> Path:
        return cache / name / sha256_lines(f"format {_FORMAT}", *facts, *digests)[:32]

    if vocabulary is None:
        folder = kept_in("vocabularies", identity(options))
        vocabulary, subwords = vocabulary_of(path, sections, options, folder, progress)
        if options.vocabulary_from == "init":
            vocabulary = vocabulary.with_words_of_start()
    reading = [options.tokenisation, str(options.lowercase), options.eos, options.normalisation, options.ruby]
    reading += [vocabulary.digest, "" if subwords is None else subwords.digest]

    def make(folder: Path) -> Made:
        counts = {
            name: encode(section, vocabulary, options, folder / f"{name}.int32", progress, subwords)
            for name, section in sections.items()
        }
        return [f"{name}.int32" for name in counts], counts

    folder, found = kept(kept_in("encoded", *reading), make)
    splits = {}
    for name, counts in found.items():
        tokens = np.memmap(folder / f"{name}.int32", dtype="<i4", mode="r", shape=(counts.tokens,))
        splits[name] = Split(**(vars(counts) | {"name": name, "tokens": tokens}))
    return TextCorpus(
        name=Path(plain_name(path)).stem if path.is_file() else path.resolve().name,
        source=str(source),
        options=options,
        vocabulary=vocabulary,
        splits=splits,
        subwords=subwords,
    )


def first_words(corpus: TextCorpus, split: str, count: int) -> list[str]:
    """The first `count` tokens of a split as they stand in the text, also those that the vocabulary lacks."""
    cache, options = cache_folder(), corpus.options
    one = _find(locate(corpus.source, "text", cache), cache / "utf-8", options, all_three=False)[split]
    found = passages(read_lines(one.files, one.start, one.stop, options), options, corpus.subwords)
    return [*islice(chain.from_iterable(passage.words for passage in found), count)]


def split_named(splits: Mapping[str, Found], name: str, source: str | Path) -> Found:
    """The split of this name; raises UserError where the text does not have it, which names `all` if it was cut."""
    return named(splits, name, source, f"; {ALL} is the whole text" if one_text(Path(source)) else "")


def _find(source: Path, copies: Path, options: TextOptions, *, all_three: bool) -> dict[str, Section]:
    bytewise = options.tokenisation == "bytes"
    sections = find_sections(source, options, lambda path: path if bytewise else as_utf8(path, copies))
    if all_three:
        require_all(sections, source, options)
    elif not sections:
        raise UserError(f"{source}: there is no split; give a folder with train.txt, valid.txt or test.txt")
    if options.train_tokens is not None and (train := sections.get("train")) is not None:
        stop = stop_after(options.train_tokens, train.files, options, train.start, train.stop)
        sections["train"] = dataclasses.replace(train, stop=stop)
    return sections
