"""A run on pairs: what can be asked of the model in its folder."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from elman.config.inference import Beam
from elman.data.pairs.corpus import PairCorpus, open_pairs
from elman.data.pairs.symbols import PairSymbols
from elman.data.windows import Source
from elman.decoding.beam import Hypothesis, beam_search
from elman.decoding.constraint import constraint_of
from elman.network.seq2seq import SequenceToSequence
from elman.tasks.run import PAIRS, OpenedRun


class Transduction(NamedTuple):
    """A target that was found for a source.

    Attributes:
        text: the target for a reader.
        words: its symbols; copied ones as the source has them.
        score: what targets are ranked by (`elman.decoding.beam.Beam`).
        log_prob: nats, with the end symbol.
        source: the source's symbols in the order of the text.
        attention: weights of the source's symbols at each word and at the end, [T + 1, S].

    """

    text: str
    words: list[str]
    score: float
    log_prob: float
    source: list[str]
    attention: npt.NDArray[np.float32]


class PairRun(OpenedRun):
    """A trained model of pairs with its recipe and vocabularies.

    Example (see docs/seq2seq.md)::

        run = PairRun("runs/headlines")
        run.transduce(["police arrest two after bank robbery in osaka"])[0][0].text

    Args:
        path: the run folder.
        device: where the model lives.

    Raises:
        UserError: the folder is not a run on pairs.

    """

    kind = PAIRS
    refusal = "{path} is not a run on {kind}; here one is needed"
    inputs: PairSymbols

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        super().__init__(path, device)
        self.inputs = PairSymbols.load(self.path, self.recipe.data.pairs)

    @functools.cached_property
    def model(self) -> SequenceToSequence:
        """The best model, in evaluation mode; raises UserError as that of every run does."""
        model = super().model
        assert isinstance(model, SequenceToSequence)
        return model

    def corpus(self, data: str | Path | None = None) -> PairCorpus:
        """The run's pairs, or others encoded with the run's vocabularies."""
        source = self.facts["source"] if data is None else data
        return open_pairs(source, self.recipe.data.pairs, symbols=self.inputs)

    def transduce(
        self,
        lines: Sequence[str],
        beam: Beam | None = None,
        *,
        copy: bool = False,
        unknown: bool = False,
        constrained: bool | None = None,
        batch_size: int = 32,
        name: str = "source",
    ) -> list[list[Transduction]]:
        """The best targets of every line, in the order of the lines; none for a blank line.

        Args:
            lines: sources as texts.
            beam: how to search; of constrained trees without a length, those of training at most (`max_target`).
            copy: where the model writes `<unk>`, take the symbol of the source that it looks at most.
            unknown: leave `<unk>` as it is; without it and without `copy` none is written.
            constrained: write only trees over the words of the source; None: as the recipe says. Targets that are no
                trees are never constrained.
            batch_size: sources searched side by side; it changes nothing but the speed.
            name: of the lines, for messages.

        Raises:
            UserError: a source is longer than the limit or has unknown symbols only.

        """
        beam = beam or Beam()
        beam.check()
        wanted = self.recipe.evaluation.constrained if constrained is None else constrained
        constraint = constraint_of(self.inputs, self.device) if wanted else None
        if constraint is not None and beam.max_length is None:
            beam = msgspec.structs.replace(beam, max_length=self.recipe.data.pairs.max_target)
        sources = {
            place: self.inputs.encode_source(line, f"{name}:{place + 1}").astype(np.int64)
            for place, line in enumerate(lines)
            if line.strip()
        }
        found: list[list[Transduction]] = [[] for _ in lines]
        order = sorted(sources, key=lambda place: (len(sources[place]), place))
        forbidden = () if copy or unknown or self.inputs.target.unk is None else (self.inputs.target.unk,)
        assert self.inputs.target.eos is not None
        for at in range(0, len(order), batch_size):
            places = order[at : at + batch_size]
            batch = self._side_by_side([sources[place] for place in places])
            results = beam_search(self.model, batch, beam, self.inputs.target.eos, forbidden, constraint)
            for place, hypotheses in zip(places, results, strict=True):
                words = self.inputs.source_words(lines[place].strip())
                found[place] = [self._written(one, words, copy=copy) for one in hypotheses]
        return found

    def _side_by_side(self, sources: Sequence[npt.NDArray[np.int64]]) -> Source:
        reverse = self.inputs.options.reverse_source
        read = [torch.from_numpy(ids[::-1].copy() if reverse else ids) for ids in sources]
        mask = torch.arange(max(map(len, read))).unsqueeze(1) < torch.tensor([len(ids) for ids in read])
        return Source(torch.nn.utils.rnn.pad_sequence(read), mask).to(self.device)

    def _written(self, found: Hypothesis, source: list[str], *, copy: bool) -> Transduction:
        attention = found.attention[:, ::-1] if self.inputs.options.reverse_source else found.attention
        words = self.inputs.target.decode(found.symbols)
        if copy:
            words = [
                source[int(attention[place].argmax())] if symbol == self.inputs.target.unk else words[place]
                for place, symbol in enumerate(found.symbols)
            ]
        return Transduction(self.inputs.tokenisers.shown(words), words, found.score, found.log_prob, source, attention)
