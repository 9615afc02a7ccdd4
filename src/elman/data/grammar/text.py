"""The text that a grammar makes, kept in the cache by what it is made from: split files and what is known of them."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from elman.data.cache import cache_folder
from elman.data.grammar.agreement import Sentence
from elman.data.grammar.options import GrammarOptions
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.rules import Grammar
from elman.data.grammar.sample import Wish, sentences
from elman.files import write_atomic

_FORMAT = 1

COLUMNS = ("sentence", "noun", "verb", "right", "wrong", "number", "depth", "levels", "attractors")
"""Of `SPLIT.agreement.tsv`: sentences from 1, positions within a sentence from 0."""


def wish_of(options: GrammarOptions) -> Wish:
    """What validation and test sentences are like; with stages, those of the last stage."""
    share = options.stages[-1].complex if options.stages and options.complex is None else options.complex
    return Wish(share, options.max_depth, options.max_length)


def training_stages(grammar: Grammar, options: GrammarOptions) -> list[list[Sentence]]:
    """The training sentences of every stage; without stages there is one."""
    if not options.stages:
        return [_draw(grammar, wish_of(options), f"{options.seed} train", options.sentences)]
    return [
        _draw(
            grammar,
            wish_of(options)._replace(complex=stage.complex),
            f"{options.seed} train {number}",
            stage.sentences or options.sentences,
        )
        for number, stage in enumerate(options.stages)
    ]


def write_text(grammar: Grammar, options: GrammarOptions, folder: Path) -> dict[str, list[Sentence]]:
    """Write train.txt, valid.txt and test.txt, for each SPLIT.agreement.tsv, and grammar.json; the sentences."""
    stages = training_stages(grammar, options)
    splits = {"train": [sentence for stage in stages for sentence in stage]}
    for split, count in (("valid", options.valid), ("test", options.test)):
        splits[split] = _draw(grammar, wish_of(options), f"{options.seed} {split}", count)
    for split, found in splits.items():
        write_atomic(folder / f"{split}.txt", "".join(f"{' '.join(one.words)}\n" for one in found))
        write_atomic(folder / f"{split}.agreement.tsv", "".join(f"{line}\n" for line in _table(found)))
    write_atomic(folder / "rules.grammar", grammar.text)
    facts = {
        "options": msgspec.to_builtins(options),
        "stage_tokens": [sum(len(one.words) + 1 for one in stage) for stage in stages],
    }
    write_atomic(folder / "grammar.json", json.dumps(facts, indent=1) + "\n")
    return splits


def grammar_folder(options: GrammarOptions, cache: Path | None = None) -> Path:
    """The folder of the text of these options, written if it is not there.

    Raises:
        UserError: the grammar cannot be read or cannot give such sentences.

    """
    grammar = read_grammar(options.rules)
    # A file that is moved makes the same text; what decides is what is in it.
    named = msgspec.json.encode(msgspec.structs.replace(options, rules=""), order="sorted").decode()
    digest = hashlib.sha256(f"{_FORMAT}\n{grammar.text}\n{named}".encode()).hexdigest()[:16]
    folder = (cache_folder() if cache is None else cache) / "grammars" / f"{Path(options.rules).stem}-{digest}"
    if not (folder / "grammar.json").is_file():
        write_text(grammar, options, folder)
    return folder


def stage_tokens(folder: Path) -> list[int]:
    """How many tokens of the training text every stage has."""
    return list(json.loads((folder / "grammar.json").read_text(encoding="utf-8"))["stage_tokens"])


def _draw(grammar: Grammar, wish: Wish, seed: str, count: int) -> list[Sentence]:
    return list(islice(sentences(grammar, wish, seed), count))


def _table(found: Iterable[Sentence]) -> Iterator[str]:
    yield "\t".join(COLUMNS)
    for number, sentence in enumerate(found, start=1):
        for one in sentence.dependencies:
            cells = (
                number,
                one.noun,
                one.verb,
                one.right,
                one.wrong,
                one.number,
                one.depth,
                one.levels,
                one.attractors,
            )
            yield "\t".join(map(str, cells))
