"""A run on text, and what can be computed with the model in its folder."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from elman.config.inference import Sampling
from elman.config.recipe import Recipe
from elman.config.text import TextData, TextEvaluation
from elman.data.lines import with_breaks
from elman.data.text.corpus import Split, TextCorpus, open_corpus
from elman.data.text.reading import Sentence, TextReader, is_ended, with_last_break
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.utf8 import piece_bytes
from elman.data.text.vocabulary import TABLE, Vocabulary
from elman.data.windows import EvaluationWindows, start_symbol
from elman.decoding.sampling import among, generate, read
from elman.errors import UserError
from elman.evaluation.perplexity import evaluate_split, reading, text_result
from elman.evaluation.result import Result
from elman.evaluation.scoring import (
    Prediction,
    Sentences,
    predict_document,
    predict_sentences,
    score_document,
    score_sentences,
)
from elman.jobs import Advance
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.network.state import State
from elman.tasks.evaluating import DEFAULT, AdaptationSource, EvaluationOptions
from elman.tasks.run import Run


class TextRun(Run):
    """A trained language model with its vocabulary and recipe; raises UserError where the folder is not a run on text.

    Example (see docs/python.md)::

        run = elman.load("runs/shakespeare")
        for tokens, log_probs in run.score(["To be, or not to be"]):
            ...
        run.next_words("to be or not to", k=5)
        " ".join(run.words("my lord,", count=20, seed=1))
    """

    kind, service = "text", "elman.serve.text:TextService"
    inputs: Vocabulary
    word_ends = True

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        super().__init__(path, device)
        assert isinstance(self.recipe.data, TextData)
        self.data, self.options = self.recipe.data, self.recipe.data.options
        self.inputs = Vocabulary.load(self.path / TABLE)

    @classmethod
    def recorded_source(cls, path: Path, recipe: Recipe) -> str:
        """Where the text of a run folder is; one that a grammar generated is generated again if it is gone."""
        assert isinstance(recipe.data, TextData)
        source = super().recorded_source(path, recipe)
        if recipe.data.grammar is not None and recipe.data.corpus is None and not Path(source).exists():
            from elman.data.grammar.sample import grammar_folder

            return str(grammar_folder(recipe.data.grammar))
        return source

    @property
    def vocabulary(self) -> Vocabulary:
        return self.inputs

    @property
    def title(self) -> str:
        return self.recipe.title

    @property
    def counts(self) -> bool:
        """Whether the vocabulary has how often the training text had each word."""
        return not self.options.spelt

    @property
    def first(self) -> int:
        return start_symbol(self.vocabulary)

    def corpus(self, data: str | Path | None = None) -> TextCorpus:
        pieces = self.tokeniser.subwords
        return self.opened(
            data, lambda source: open_corpus(source, self.options, vocabulary=self.vocabulary, subwords=pieces)
        )

    @staticmethod
    def build(recipe: Recipe, inputs: Vocabulary) -> LanguageModel:
        return build_model(recipe.model, len(inputs), inputs.counts, inputs.words)

    def evaluate(self, options: EvaluationOptions = DEFAULT, advance: Advance = None) -> Result:
        """Perplexity of a split; with one stream the state is carried over all of it."""
        options.require(self.kind, "streams", "warm_up", "skip_first", "unknown_as_unk")
        corpus = self.corpus(options.data)
        split = self.split(corpus, options.split, known_only=options.unknown_as_unk)
        streams = options.streams or 1
        rules = TextEvaluation(streams=streams, warm_up=options.warm_up, skip_first=options.skip_first)
        result = evaluate_split(self.model, split, self.first, rules, advance)
        return msgspec.structs.replace(result, data=corpus.source)

    def adaptation_source(self, options: EvaluationOptions = DEFAULT) -> AdaptationSource:
        """A split, with its unknown words distinguished where the model reads spelling."""
        options.require(self.kind, "skip_first", "unknown_as_unk")
        corpus = self.corpus(options.data)
        found = self.split(corpus, options.split, known_only=options.unknown_as_unk)
        return self.source_of(found, corpus.source, skip_first=options.skip_first)

    def source_of(self, split: Split, data: str, *, skip_first: bool = False) -> AdaptationSource:
        """A split as a source for models that adapt; `data` names where it is from."""
        from elman.evaluation.dynamic import statistics_windows

        counted, place = split.counted(skip_first=skip_first), {"context": "carried", "streams": 1, "warm_up": 0}

        def column(length: int) -> tuple[LanguageModel, EvaluationWindows]:
            rules = TextEvaluation(streams=1, length=length, skip_first=skip_first)
            return reading(self.model, split, self.first, rules)

        def beginning(size: int | None) -> AdaptationSource:
            inputs = None if split.inputs is None else split.inputs[:size]
            part = dataclasses.replace(split, tokens=split.tokens[:size], inputs=inputs)
            found = self.source_of(part, data, skip_first=skip_first)
            if len(part.tokens) == len(split.tokens):
                return found
            # How many characters and words the first tokens stand for was not counted.
            return dataclasses.replace(found, result=lambda score: score.result(split.name, **place))

        return AdaptationSource(
            data,
            split.sha256,
            len(split.tokens),
            beginning=beginning,
            column=column,
            statistics_windows=lambda: statistics_windows(split.tokens),
            result=lambda score: text_result(score, counted, **place),
            spelled=split.inputs is not None,
        )

    @functools.cached_property
    def tokeniser(self) -> Tokeniser:
        if self.options.tokenisation != "subwords":
            return Tokeniser(self.options)
        from elman.data.text import subwords

        return Tokeniser(self.options, subwords.load(self.path))

    def reader(
        self, name: str = "the text", *, as_is: bool = False, leave_out: bool = False, cure: str = "take it out"
    ) -> TextReader:
        """What reads a text as the training text was read, and tallies what the vocabulary lacks (`TextReader`)."""
        return TextReader(self.vocabulary, self.tokeniser, as_is=as_is, leave_out=leave_out, name=name, cure=cure)

    @functools.cached_property
    def spaces(self) -> tuple[int, ...]:
        """The ids of subwords that begin with white space, and so end the word before them; none for other tokens."""
        from elman.evaluation.word_ends import spaces_of

        return spaces_of(self.vocabulary.words, self.options)

    @functools.cached_property
    def blanks(self) -> tuple[int, ...]:
        """Those of `spaces` that begin with a blank."""
        return tuple(one for one in self.spaces if piece_bytes(self.vocabulary.words[one]).startswith(b" "))

    @property
    def reads_spelling(self) -> bool:
        """Whether words beyond the vocabulary have vectors of their own."""
        return getattr(self.recipe.model.encoder, "spells", False)

    def split(self, corpus: TextCorpus, name: str, *, known_only: bool = False) -> Split:
        """A split to evaluate, its unknown words distinguished if the model reads spelling, unless `known_only`."""
        if known_only or not self.reads_spelling:
            return corpus.split(name)
        from elman.data.text.sentences import spelled_split

        return spelled_split(corpus, name)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without an `<eos>` at its end; unknown words become `<unk>`.

        With `eos = "exact"` every line feed is an `<eos>`, one at the end too.
        """
        return self.read(text, known_only=True)[1]

    def read(
        self, text: str, reader: TextReader | None = None, *, known_only: bool = False, prompt: bool = False
    ) -> tuple[LanguageModel, list[int]]:
        """The model that reads a text, and its ids; where it reads spelling, unknown words have ids of their own.

        A `prompt` that ends with a line break has its `<eos>` at the end; other texts have none there (`encode`).
        """
        found = self.reading(text, reader, known_only=known_only)
        ids = [int(symbol) for _, part in found.items for symbol in part]
        kept = self.options.eos == "exact" or (prompt and is_ended(text, self.options))
        return found.model, ids[:-1] if ids and ids[-1] == self.vocabulary.eos and not kept else ids

    def reading(
        self, lines: Iterable[str] | str, reader: TextReader | None = None, *, known_only: bool = False
    ) -> Sentences:
        """The sentences of a text, as the model reads them, or with `known_only` one that reads no spelling does.

        A string is the lines that it holds. They are read by and by, unless unknown words have vectors of their own:
        then the whole text is read first.
        """
        read = self.reader() if reader is None else reader
        text = with_breaks(lines, exact=self.options.eos == "exact") if isinstance(lines, str) else lines
        return self.as_read(read.sentences(text), known_only=known_only)

    def as_read(self, sentences: Iterable[Sentence], *, known_only: bool = False) -> Sentences:
        """Sentences with the ids of their tokens and the model that reads them; see `reading`."""
        if known_only or not self.reads_spelling:
            return Sentences(self.model, ((sentence, sentence.ids) for sentence in sentences))
        from elman.data.text.sentences import spelled_sentences

        whole = list(sentences)
        inputs, unknown = spelled_sentences([sentence.read for sentence in whole], self.vocabulary)
        model = self.model.knowing(unknown) if unknown else self.model
        return Sentences(model, list(zip(whole, inputs, strict=True)))

    def score(self, lines: Iterable[str] | str, *, document: bool = False) -> Iterator[tuple[list[str], np.ndarray]]:
        """The tokens of every sentence, as they stand in the text, and their log-probabilities (nats, float32 [n]).

        Every text of `lines` is one sentence, which ends in `<eos>` where the run has it. A string is the lines that it
        holds, or the paragraphs where those are the sentences of the run. With `document` each sentence is read in the
        context of those before it. Raises UserError where one of `lines` is no text.
        """
        reader = self.reader()
        if isinstance(lines, str):
            text = self.reading(with_last_break(lines) if lines else "", reader)
        else:
            text = self.as_read(reader.complete(_text(one, place), place) for place, one in enumerate(lines, start=1))
        for sentence, log_probs in self.score_text(text, document=document):
            yield sentence.tokens, log_probs

    def score_text(
        self, text: Sentences, *, document: bool = False, batch_size: int = 32
    ) -> Iterator[tuple[Sentence, np.ndarray]]:
        """The sentences that `reading` returned, and the log-probabilities (nats) of the tokens of each."""
        if document:
            return text.asked(lambda ids, inputs: score_document(text.model, ids, self.first, inputs=inputs))
        return text.asked(lambda ids, inputs: score_sentences(text.model, ids, self.first, batch_size, inputs))

    def predict_text(
        self, text: Sentences, *, document: bool = False, batch_size: int = 32
    ) -> Iterator[tuple[Sentence, Prediction]]:
        """How the model predicts each sentence of a text; with `document` each in the context of those before it."""
        first, spaces = self.first, self.spaces
        if document:
            return text.asked(lambda ids, inputs: predict_document(text.model, ids, first, inputs, spaces))
        return text.asked(lambda ids, inputs: predict_sentences(text.model, ids, first, batch_size, inputs, spaces))

    def begin(self) -> State:
        return self.model.begin(1)

    def step(self, word: str, state: State) -> tuple[Tensor, State]:
        """Read one word, or all its tokens; the log-probabilities [V] of the next token and the state after it.

        Raises UserError where nothing of it can be read.
        """
        known = self.vocabulary.ids.get(word)
        model, ids = self.read(word) if known is None else (self.model, [known])
        if not ids:
            raise UserError(f"{word!r} has no token that the model could read; give a word")
        log_probs, state = read(model, ids, state)
        return log_probs.squeeze(0), state

    def prior(
        self, labels: Sequence[str], *, weight: float = 1.0, bonus: float = 0.0, blank: int = 0
    ) -> Callable[[tuple[int, ...]], list[float]]:
        """The model as the prior of a beam of `elman.nn`, over labels that are tokens of the run.

        It gives weight * log p(label | those before) + bonus for each label, and for `blank` weight * log p(<eos>).
        Raises UserError where a label is no token of the run.
        """
        words = ["<eos>" if place == blank else label for place, label in enumerate(labels)]
        missing = [word for word in words if word not in self.vocabulary.ids]
        if missing:
            raise UserError(f"{missing[0]!r} is no token of this run; labels have to be")
        ids, bonuses = [self.vocabulary.ids[word] for word in words], torch.full((len(words),), bonus)
        bonuses[blank] = 0.0

        @functools.cache
        def after(said: tuple[int, ...]) -> tuple[Tensor, State]:
            return self.step(words[said[-1]], after(said[:-1])[1]) if said else self.step("<eos>", self.begin())

        def prior(said: tuple[int, ...]) -> list[float]:
            found: list[float] = (weight * after(said)[0][ids].cpu() + bonuses).tolist()
            return found

        return prior

    def begun(self, prompt: str) -> tuple[str, tuple[int, ...]]:
        """A prompt as it is read, and the symbols that may follow it, if not all.

        Where blanks are no tokens of their own, the last blank of a prompt begins the next word: subwords have it in
        front of them.
        """
        if self.options.tokenisation in ("characters", "bytes") or not prompt.endswith(" ") or not prompt.strip():
            return prompt, ()
        return prompt[:-1], self.blanks

    def next_words(self, prompt: str, k: int = 10) -> list[tuple[str, float]]:
        """The k most probable words to follow `prompt`, with their probabilities."""
        begun, first = self.begun(prompt)
        model, ids = self.read(begun, prompt=True)
        log_probs, _ = read(model, [self.first, *ids], self.begin())
        log_probs = among(log_probs, first) if first else log_probs
        best = log_probs.squeeze(0).topk(min(k, len(self.vocabulary)))
        words = self.vocabulary.decode(best.indices.tolist())
        return list(zip(words, best.values.exp().tolist(), strict=True))

    def words(
        self, prompt: str = "", *, count: int, seed: int = 0, sampling: Sampling | None = None, unk: bool = False
    ) -> list[str]:
        """Draw `count` words to follow `prompt`; `unk`: whether `<unk>` may be one of them.

        Raises UserError where a number of `sampling` is out of range.
        """
        sampling = sampling or Sampling()
        sampling.check()
        if not unk:
            sampling = msgspec.structs.replace(sampling, forbidden=(*sampling.forbidden, *self.unspeakable))
        generator = torch.Generator(self.device).manual_seed(seed)
        begun, first = self.begun(prompt)
        model, ids = self.read(begun, prompt=True)
        stream = generate(model, [self.first, *ids], self.begin(), sampling, generator, first)
        return self.vocabulary.decode([symbol for symbol, _ in (next(stream) for _ in range(count))])

    @property
    def unspeakable(self) -> tuple[int, ...]:
        """Symbols that a sample should not contain: `<unk>`."""
        return () if self.vocabulary.unk is None else (self.vocabulary.unk,)


def _text(value: Any, place: int) -> str:
    if not isinstance(value, str):
        raise UserError(f"text {place} is no text but {value!r}; leave it out first")
    return value
