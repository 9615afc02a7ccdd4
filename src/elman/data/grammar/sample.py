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

    `bonds` identifies, within the sentence, the words that share its value of a feature.
    """

    word: str
    symbol: str
    bonds: dict[str, int]
    clauses: tuple[int, ...]


class Dependency(NamedTuple):
    """A word that agrees, the target, and the one whose feature it has, the controller, at positions from 0.

    `right` is the target as it is, whose `feature` has this `value`, and `wrong` its form of the `other` value, which
    differs from it in nothing else. `depth` counts the clauses that the target is in, `levels` the clauses within each
    other between the two at the deepest place, `attractors` the controllers of another value between them (Linzen et
    al. 2016).
    """

    controller: int
    target: int
    right: str
    wrong: str
    feature: str
    value: str
    other: str
    depth: int
    levels: int
    attractors: int

    @property
    def end(self) -> int:
        """The position of the later of the two words, up to which the wrong form is seen to be wrong."""
        return max(self.controller, self.target)


class Sentence(NamedTuple):
    """A sentence without `<eos>`, with the dependencies of its targets, in the order of these and of the features.

    A target has one for every wrong form; a form of another value that is the same word shows no agreement.
    `depth` counts the clauses within each other at the deepest place; 0: a simple sentence.
    """

    words: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    depth: int


def annotate(grammar: Grammar, leaves: Sequence[Leaf]) -> Sentence:
    sharing: dict[int, list[int]] = {}
    for at, leaf in enumerate(leaves):
        if leaf.symbol in grammar.controllers:
            for bond in leaf.bonds.values():
                sharing.setdefault(bond, []).append(at)
    links = [
        link
        for at, leaf in enumerate(leaves)
        if leaf.symbol in grammar.targets
        for feature, bond in leaf.bonds.items()
        for controller in [one for one in sharing.get(bond, []) if one != at][:1]
        for link in _links(grammar, leaves, controller, at, feature)
    ]
    return Sentence(tuple(leaf.word for leaf in leaves), tuple(links), max(len(leaf.clauses) for leaf in leaves))


def _links(
    grammar: Grammar, leaves: Sequence[Leaf], controller: int, target: int, feature: str
) -> Iterator[Dependency]:
    """The dependencies of a target in one feature: one for each of its wrong forms."""
    leaf, between = leaves[target], leaves[min(controller, target) + 1 : max(controller, target)]
    value = grammar.values[leaf.symbol][feature]
    levels = max((len(set(one.clauses) - set(leaf.clauses)) for one in between), default=0)
    rivals = [grammar.values[one.symbol].get(feature, value) for one in between if one.symbol in grammar.controllers]
    attractors, seen = sum(rival != value for rival in rivals), {leaf.word}
    for other, form in grammar.partners[leaf.symbol, leaf.word, feature]:
        if form not in seen:
            seen.add(form)
            yield Dependency(
                controller, target, leaf.word, form, feature, value, other, len(leaf.clauses), levels, attractors
            )


class Wish(NamedTuple):
    """The constraints on sentences; see `elman.config.text.GrammarOptions`."""

    complex: float | None = None
    max_depth: int | None = None
    max_length: int | None = None


def sentences(grammar: Grammar, wish: Wish, seed: str) -> Iterator[Sentence]:
    """An endless sequence of sentences; equal seeds give equal sentences.

    With `wish.complex` it is drawn first whether a sentence has an embedded clause, then sentences of the grammar until
    one agrees, so that simple and complex sentences each keep their relative probabilities.

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
    fresh, clauses = itertools.count(), itertools.count()
    longest = _SYMBOLS if wish.max_length is None else wish.max_length
    stack: list[tuple[str, dict[str, int], tuple[int, ...]]] = [(grammar.start, {}, ())]
    for _ in range(_SYMBOLS):
        if not stack:
            return leaves
        symbol, bonds, within = stack.pop()
        if symbol in grammar.embedding:
            within = (*within, next(clauses))
        if symbol in grammar.words:
            choices = grammar.words[symbol]
            (word,) = draw.choices(list(choices), list(choices.values()))
            leaves.append(Leaf(word, symbol, bonds, within))
            if len(leaves) > longest:
                return None
            continue
        alternatives = grammar.alternatives(symbol, len(within), wish.max_depth)
        (chosen,) = draw.choices(alternatives, [one.probability for one in alternatives])
        own = {(feature, 0): bond for feature, bond in bonds.items()}
        for part in reversed(chosen.parts):
            for key in part.bonds:
                if key not in own:
                    own[key] = next(fresh)
            stack.append((part.symbol, {key[0]: own[key] for key in part.bonds}, within))
    if wish.max_length is not None:
        return None
    raise UserError(
        f"{grammar.name}: a sentence did not end within {_SYMBOLS:,} symbols; lower the weights of recursive rules, or"
        " set max_depth or max_length"
    )


def wish_of(options: GrammarOptions) -> Wish:
    """The constraints on validation and test sentences; with stages, as in the last stage."""
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
    return read_json(folder / "grammar.json", _Record).stage_tokens
