"""A model of targets given sources on a split of pairs: NLL and accuracy per target token, and what it writes."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elman.config.inference import Beam
from elman.data.batches import Source
from elman.data.by_length import by_length
from elman.data.windows import WHOLE, Part
from elman.decoding.beam import Hypothesis, beam_search
from elman.evaluation.labelling import progressing
from elman.evaluation.perplexity import Score, evaluating, sum_scores
from elman.evaluation.result import OutputQuality, Result
from elman.evaluation.statistics import estimates
from elman.jobs import Advance
from elman.kinds.pairs.constraint import constraint_of
from elman.kinds.pairs.corpus import PairCorpus, Pairs
from elman.kinds.pairs.measures import baseline, measures, references, rules_of
from elman.kinds.pairs.record import PairEvaluation
from elman.kinds.pairs.symbols import PairSymbols
from elman.network.seq2seq import SequenceToSequence


def evaluate_pairs(
    model: SequenceToSequence,
    corpus: PairCorpus,
    pairs: Pairs,
    part: Part = WHOLE,
    *,
    batch_size: int = 64,
    advance: Advance = None,
) -> Score:
    """The score of the targets of a split, or of a part of its batches, end symbols included; summed in float64.

    `batch_size` changes nothing but the speed; `advance` is called with (batches done, batches in all).
    """
    batches = part.of(by_length(pairs.lengths, batch_size=batch_size))
    scored = _log_probs(model, corpus, pairs, batches)
    return sum_scores((log_prob[mask] for log_prob, mask in scored), len(batches), advance)


def target_log_probs(
    model: SequenceToSequence, corpus: PairCorpus, pairs: Pairs, *, batch_size: int = 64
) -> list[npt.NDArray[np.float32]]:
    """Log-probabilities (nats, [n]) of the symbols of every target of a split, its end included, in their order."""
    batches = by_length(pairs.lengths, batch_size=batch_size)
    found: list[npt.NDArray[np.float32]] = [np.empty(0, np.float32)] * len(pairs)
    for indices, (log_prob, mask) in zip(batches, _log_probs(model, corpus, pairs, batches), strict=True):
        for index, row, counted in zip(indices, log_prob.t(), mask.t(), strict=True):
            found[index] = row[counted].float().cpu().numpy()
    return found


@torch.inference_mode()
def target_accuracy(model: SequenceToSequence, corpus: PairCorpus, pairs: Pairs, *, batch_size: int = 64) -> float:
    """The share (0 to 1) of the symbols of all targets, ends included, that are the most probable ones at their place.

    Each is predicted from its source and from the right symbols before it (teacher forcing), as Zaremba & Sutskever
    2014 count the digits of results. `batch_size` changes nothing but the speed.
    """
    right = count = 0
    batches = by_length(pairs.lengths, batch_size=batch_size)
    for source, inputs, targets, mask in _read(model, corpus, pairs, batches):
        log_probs, _ = model.log_probs(inputs, model.read(source))
        right += int((log_probs.argmax(-1) == targets)[mask].sum())
        count += int(mask.sum())
    return right / count


@torch.inference_mode()
def _log_probs(
    model: SequenceToSequence, corpus: PairCorpus, pairs: Pairs, batches: Sequence[list[int]]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities of the targets of each batch, [T, B], and where they count."""
    for source, inputs, targets, mask in _read(model, corpus, pairs, batches):
        yield model.log_prob_given(source, inputs, targets), mask


def _read(
    model: SequenceToSequence, corpus: PairCorpus, pairs: Pairs, batches: Sequence[list[int]]
) -> Iterator[tuple[Source, Tensor, Tensor, Tensor]]:
    """Sources, inputs, targets and mask of batches, on the model's device, while it is in evaluation mode."""
    with evaluating(model):
        for indices in batches:
            batch = corpus.gather(pairs, indices).to(model.device)
            assert batch.source is not None
            assert batch.mask is not None
            yield batch.source, batch.inputs, batch.targets, batch.mask


def pair_result(score: Score, accuracy: float, pairs: Pairs, output: OutputQuality | None = None) -> Result:
    """The result of a score of all targets, each given its source, and of their accuracy."""
    characters = pairs.facts["characters"]
    return score.result(
        pairs.name,
        bits_per_character=score.nll_sum / math.log(2) / max(1, characters),
        accuracy=accuracy,
        unknown=pairs.facts["unknown"],
        characters=characters,
        pairs=len(pairs),
        context="every target given its source",
        method="static",
        output=output,
    )


@torch.inference_mode()
def write_targets(
    model: SequenceToSequence,
    corpus: PairCorpus,
    pairs: Pairs,
    rules: PairEvaluation,
    *,
    batch_size: int = 32,
    advance: Advance = None,
) -> list[str]:
    """The best target of every source of a split, in the form that measures take (`PairTokenisers.measured`).

    Sources above the limit of training are cut, and targets are no longer than the longest in training. By `rules`,
    `<unk>` is written as the source symbol of the largest weight, or not at all; `batch_size` changes nothing but the
    speed. The model is in evaluation mode, and `advance` is called with (sources done, sources in all).
    """
    vocabulary = corpus.symbols.target
    assert vocabulary.eos is not None
    assert vocabulary.unk is not None
    beam = Beam(size=rules.beam, max_length=corpus.options.max_target)
    forbidden = () if rules.copy_unknown else (vocabulary.unk,)
    constraint = constraint_of(corpus.symbols, model.device) if rules.constrained else None
    found = [""] * len(pairs)
    for indices in progressing(by_length(pairs.lengths, batch_size=batch_size), len(pairs), advance):
        batch = corpus.gather(pairs, indices).to(model.device)
        assert batch.source is not None
        best = beam_search(model, batch.source, beam, vocabulary.eos, forbidden, constraint)
        for index, (hypothesis, *_) in zip(indices, best, strict=True):
            words = corpus.symbols.tokenisers.source_words(pairs.source_text[index])[: corpus.options.max_source]
            found[index] = corpus.symbols.tokenisers.measured(copied_words(hypothesis, words, corpus.symbols))
    return found


def copied_words(found: Hypothesis, source: list[str], symbols: PairSymbols) -> list[str]:
    """The words of a target, each `<unk>` replaced by the word of the source with the greatest attention."""
    words = symbols.target.decode(found.symbols)
    attention = found.attention[:, ::-1] if symbols.options.reverse_source else found.attention
    return [
        source[int(attention[place].argmax())] if symbol == symbols.target.unk else words[place]
        for place, symbol in enumerate(found.symbols)
    ]


def measure_output(hypotheses: list[str], corpus: PairCorpus, pairs: Pairs, rules: PairEvaluation) -> OutputQuality:
    """The measures of an output, written under these rules, and of the baseline, with their intervals."""
    kind, right = rules_of(corpus.options), references(pairs, corpus.symbols)
    name, simple = baseline(corpus, pairs)
    ours, theirs = (estimates(measures(lines, right, kind, pairs.source_text)) for lines in (hypotheses, simple))
    return OutputQuality(
        beam=rules.beam,
        copy_unknown=rules.copy_unknown,
        constrained=rules.constrained if corpus.options.form == "trees" else None,
        measures=ours,
        baseline=theirs,
        baseline_name=name,
    )


def evaluate_output(
    model: SequenceToSequence, corpus: PairCorpus, pairs: Pairs, rules: PairEvaluation, advance: Advance = None
) -> tuple[list[str], OutputQuality]:
    hypotheses = write_targets(model, corpus, pairs, rules, advance=advance)
    return hypotheses, measure_output(hypotheses, corpus, pairs, rules)
