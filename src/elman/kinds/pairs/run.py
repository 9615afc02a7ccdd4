"""A run on pairs of a source and a target, and what can be computed with the model in its folder."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from elman.config.inference import Beam
from elman.config.recipe import Recipe
from elman.data.text.fitting import Piece
from elman.data.text.lacking import Tally, unit_of
from elman.data.text.vocabulary import UNK
from elman.decoding.beam import Hypothesis, beam_search
from elman.errors import UserError, counted
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.kinds.pairs.constraint import constraint_of
from elman.kinds.pairs.corpus import PairCorpus, open_pairs, say_held_out, sources_side_by_side
from elman.kinds.pairs.evaluation import (
    copied_words,
    evaluate_output,
    evaluate_pairs,
    pair_result,
    target_accuracy,
    target_log_probs,
)
from elman.kinds.pairs.symbols import PairSymbols, Unreadable
from elman.network.build import build_model
from elman.network.model import LanguageModel
from elman.network.seq2seq import SequenceToSequence
from elman.tasks.evaluating import DEFAULT, EvaluationOptions
from elman.tasks.splits import SymbolRun


class SourceReader:
    """Reads lines as sources, and tallies what the vocabulary lacks.

    A source is unreadable if it is longer than `max_source` of the run's data, or has no known symbol. It is refused in
    a message that names its place in the text called `name`; or with `leave_out` it is not read, which `report` states.
    `unread` holds the reasons of those that were left out, by the numbers of their lines from 0.
    """

    def __init__(self, symbols: PairSymbols, name: str = "source", *, leave_out: bool = False) -> None:
        self.symbols, self.tally, self.unread = symbols, Tally(), dict[int, Unreadable]()
        self._name, self._leave_out, self._lines = name, leave_out, 0

    def read(self, lines: Sequence[str]) -> dict[int, npt.NDArray[np.int32]]:
        """The ids [S] of the sources that are read, by the numbers of their lines from 0; blank lines have none.

        Raises Unreadable where a source cannot be read and is not left out, or none of all can.
        """
        found = {}
        for place, line in enumerate(lines):
            if not line.strip():
                continue
            self._lines += 1
            try:
                found[place] = self.symbols.encode_source(line, f"{self._name}:{place + 1}")
            except Unreadable as error:
                if not self._leave_out:
                    raise
                self.unread[place] = error
                continue
            for word in self.symbols.tokenisers.source_words(line.strip()):
                self.tally.add(word, (Piece(word, word, unknown=word not in self.symbols.source.ids),), fitted=False)
        if self.unread and not found:
            raise next(iter(self.unread.values()))
        return found

    def report(self) -> list[str]:
        """What was not read, and what the vocabulary lacks of the rest, each in a line."""
        lines = []
        if self.unread:
            long, options = sum(one.too_long for one in self.unread.values()), self.symbols.options
            reasons = {
                f"longer than {options.max_source} symbols (data.max_source)": long,
                f"without a symbol of the source vocabulary (tokenisation = {options.tokenisation})": (
                    len(self.unread) - long
                ),
            }
            why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
            lines.append(
                f"{self._name}: {len(self.unread):,} of {counted(self._lines, 'source')} not read, with a"
                f" blank target: {why}; the first in line {min(self.unread) + 1:,}"
            )
        unit = (
            "subword" if self.symbols.options.tokenisation == "subwords" else unit_of(self.symbols.options.source_text)
        )
        return lines + [f"{self._name}: {line}" for line in self.tally.lines(unit, f"read as {UNK}")]


class Translation(NamedTuple):
    """A target that was found for a source, as a line for a reader and as symbols, copied ones as the source has them.

    `score` ranks targets (`elman.decoding.beam.Beam`), `log_prob` (nats) includes the end symbol, `source` has the
    symbols in the order of the text, and `attention`, [T + 1, S], their weights at each word and at the end; zeros of a
    model without attention.
    """

    text: str
    words: list[str]
    score: float
    log_prob: float
    source: list[str]
    attention: npt.NDArray[np.float32]


class PairRun(SymbolRun):
    """A trained model of pairs with its vocabularies and recipe; raises UserError where the folder is not such a run.

    Example (see docs/pairs.md)::

        run = elman.load("runs/headlines")
        run.translate(["police arrest two after bank robbery in osaka"])[0][0].text
    """

    kind, allowed = "pairs", ("streams", "beam", "constrained")
    alone = "adaptation and Monte Carlo dropout read one text from its beginning to its end"
    symbols, opening, service = PairSymbols, open_pairs, "elman.kinds.pairs.serving:PairService"
    inputs: PairSymbols
    model: SequenceToSequence

    @staticmethod
    def build(recipe: Recipe, inputs: PairSymbols) -> LanguageModel:
        target = inputs.target
        return build_model(recipe.model, len(inputs), target.counts, target.words, len(inputs.source))

    def result(
        self, corpus: PairCorpus, name: str, options: EvaluationOptions = DEFAULT, advance: Advance = None
    ) -> Result:
        """Perplexity and accuracy of the targets of a split, each given its source, and how good the output is."""
        split, rules = corpus.split(name), self.data.evaluation
        if options.constrained is not None:
            if self.options.form != "trees":
                raise UserError(f"--unconstrained is for trees, which {self.path} does not write; leave it out")
            rules = msgspec.structs.replace(rules, constrained=options.constrained)
        if options.beam is not None:
            rules = msgspec.structs.replace(rules, beam=options.beam)
        say_held_out(corpus, split)
        size = options.streams or 64
        score = evaluate_pairs(self.model, corpus, split, batch_size=size, advance=advance)
        accuracy = target_accuracy(self.model, corpus, split, batch_size=size)
        _, output = evaluate_output(self.model, corpus, split, rules, advance)
        return pair_result(score, accuracy, split, output)

    def token_log_probs(self, split: str) -> np.ndarray:
        """The log-probability (nats) of every symbol of the targets of a split, [n]."""
        corpus = self.corpus()
        return np.concatenate(target_log_probs(self.model, corpus, corpus.split(split)))

    def translate(
        self,
        lines: Sequence[str],
        beam: Beam | None = None,
        *,
        copy: bool = False,
        unknown: bool = False,
        constrained: bool | None = None,
        batch_size: int = 32,
        name: str = "source",
        reader: SourceReader | None = None,
    ) -> list[list[Translation]]:
        """The best targets of every line, in the order of the lines; an empty list for a line that is not read.

        Those are blank lines, and where the `reader` leaves them out, sources that are longer than the limit or have
        unknown symbols only (`SourceReader`); without a reader these are refused; `name` names the lines in messages.

        Where the beam sets no length, constrained trees are as long as in training at most (`max_target`). `copy`
        replaces `<unk>` by the symbol of the source with the greatest attention, `unknown` keeps it; without both none
        is written. `constrained`: write only trees over the words of the source (None: as the recipe says); other
        targets are never constrained. `batch_size` affects only the speed.

        Raises UserError where a source is refused, all of them are unreadable, or `copy` or the beam's coverage is set
        for a model without attention.
        """
        beam = beam or Beam()
        beam.check()
        for option, used in (("--copy", copy), ("--coverage", beam.coverage)):
            if used:
                self.require_attention(option)
        model = self.model  # first, since it refuses vocabularies that are not its own
        wanted = self.data.evaluation.constrained if constrained is None else constrained
        constraint = constraint_of(self.inputs, self.device) if wanted else None
        if constraint is not None and beam.max_length is None:
            beam = msgspec.structs.replace(beam, max_length=self.options.max_target)
        reader = SourceReader(self.inputs, name) if reader is None else reader
        sources = {place: torch.from_numpy(ids.astype(np.int64)) for place, ids in reader.read(lines).items()}
        found: list[list[Translation]] = [[] for _ in lines]
        order = sorted(sources, key=lambda place: (len(sources[place]), place))
        forbidden = () if copy or unknown or self.inputs.target.unk is None else (self.inputs.target.unk,)
        assert self.inputs.target.eos is not None
        for at in range(0, len(order), batch_size):
            places = order[at : at + batch_size]
            batch = sources_side_by_side([sources[place] for place in places], self.inputs).to(self.device)
            results = beam_search(model, batch, beam, self.inputs.target.eos, forbidden, constraint)
            for place, hypotheses in zip(places, results, strict=True):
                words = self.inputs.tokenisers.source_words(lines[place].strip())
                found[place] = [self._written(one, words, copy=copy) for one in hypotheses]
        return found

    def reader(self, name: str = "source", *, leave_out: bool = False) -> SourceReader:
        """What reads the lines of a text called `name` as sources, and tallies what the vocabulary lacks."""
        return SourceReader(self.inputs, name, leave_out=leave_out)

    def require_attention(self, what: str) -> None:
        """Raises UserError where the model has no attention, which `what` needs."""
        if not self.recipe.model.attends:
            raise UserError(
                f"{what} needs attention to the source, which the model in {self.path} does not have; leave it out"
            )

    def _written(self, found: Hypothesis, source: list[str], *, copy: bool) -> Translation:
        attention = found.attention[:, ::-1] if self.inputs.options.reverse_source else found.attention
        words = copied_words(found, source, self.inputs) if copy else self.inputs.target.decode(found.symbols)
        return Translation(self.inputs.tokenisers.shown(words), words, found.score, found.log_prob, source, attention)
