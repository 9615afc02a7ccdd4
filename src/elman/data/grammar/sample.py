"""Sentences drawn from a grammar, each with its parse."""

import hashlib
import itertools
import json
import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from elman.config.text import GrammarOptions
from elman.data.grammar.agreement import Leaf, Sentence, annotate
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.rules import Grammar
from elman.data.text.cache import cache_folder
from elman.errors import UserError
from elman.files import write_atomic

_TRIES, _SYMBOLS = 10_000, 10_000


class Wish(NamedTuple):
    """What sentences should be like; see `elman.config.text.GrammarOptions`."""

    complex: float | None = None
    max_depth: int | None = None
    max_length: int | None = None


class _Open(NamedTuple):
    symbol: str
    bond: int | None
    clauses: tuple[int, ...]


def sentences(grammar: Grammar, wish: Wish, seed: str) -> Iterator[Sentence]:
    """Sentences without end; equal seeds give equal sentences.

    With `wish.complex` it is drawn first whether a sentence has an embedded clause, then sentences of the grammar until
    one is so: within simple and within complex sentences the shares are those of the grammar.

    Raises:
        UserError: such sentences are not to be had from these rules.

    """
    draw = random.Random(seed)
    while True:
        wanted = None if wish.complex is None else draw.random() < wish.complex
        yield _one(grammar, wish, wanted, draw)


def _one(grammar: Grammar, wish: Wish, wanted: bool | None, draw: random.Random) -> Sentence:
    for _ in range(_TRIES):
        leaves = _derive(grammar, wish, draw)
        if leaves is None or wanted not in (None, any(leaf.clauses for leaf in leaves)):
            continue
        return annotate(grammar, leaves)
    kind = {None: "", True: "complex ", False: "simple "}[wanted]
    raise UserError(
        f"{grammar.name}: none of {_TRIES:,} sentences was a {kind}one within max_depth = {wish.max_depth} and"
        f" max_length = {wish.max_length}; raise them, or change the weights of the rules"
    )


def _derive(grammar: Grammar, wish: Wish, draw: random.Random) -> list[Leaf] | None:
    """The words of one derivation, leftmost first; None when it is longer than wished."""
    leaves: list[Leaf] = []
    bonds, clauses = itertools.count(), itertools.count()
    longest = _SYMBOLS if wish.max_length is None else wish.max_length
    stack = [_Open(grammar.start, None, ())]
    for _ in range(_SYMBOLS):
        if not stack:
            return leaves
        top = stack.pop()
        within = (*top.clauses, next(clauses)) if top.symbol in grammar.embedding else top.clauses
        if top.symbol in grammar.words:
            choices = grammar.words[top.symbol]
            (word,) = draw.choices(list(choices), list(choices.values()))
            leaves.append(Leaf(word, top.symbol, top.bond, within))
            if len(leaves) > longest:
                return None
            continue
        alternatives = grammar.alternatives(top.symbol, len(within), wish.max_depth)
        (chosen,) = draw.choices(alternatives, [one.probability for one in alternatives])
        own = {0: top.bond}
        for part in reversed(chosen.parts):
            if part.bond is not None and part.bond not in own:
                own[part.bond] = next(bonds)
        stack += [
            _Open(part.symbol, None if part.bond is None else own[part.bond], within) for part in reversed(chosen.parts)
        ]
    if wish.max_length is not None:
        return None
    raise UserError(
        f"{grammar.name}: a sentence did not end within {_SYMBOLS:,} symbols; lower the weights of recursive rules, or"
        " set max_depth or max_length"
    )


# FOLDED data/grammar/text.py: The text that a grammar makes, kept in the cache by what it is made from: split files and what is known of
# them.
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
