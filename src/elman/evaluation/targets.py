"""Figures of a model of targets given sources: NLL a target token, every pair whole."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from elman import config
from elman.config.inference import Beam
from elman.data.pairs.corpus import PairCorpus, Pairs
from elman.data.pairs.windows import as_batch
from elman.decoding.beam import Hypothesis, beam_search
from elman.decoding.constraint import constraint_of
from elman.evaluation.perplexity import Score
from elman.evaluation.transduction import baseline, figures, measures, references, rules_of
from elman.network.seq2seq import SequenceToSequence

# FOLDED evaluation/output.py: What a model writes for a split of pairs, and what that is worth beside a baseline.
SEARCHED = 32
"""Sources searched side by side."""


def write_targets(
    model: SequenceToSequence,
    corpus: PairCorpus,
    pairs: Pairs,
    rules: config.Evaluation,
    *,
    batch_size: int = SEARCHED,
    advance: Callable[[int, int], None] | None = None,
) -> list[str]:
    """The best target of every source of a split, in the form that measures take (`PairTokenisers.measured`).

    Sources longer than the limit are cut, as in training none is longer; targets are as long as those of training at
    most.

    Args:
        model: in evaluation mode.
        corpus: of the pairs.
        pairs: the split.
        rules: the size of the beam (1 is greedy); whether `<unk>` is written as the symbol of the source that the
            model looks at most, else it is not written at all; whether trees are constrained.
        batch_size: sources side by side; it changes nothing but the speed.
        advance: told (sources done, sources in all).

    """
    vocabulary = corpus.target_vocabulary
    assert vocabulary.eos is not None
    assert vocabulary.unk is not None
    beam = Beam(size=rules.beam, max_length=corpus.options.max_target)
    forbidden = () if rules.copy_unknown else (vocabulary.unk,)
    constraint = constraint_of(corpus.symbols, model.device) if rules.constrained else None
    found = [""] * len(pairs)
    done = 0
    for indices in corpus.buckets(pairs, batch_size=batch_size):
        batch = as_batch(corpus.gather(pairs, indices)).to(model.device)
        assert batch.source is not None
        best = beam_search(model, batch.source, beam, vocabulary.eos, forbidden, constraint)
        for index, (hypothesis, *_) in zip(indices, best, strict=True):
            words = corpus.symbols.source_words(pairs.source_text[index])[: corpus.options.max_source]
            found[index] = corpus.symbols.tokenisers.measured(_words(hypothesis, words, corpus))
        done += len(indices)
        if advance is not None:
            advance(done, len(pairs))
    return found


def output_figures(hypotheses: list[str], corpus: PairCorpus, pairs: Pairs) -> dict[str, Any]:
    """The measures of an output and of the baseline with their intervals, as results.json keeps them."""
    rules, right = rules_of(corpus.options), references(pairs, corpus.symbols)
    name, simple = baseline(corpus, pairs)
    told = {
        kind: [msgspec.to_builtins(one) for one in figures(measures(lines, right, rules, pairs.source_text))]
        for kind, lines in (("measures", hypotheses), ("baseline", simple))
    }
    return {**told, "baseline_name": name}


def evaluate_output(
    model: SequenceToSequence,
    corpus: PairCorpus,
    pairs: Pairs,
    rules: config.Evaluation,
    advance: Callable[[int, int], None] | None = None,
) -> tuple[list[str], dict[str, Any]]:
    """What a model writes, and what results.json keeps of it."""
    with torch.inference_mode():
        hypotheses = write_targets(model, corpus, pairs, rules, advance=advance)
    facts = {"beam": rules.beam, "copy_unknown": rules.copy_unknown}
    if corpus.options.form == "trees":
        facts["constrained"] = rules.constrained
    return hypotheses, {**facts, **output_figures(hypotheses, corpus, pairs)}


def _words(found: Hypothesis, source: list[str], corpus: PairCorpus) -> list[str]:
    words = corpus.target_vocabulary.decode(found.symbols)
    attention = found.attention[:, ::-1] if corpus.options.reverse_source else found.attention
    return [
        source[int(attention[place].argmax())] if symbol == corpus.target_vocabulary.unk else words[place]
        for place, symbol in enumerate(found.symbols)
    ]


# TARGET
@torch.inference_mode()
def evaluate_pairs(
    model: SequenceToSequence,
    corpus: PairCorpus,
    pairs: Pairs,
    *,
    batch_size: int = 64,
    advance: Callable[[int, int], None] | None = None,
) -> Score:
    """The score of all targets of a split, end symbols included; summed in float64.

    Args:
        model: the network.
        corpus: of the pairs.
        pairs: the split.
        batch_size: pairs side by side; it changes nothing but the speed.
        advance: told (batches done, batches in all).

    """
    training = model.training
    model.eval()
    total, count = 0.0, 0
    batches = corpus.buckets(pairs, batch_size=batch_size)
    try:
        for done, indices in enumerate(batches, start=1):
            batch = as_batch(corpus.gather(pairs, indices)).to(model.device)
            assert batch.source is not None
            assert batch.mask is not None
            log_prob = model.log_prob_given(batch.source, batch.inputs, batch.targets)[batch.mask]
            total -= log_prob.double().sum().item()
            count += len(log_prob)
            if advance is not None:
                advance(done, len(batches))
    finally:
        model.train(training)
    return Score(total, count)


def pair_figures(score: Score, pairs: Pairs) -> dict[str, Any]:
    """Nats and bits a token, perplexity, bits a character, and what was counted."""
    characters = pairs.facts["characters"]
    return {
        "split": pairs.name,
        "nll": score.nll,
        "perplexity": score.perplexity,
        "bits_per_token": score.bits,
        "bits_per_character": score.nll_sum / math.log(2) / max(1, characters),
        "tokens": score.count,
        "unknown": pairs.facts["unknown"],
        "characters": characters,
        "pairs": len(pairs),
        "context": "every target given its source",
    }
