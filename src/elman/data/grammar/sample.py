"""Sentences drawn from a grammar, annotated with their agreement, and the texts made of them.

The parse decides which verb agrees with which noun, and what stands between them.
"""

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from elman.config.text import GrammarOptions
from elman.data.grammar.reading import read_grammar
from elman.data.grammar.rules import Grammar
from elman.data.minimal_pairs import AGREEMENT
from elman.data.text.cache import place
from elman.errors import UserError
from elman.files import cache_folder, canonical_json, sha256_lines, write_atomic
from elman.formats import read_json

_TRIES, _SYMBOLS = 10_000, 10_000
_FORMAT = 1


class Leaf(NamedTuple):
    """A word with its category, such as `N[sg]`, and the embedded clauses it is in, outermost first.

    `bond` identifies, within the sentence, the words that share its number; None: it has no number.
    """

    word: str
    symbol: str
    bond: int | None
    clauses: tuple[int, ...]


class Dependency(NamedTuple):
    """A verb and the noun it agrees with, at positions from 0; the verb as it is, and in the other number.

    `number` is that of both, such as `sg`; `depth` counts the clauses that the verb is in, `levels` the clauses within
    each other between noun and verb at the deepest place, `attractors` the nouns of the other number between them
    (Linzen et al. 2016).
    """

    noun: int
    verb: int
    right: str
    wrong: str
    number: str
    depth: int
    levels: int
    attractors: int


class Sentence(NamedTuple):
    """A sentence without `<eos>`, with a dependency for every verb that agrees with a noun, in the order of the verbs.

    A verb whose form in the other number is the same word has none.
    `depth` counts the clauses within each other at the deepest place; 0: a simple sentence.
    """

    words: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    depth: int


def annotate(grammar: Grammar, leaves: Sequence[Leaf]) -> Sentence:
    nouns, links = {leaf.bond: at for at, leaf in enumerate(leaves) if leaf.symbol in grammar.nouns}, []
    for verb, target in enumerate(leaves):
        if target.symbol not in grammar.verbs or target.bond not in nouns:
            continue
        number, noun = grammar.number[target.symbol], nouns[target.bond]
        between = leaves[min(noun, verb) + 1 : max(noun, verb)]
        link = Dependency(
            noun=noun,
            verb=verb,
            right=target.word,
            wrong=grammar.partners[target.symbol, target.word],
            number=number,
            depth=len(target.clauses),
            levels=max((len(set(leaf.clauses) - set(target.clauses)) for leaf in between), default=0),
            attractors=sum(leaf.symbol in grammar.nouns and grammar.number[leaf.symbol] != number for leaf in between),
        )
        links += [link] if link.right != link.wrong else []
    return Sentence(tuple(leaf.word for leaf in leaves), tuple(links), max(len(leaf.clauses) for leaf in leaves))


class Wish(NamedTuple):
    """The constraints on sentences; see `elman.config.text.GrammarOptions`."""

    complex: float | None = None
    max_depth: int | None = None
    max_length: int | None = None


def sentences(grammar: Grammar, wish: Wish, seed: str) -> Iterator[Sentence]:
    """An endless sequence of sentences; equal seeds give equal sentences.

    With `wish.complex` it is drawn first whether a sentence has an embedded clause, then sentences of the grammar until
    one agrees: within simple and within complex sentences the shares are those of the grammar.

    Raises UserError where these rules give no such sentence.
    """
    draw = random.Random(seed)
    while True:
        wanted = None if wish.complex is None else draw.random() < wish.complex
        yield _one(grammar, wish, wanted, draw)


def _one(grammar: Grammar, wish: Wish, wanted: bool | None, draw: random.Random) -> Sentence:
    for _ in range(_TRIES):
        leaves = _derive(grammar, wish, draw)
        if leaves is not None and wanted in (None, any(leaf.clauses for leaf in leaves)):
            return annotate(grammar, leaves)
    kind = {None: "", True: "complex and ", False: "simple and "}[wanted]
    limits = {"max_depth": wish.max_depth, "max_length": wish.max_length}
    given = " and ".join(f"{name} = {limit}" for name, limit in limits.items() if limit is not None)
    raise UserError(
        f"{grammar.name}: none of {_TRIES:,} sentences was {kind}within {given or 'the limits'}; raise the limits, or"
        " change the weights of the rules"
    )


