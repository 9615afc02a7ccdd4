"""A run: the folder that training writes, and everything that can be asked of the model in it."""

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from elman.build import build_model
from elman.config import Characters, Recipe, load_recipe
from elman.data import subwords
from elman.data.corpus import Corpus, Split, encode_lines, open_corpus
from elman.data.grammar.text import grammar_folder
from elman.data.lexicon import spelled_sentences, spelled_split
from elman.data.pair_symbols import PairSymbols
from elman.data.pitches import Pitches
from elman.data.tokeniser import Tokeniser
from elman.data.vocabulary import Vocabulary
from elman.data.windows import start_symbol
from elman.errors import UserError
from elman.evaluation.scoring import score_document, score_sentences
from elman.generation import Sampling, generate, read
from elman.learning import checkpoint, snapshot
from elman.model import LanguageModel
from elman.state import State

Scores = TypeVar("Scores")
"""What a way of scoring gives for a sentence, such as its log-probabilities."""


class Run:
    """A trained language model with its vocabulary and recipe.

    Example (see docs/python.md)::

        run = elman.load("runs/shakespeare")
        for words, log_probs in run.score(["To be, or not to be"]):
            ...
        run.next_words("to be or not to", k=5)
        " ".join(run.words("my lord,", count=20, seed=1))

    Args:
        path: the run folder.
        device: where the model lives.

    Raises:
        UserError: the folder is not a run.

    """

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        self.path, self.device = Path(path), torch.device(device)
        self.recipe = recipe_of(self.path)
        if self.recipe.of_music:
            raise UserError(f"{path} is a run on music; here a run on text is needed")
        if self.recipe.of_pairs:
            raise UserError(f"{path} is a run on pairs of a source and a target; here a run on text is needed")
        self.vocabulary = Vocabulary.load(self.path / "vocabulary.tsv")

    @property
    def inputs(self) -> Vocabulary:
        """What the model reads."""
        return self.vocabulary

    @functools.cached_property
    def model(self) -> LanguageModel:
        """The best model, in evaluation mode.

        Raises:
            UserError: there is none yet, it is damaged, or it belongs to another vocabulary.

        """
        model, _ = load_model(self.path, self.recipe, self.vocabulary, self.device)
        return model

    @property
    def first(self) -> int:
        """The symbol that precedes a text."""
        return start_symbol(self.vocabulary)

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """data.json: where the text came from, and its counts."""
        return data_facts(self.path)

    def corpus(self, data: str | Path | None = None, **options: Any) -> Corpus:
        """The run's corpus, or another one encoded with the run's vocabulary."""
        source = text_source(self.path, self.recipe) if data is None else data
        text, pieces = self.recipe.data.text, self.tokeniser.subwords
        return open_corpus(source, text, vocabulary=self.vocabulary, subwords=pieces, **options)

    @functools.cached_property
    def tokeniser(self) -> Tokeniser:
        """From lines to tokens and back."""
        text = self.recipe.data.text
        return Tokeniser(text, subwords.load(self.path) if text.tokenisation == "subwords" else None)

    def sentences(self, lines: Iterable[str]) -> Iterator[tuple[list[str], np.ndarray]]:
        """The tokens of every sentence, as they stand in the text, and their ids."""
        return encode_lines(lines, self.vocabulary, self.recipe.data.text, self.tokeniser.subwords)

    @property
    def reads_spelling(self) -> bool:
        """Whether words beyond the vocabulary have vectors of their own."""
        return isinstance(self.recipe.model.encoder, Characters)

    def split(self, corpus: Corpus, name: str) -> Split:
        """A split to evaluate: where the model reads spelling, with its unknown words told apart."""
        return spelled_split(corpus, name) if self.reads_spelling else corpus.split(name)

    def encode(self, text: str) -> list[int]:
        """The ids of a piece of text, without an `<eos>` at its end; unknown words become `<unk>`.

        With `eos = "exact"` every line feed is an `<eos>`, one at the end too.
        """
        return self.read(text, known_only=True)[1]

    def read(self, text: str, *, known_only: bool = False) -> tuple[LanguageModel, list[int]]:
        """As `encode`, but where the model reads spelling unknown words have ids of their own, which it knows."""
        exact = self.recipe.data.text.eos == "exact"
        sentences = list(self.sentences(io.StringIO(text, newline="\n") if exact else text.splitlines() or [""]))
        parts, unknown = [ids.astype(np.int64) for _, ids in sentences], list[str]()
        if self.reads_spelling and not known_only:
            words = (words for words, _ in sentences)
            parts, unknown = spelled_sentences(words, self.vocabulary, self.recipe.data.text)
        ids = [int(symbol) for part in parts for symbol in part]
        ids = ids[:-1] if ids and ids[-1] == self.vocabulary.eos and not exact else ids
        return (self.model.knowing(unknown) if unknown else self.model), ids

    def score(self, lines: Sequence[str], *, document: bool = False) -> Iterator[tuple[list[str], np.ndarray]]:
        """The tokens of every sentence, and their log-probabilities (nats)."""
        score = score_document if document else score_sentences
        if not self.reads_spelling:
            return self.score_by(lines, lambda sentences: score(self.model, sentences, self.first))
        words = [words for words, _ in encode_lines(lines, self.vocabulary, self.recipe.data.text)]
        inputs, unknown = spelled_sentences(words, self.vocabulary, self.recipe.data.text)
        model = self.model.knowing(unknown)
        return self.score_by(lines, lambda sentences: score(model, sentences, self.first, inputs=inputs))

    def score_by(
        self, lines: Sequence[str], score: Callable[[list[np.ndarray]], Iterator[Scores]]
    ) -> Iterator[tuple[list[str], Scores]]:
        """As `score`, by a function of the sentences' ids, such as `AdaptiveStream.score_all`."""
        sentences = list(self.sentences(lines))
        yield from zip((words for words, _ in sentences), score([ids for _, ids in sentences]), strict=True)

    def begin(self) -> State:
        """The state of one text that has not begun."""
        return self.model.begin(1)

    def step(self, word: str, state: State) -> tuple[Tensor, State]:
        """Read one word; the log-probabilities [V] of the next and the state after it."""
        model, ids = self.model, [int(self.vocabulary.encode([word])[0])]
        if self.reads_spelling and word not in self.vocabulary.ids:
            model, ids = self.model.knowing([word]), [len(self.vocabulary)]
        log_probs, state = read(model, ids, state)
        return log_probs.squeeze(0), state

    def next_words(self, prompt: str, k: int = 10) -> list[tuple[str, float]]:
        """The k most probable words to follow `prompt`, with their probabilities."""
        model, ids = self.read(prompt)
        log_probs, _ = read(model, [self.first, *ids], self.begin())
        best = log_probs.squeeze(0).topk(min(k, len(self.vocabulary)))
        words = self.vocabulary.decode(best.indices.tolist())
        return list(zip(words, best.values.exp().tolist(), strict=True))

    def words(self, prompt: str = "", *, count: int, seed: int = 0, sampling: Sampling | None = None) -> list[str]:
        """Draw `count` words to follow `prompt`."""
        generator = torch.Generator(self.device).manual_seed(seed)
        model, ids = self.read(prompt)
        stream = generate(
            model,
            [self.first, *ids],
            self.begin(),
            sampling or Sampling(forbidden=self.unspeakable),
            generator,
        )
        return self.vocabulary.decode([symbol for symbol, _ in (next(stream) for _ in range(count))])

    @property
    def unspeakable(self) -> tuple[int, ...]:
        """Symbols that a sample should not contain: `<unk>`."""
        return () if self.vocabulary.unk is None else (self.vocabulary.unk,)


