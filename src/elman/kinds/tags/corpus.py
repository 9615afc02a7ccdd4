"""Sentences with tags: words and tags as ids, splits, and the batches that training reads."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from elman.data.batches import Batch
from elman.data.lines import lines_of
from elman.data.sentences import Ids, LabelledCorpus, LabelledSplit, LabelledSymbols
from elman.data.text.utf8 import read_text
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.errors import UserError, notice
from elman.files import sha256_lines
from elman.kinds.pairs.files import labelled_splits
from elman.kinds.tags.bank import is_chunk_tag, read_bank
from elman.kinds.tags.columns import TaggedSentence, read_columns, read_joined
from elman.kinds.tags.lexicon import Lexicon
from elman.kinds.tags.record import TagOptions


@dataclasses.dataclass(frozen=True)
class TagSymbols(LabelledSymbols):
    """The words that a tagger reads, the tags that it chooses from, and the words of the training split with theirs.

    No tag of the training split is `<unk>`: that is what tags of other data are that it lacks, and is never chosen.
    """

    LABELS_FILE = "tags.tsv"

    options: TagOptions
    lexicon: Lexicon

    @property
    def in_chunks(self) -> bool:
        """Whether all tags mark chunks: `B-TYPE`, `I-TYPE` and `O`."""
        return all(is_chunk_tag(tag) for tag in self.labels.words if tag != UNK)

    @property
    def digest(self) -> str:
        return sha256_lines(self.words.digest, self.labels.digest, self.lexicon.digest)

    def save(self, folder: Path) -> None:
        super().save(folder)
        self.lexicon.save(folder)

    @classmethod
    def load(cls, folder: Path, options: TagOptions) -> "TagSymbols":
        """Read what `save` wrote; raises UserError where a file is missing or damaged."""
        return cls(*cls.load_vocabularies(folder), options, Lexicon.load(folder))


@dataclasses.dataclass(frozen=True)
class TaggedSplit(LabelledSplit):
    """A split with the tags of every sentence, as they stand and as ids.

    `facts` holds counts: sentences (`lines`), words (`tokens`), unknown words and tags, and sentences left out.
    """

    tags: list[list[str]]
    labels: list[npt.NDArray[np.int32]]


class TagCorpus(LabelledCorpus[TagOptions, TaggedSplit]):
    def gather(self, split: TaggedSplit, indices: Sequence[int]) -> Batch:
        return gather([split.ids[index] for index in indices], [split.labels[index] for index in indices])


def gather(ids: Sequence[Ids], labels: Sequence[Ids]) -> Batch:
    words, tags = (
        torch.nn.utils.rnn.pad_sequence([torch.from_numpy(one.astype(np.int64)) for one in some])
        for some in (ids, labels)
    )
    lengths = torch.tensor([len(one) for one in ids])
    return Batch(words, tags, torch.arange(len(words)).unsqueeze(1) < lengths)


def open_tags(source: str | Path, options: TagOptions, *, symbols: TagSymbols | None = None) -> TagCorpus:
    """Read sentences with tags: a file, which is cut, or a folder with train, valid and test.

    `symbols`: of a run; None: they are counted in the training split. Notices report what is left out or unknown.
    Raises UserError where a file cannot be used, or there are too few sentences, words or tags.
    """
    raw, too_long, digests = labelled_splits(
        source,
        options,
        "sentences",
        "words and tags in columns or trees in brackets, in one file or a folder with train, valid, test",
        lambda paths: [one for path in paths for one in read_sentences(path, options)],
        lambda one: len(one.words),
        say=symbols is None,
    )
    symbols = _count(raw["train"], options, str(source)) if symbols is None else symbols
    for name, sentences in raw.items() if symbols.in_chunks else ():
        if other := next((tag for one in sentences for tag in one.tags if not is_chunk_tag(tag)), None):
            raise UserError(
                f"{source}: the {name} split has the tag {other!r}, and all tags of training are B-TYPE, I-TYPE or O;"
                " write it in the same form"
            )
    splits = {name: split_of(name, sentences, symbols) for name, sentences in raw.items()}
    splits["train"].facts["too_long"] = too_long
    for name, split in splits.items():
        if unknown := split.facts["unknown_tags"]:
            notice(f"{source}: {unknown:,} words of the {name} split have tags that training lacks: counted as wrong")
    return TagCorpus(Path(source).resolve().name, str(source), options, splits, symbols, digests)


def read_sentences(path: Path, options: TagOptions) -> list[TaggedSentence]:
    """The sentences of a file in the form of the options; raises UserError, with the line, where it is damaged."""
    if options.form == "trees":
        return read_bank(read_text(path), str(path), options.tags)
    if options.form == "joined":
        return read_joined(lines_of(read_text(path)), str(path))
    return read_columns(path, options)


def _count(train: list[TaggedSentence], options: TagOptions, name: str) -> TagSymbols:
    words, tags = ([word for one in train for word in one[side]] for side in (0, 1))
    words = [word.lower() for word in words] if options.lowercase else words
    if UNK in tags:
        raise UserError(f"{name}: a word has the tag {UNK}, which stands for tags that training lacks; rename it")
    try:
        known = Vocabulary.from_counts(
            Counter(words), options.min_count, options.max_vocabulary, add_eos=False, add_unk=True
        )
    except UserError as error:
        raise UserError(f"{name}: words: {error}") from None
    counts = Counter(tags)
    if len(counts) < 2:
        column = " (data.tag_column chooses the column)" if options.form != "trees" else ""
        raise UserError(f"{name}: every word has the tag {tags[0]!r}; a tagger needs two tags or more{column}")
    labels = Vocabulary.from_counts(counts, add_eos=False, add_unk=True)
    return TagSymbols(known, labels, options, Lexicon.of(words, tags))


def split_of(name: str, sentences: Sequence[TaggedSentence], symbols: TagSymbols) -> TaggedSplit:
    ids = [symbols.encode(one.words) for one in sentences]
    labels = [symbols.labels.encode(one.tags) for one in sentences]
    facts = {
        "lines": len(sentences),
        "tokens": sum(map(len, ids)),
        "unknown": int(sum((one == symbols.words.ids[UNK]).sum() for one in ids)),
        "unknown_tags": int(sum((one == symbols.unknown_label).sum() for one in labels)),
    }
    words, tags = [one.words for one in sentences], [one.tags for one in sentences]
    return TaggedSplit(name, words, ids, facts, tags, labels)
