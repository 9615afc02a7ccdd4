"""What lm-evaluation-harness asks of a language model, answered by a run on text; independent of that package.

A request is a context and its continuation, a whole text, or a context to continue. Texts are read as the run's own
training text was (`TextReader`): unknown words are `<unk>`, and by the recipe's rule line breaks are `<eos>`.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from elman.config.inference import Sampling
from elman.data.text.reading import Sentence, TextReader
from elman.data.text.tokeniser import Detokeniser
from elman.data.text.vocabulary import EOS
from elman.decoding.sampling import draw, read
from elman.errors import UserError, notice
from elman.evaluation.scoring import predict_sentences
from elman.network.model import LanguageModel
from elman.network.state import concatenate, select
from elman.tasks.text.run import TextRun

End: TypeAlias = Literal["auto", "always", "never"]
"""Whether the `<eos>` that ends a text is counted; `auto`: where there is no context, so that the text is whole."""

MAX_TOKENS = 256
"""Tokens of a generated continuation, unless the request sets another number."""

TOKEN_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens")


class Continuation(NamedTuple):
    """The log-probability (nats) of a continuation, and whether greedy search would have written it."""

    log_prob: float
    greedy: bool


class _Request(NamedTuple):
    """The symbols of a text as they are predicted and as they are read, [n], and where the continuation begins."""

    ids: np.ndarray
    inputs: np.ndarray
    start: int


class Answers:
    """The answers of a run.

    Example::

        Answers(elman.load("runs/demo")).continuations([("my lord", " is dead")])

    `end`: whether the end of a text is counted; with `unknown_as_unk` unknown words are `<unk>` also to a model
    that reads spelling. Raises UserError where a text has a character that the vocabulary, without `<unk>`, lacks.
    """

    def __init__(
        self, run: TextRun, *, batch_size: int = 32, end: End = "auto", unknown_as_unk: bool = False, seed: int = 0
    ) -> None:
        if end not in ("auto", "always", "never"):
            raise UserError(f"end={end}: write auto, always or never")
        self.run, self.batch_size, self.end, self.known_only = run, batch_size, end, unknown_as_unk
        self.generator = torch.Generator(run.device).manual_seed(seed)

    def continuations(self, pairs: Sequence[tuple[str, str]], documents: Sequence[Hashable] = ()) -> list[Continuation]:
        """The answer to each pair of a context, which may be empty, and its continuation.

        What counts are the tokens of both together that the context alone does not have. `documents` names the
        document of each pair: how many hold different texts that the model reads as the same is reported once, since
        the harness takes the first of equal choices. Raises UserError as the class does.
        """
        reader = self._reader()
        model, requests = self._requests(reader, pairs)
        order = sorted(range(len(requests)), key=lambda place: len(requests[place].ids))
        found: dict[int, Continuation] = {}
        ids, inputs = ([getattr(requests[place], side) for place in order] for side in ("ids", "inputs"))
        predictions = predict_sentences(model, ids, self.run.first, self.batch_size, inputs)
        for place, prediction in zip(order, predictions, strict=True):
            counted = slice(requests[place].start, None)
            log_prob = float(prediction.log_prob[counted].sum(dtype=np.float64))
            found[place] = Continuation(log_prob, bool((prediction.rank[counted] == 1).all()))
        self._tell(reader)
        if alike := _alike(pairs, requests, documents):
            notice(
                f"lm-evaluation-harness: {alike:,} of {len(set(documents)):,} documents have choices that the model"
                " reads as the same, since they differ in unknown words alone; the harness takes the first of these"
            )
        return [found[place] for place in range(len(requests))]

    def texts(self, texts: Sequence[str]) -> list[float]:
        """The log-probability (nats) of each text, of any length, its state carried from its beginning to its end."""
        return [one.log_prob for one in self.continuations([("", text) for text in texts])]

    def generate(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
        """What follows each context: up to the first of its strings `until`, or a number of tokens (`TOKEN_LIMITS`).

        Tokens are the most probable ones unless `do_sample` is true or a `temperature` above 0 is given, with `top_k`
        and `top_p`. `<unk>` is never written, and `<eos>` is the line break that it stands for.
        """
        reader, found = self._reader(), [""] * len(requests)
        settings = [_settings(options, self.run.unspeakable) for _, options in requests]
        groups: dict[_Generation, list[int]] = {}
        for place, setting in enumerate(settings):
            groups.setdefault(setting, []).append(place)
        for setting, places in groups.items():
            for at in range(0, len(places), self.batch_size):
                some = places[at : at + self.batch_size]
                contexts = [self._tokens(reader, requests[place][0]).read for place in some]
                for place, text in zip(some, self._continued(contexts, setting), strict=True):
                    found[place] = text
        self._tell(reader)
        return found

    def _reader(self) -> TextReader:
        return self.run.reader("a request", cure="leave the task out, or take a run whose vocabulary has it")

    def _tell(self, reader: TextReader) -> None:
        for line in reader.report():
            notice(f"lm-evaluation-harness: {line}")

    def _tokens(self, reader: TextReader, text: str) -> Sentence:
        """What is read of a text, without the `<eos>` that its end would have, unless it ends in a line break."""
        sentence = reader.one(text)
        if sentence.read[-1:] == [EOS] and not text.endswith("\n"):
            return sentence._replace(read=sentence.read[:-1], ids=sentence.ids[:-1])
        return sentence

    def _requests(self, reader: TextReader, pairs: Sequence[tuple[str, str]]) -> tuple[LanguageModel, list[_Request]]:
        """The model that knows the words of the texts, where it reads spelling, and what it reads."""
        before = self._reader()
        sentences, starts = [], []
        for context, continuation in pairs:
            whole = self._tokens(reader, context + continuation)
            start = _shared(self._tokens(before, context).read, whole.read) if context else 0
            ends = self.end == "always" or (self.end == "auto" and not context)
            if ends and (eos := self.run.vocabulary.eos) is not None and whole.read[-1:] != [EOS]:
                whole = whole._replace(read=[*whole.read, EOS], ids=np.append(whole.ids, np.int32(eos)))
            sentences.append(whole)
            starts.append(start)
        text = self.run.as_read(sentences, known_only=self.known_only)
        return text.model, [
            _Request(sentence.ids, np.asarray(inputs), start)
            for (sentence, inputs), start in zip(text.items, starts, strict=True)
        ]

    @torch.inference_mode()
    def _continued(self, contexts: Sequence[Sequence[str]], setting: "_Generation") -> Iterator[str]:
        """The continuation of each context, all of them side by side."""
        run = self.run
        begun = [read(run.model, [run.first, *run.vocabulary.encode(one).tolist()], run.begin()) for one in contexts]
        log_probs, state = torch.cat([one for one, _ in begun]), concatenate([state for _, state in begun])
        writers = [_Writer(Detokeniser(run.options), one, setting.until) for one in contexts]
        going = list(range(len(contexts)))
        for _ in range(setting.max_tokens):
            symbols = draw(log_probs, setting.sampling, self.generator)
            for place, word in zip(going, run.vocabulary.decode(symbols.tolist()), strict=True):
                writers[place].add(word)
            left = [row for row, place in enumerate(going) if not writers[place].stopped]
            if not left:
                break
            going, kept = [going[row] for row in left], torch.tensor(left, device=run.device)
            log_probs, state = run.model.step(symbols[kept], select(state, kept))
        return (writer.text for writer in writers)


class _Generation(NamedTuple):
    """How a continuation is drawn, and where it ends."""

    sampling: Sampling
    until: tuple[str, ...]
    max_tokens: int


def _settings(options: Mapping[str, Any], forbidden: tuple[int, ...]) -> _Generation:
    """The options of a request; raises UserError where a value is out of range."""
    until = options.get("until") or ()
    stops = (until,) if isinstance(until, str) else tuple(until)
    limit = next((int(options[name]) for name in TOKEN_LIMITS if options.get(name)), MAX_TOKENS)
    temperature = options.get("temperature")
    sampled = bool(options.get("do_sample", temperature)) and temperature != 0
    sampling = Sampling(
        temperature=(1.0 if temperature is None else float(temperature)) if sampled else 0.0,
        top_k=options.get("top_k") or None,
        top_p=options.get("top_p") or None,
        forbidden=forbidden,
    )
    sampling.check()
    return _Generation(sampling, stops, limit)


class _Writer:
    """The text of a continuation as it grows, cut off before the first of the strings that end it."""

    def __init__(self, detokeniser: Detokeniser, context: Sequence[str], until: Sequence[str]) -> None:
        self._detokeniser, self._until, self.text, self.stopped = detokeniser, until, "", False
        for word in context:
            detokeniser.add(word)

    def add(self, word: str) -> None:
        """Append a token, and stop where the text ends."""
        self.text += self._detokeniser.add(word)
        ends = [at for stop in self._until if stop and (at := self.text.find(stop)) >= 0]
        if ends:
            self.text, self.stopped = self.text[: min(ends)], True


def _alike(pairs: Sequence[tuple[str, str]], requests: Sequence[_Request], documents: Sequence[Hashable]) -> int:
    """How many documents hold different texts that are read, and predicted, as the same."""
    groups: dict[Hashable, dict[tuple[bytes, bytes, int], set[tuple[str, str]]]] = {}
    for pair, (ids, inputs, start), document in zip(pairs, requests, documents, strict=bool(documents)):
        read_as = ids.tobytes(), inputs[:-1].tobytes(), start
        groups.setdefault(document, {}).setdefault(read_as, set()).add(pair)
    return sum(any(len(texts) > 1 for texts in read.values()) for read in groups.values())


def _shared(context: Sequence[str], whole: Sequence[str]) -> int:
    """How many tokens of the whole text belong to its context; it may end within a token of the whole."""
    pairs = zip(context, whole, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(context), len(whole)))