def load(path: Path | str, device: torch.device | str = "cpu") -> Run:
    """Open a run folder."""
    return Run(path, device)


def recipe_of(folder: Path) -> Recipe:
    """The recipe of a run folder.

    Raises:
        UserError: the folder is not a run.

    """
    if not (folder / "recipe.toml").is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no recipe.toml; give the folder that `elman train --out` wrote"
        )
    return load_recipe(folder / "recipe.toml")


def data_facts(folder: Path) -> dict[str, Any]:
    """data.json of a run folder: where its text came from, its counts and digest.

    Raises:
        UserError: it is missing or damaged.

    """
    path = folder / "data.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or not {"source", "digest"} <= facts.keys():
        raise UserError(f"{path}: missing or damaged; restore the file of the run, or train again")
    return facts


def text_source(folder: Path, recipe: Recipe) -> str:
    """Where a run's data is; the text of a grammar that is no longer in the cache is made again.

    Raises:
        UserError: data.json is missing or damaged, or the grammar cannot be read.

    """
    source = str(data_facts(folder)["source"])
    if recipe.data.grammar is not None and not Path(source).exists():
        return str(grammar_folder(recipe.data.grammar))
    return source


def load_model(
    path: Path, recipe: Recipe, vocabulary: Vocabulary | Pitches | PairSymbols, device: torch.device
) -> tuple[LanguageModel, dict[str, Any]]:
    """The best model of a run folder in evaluation mode, and the facts saved with it; `vocabulary` is what it reads."""
    file = path / "model.safetensors"
    tensors, facts = checkpoint.load(file)
    if facts["vocabulary"] != vocabulary.digest:
        raise UserError(
            f"{file}: trained with another vocabulary than {path / 'vocabulary.tsv'} (its digest is"
            f" {facts['vocabulary'][:12]}, the file's {vocabulary.digest[:12]}); restore the vocabulary of the run"
        )
    with torch.random.fork_rng(devices=[]):
        model = build_model(recipe.model, len(vocabulary), *_of_words(vocabulary)).to(device)
    expected = {name: tuple(tensor.shape) for name, tensor in snapshot.model_tensors(model).items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise UserError(
                f"{file}: does not fit {path / 'recipe.toml'}: {name} is {found.get(name, 'missing')}, the recipe needs"
                f" {expected.get(name, 'nothing of that name')}; restore the recipe of the run"
            )
    snapshot.load_model(model, tensors)
    return model.eval(), facts


def _of_words(
    inputs: Vocabulary | Pitches | PairSymbols,
) -> tuple[tuple[int, ...] | None, tuple[str, ...] | None, int | None]:
    """The counts and the spelling of the words that are chosen from, and how many words sources have."""
    if isinstance(inputs, Pitches):
        return None, None, None
    if isinstance(inputs, PairSymbols):
        return inputs.target.counts, inputs.target.words, len(inputs.source)
    return inputs.counts, inputs.words, None