def _derive(grammar: Grammar, wish: Wish, draw: random.Random) -> list[Leaf] | None:
    """The words of one derivation, leftmost first; None when it is too long."""
    leaves: list[Leaf] = []
    bonds, clauses = itertools.count(), itertools.count()
    longest = _SYMBOLS if wish.max_length is None else wish.max_length
    stack: list[tuple[str, int | None, tuple[int, ...]]] = [(grammar.start, None, ())]
    for _ in range(_SYMBOLS):
        if not stack:
            return leaves
        symbol, bond, within = stack.pop()
        if symbol in grammar.embedding:
            within = (*within, next(clauses))
        if symbol in grammar.words:
            choices = grammar.words[symbol]
            (word,) = draw.choices(list(choices), list(choices.values()))
            leaves.append(Leaf(word, symbol, bond, within))
            if len(leaves) > longest:
                return None
            continue
        alternatives = grammar.alternatives(symbol, len(within), wish.max_depth)
        (chosen,) = draw.choices(alternatives, [one.probability for one in alternatives])
        own = {0: bond}
        for part in reversed(chosen.parts):
            if part.bond is not None and part.bond not in own:
                own[part.bond] = next(bonds)
            stack.append((part.symbol, None if part.bond is None else own[part.bond], within))
    if wish.max_length is not None:
        return None
    raise UserError(
        f"{grammar.name}: a sentence did not end within {_SYMBOLS:,} symbols; lower the weights of recursive rules, or"
        " set max_depth or max_length"
    )


def wish_of(options: GrammarOptions) -> Wish:
    """The constraints on validation and test sentences; with stages, those of the last stage."""
    share = options.stages[-1].complex if options.stages and options.complex is None else options.complex
    return Wish(share, options.max_depth, options.max_length)


def write_text(grammar: Grammar, options: GrammarOptions, folder: Path) -> dict[str, list[Sentence]]:
    """Write SPLIT.txt and SPLIT.agreement.tsv of each split, and grammar.json; returns the sentences.

    The training text has the sentences of every stage in order; without stages there is one.
    """
    wish, seed = wish_of(options), f"{options.seed} train"

    def drawn(wish: Wish, seed: str, count: int) -> list[Sentence]:
        return list(itertools.islice(sentences(grammar, wish, seed), count))

    stages = [
        drawn(wish._replace(complex=stage.complex), f"{seed} {number}", stage.sentences or options.sentences)
        for number, stage in enumerate(options.stages)
    ] or [drawn(wish, seed, options.sentences)]
    splits = {
        "train": [sentence for stage in stages for sentence in stage],
        "valid": drawn(wish, f"{options.seed} valid", options.valid),
        "test": drawn(wish, f"{options.seed} test", options.test),
    }
    for split, found in splits.items():
        write_atomic(folder / f"{split}.txt", "".join(f"{' '.join(one.words)}\n" for one in found))
        numbered = enumerate(found, start=1)
        links = ((number, *one) for number, sentence in numbered for one in sentence.dependencies)
        rows = ("\t".join(map(str, row)) for row in (AGREEMENT, *links))
        write_atomic(folder / f"{split}.agreement.tsv", "".join(f"{row}\n" for row in rows))
    write_atomic(folder / "rules.grammar", grammar.text)
    facts = {
        "options": msgspec.to_builtins(options),
        "stage_tokens": [sum(len(one.words) + 1 for one in stage) for stage in stages],
    }
    write_atomic(folder / "grammar.json", json.dumps(facts, indent=1) + "\n")
    return splits


def grammar_folder(options: GrammarOptions, cache: Path | None = None) -> Path:
    """The folder of the text of these options in the cache, written if it is missing.

    Raises UserError where the grammar cannot be read or cannot give such sentences.
    """
    grammar = read_grammar(options.rules)
    # The content of the file decides, so that a file that is moved makes the same text.
    facts = canonical_json(msgspec.structs.replace(options, rules=""))
    digest = sha256_lines(str(_FORMAT), grammar.text, facts)[:16]
    folder = (cache_folder() if cache is None else cache) / "grammars" / f"{Path(options.rules).stem}-{digest}"
    if not (folder / "grammar.json").is_file():
        folder = place(folder)
        write_text(grammar, options, folder)
    return folder


class _Record(msgspec.Struct):
    stage_tokens: list[int]


def stage_tokens(folder: Path) -> list[int]:
    found: _Record = read_json(folder / "grammar.json", _Record)
    return found.stage_tokens
