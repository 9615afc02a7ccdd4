"""Figures of a model of targets given sources: NLL a target token, every pair whole."""

import math
from collections.abc import Callable
from typing import Any

import torch

from elman.data.pair_windows import as_batch
from elman.data.pairs import PairCorpus, Pairs
from elman.evaluation.perplexity import Score
from elman.seq2seq import SequenceToSequence


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
