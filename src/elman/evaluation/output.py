"""What a model writes for a split of pairs, and what that is worth beside a baseline."""

from collections.abc import Callable
from typing import Any

import msgspec
import torch

from elman import config
from elman.data.pair_windows import as_batch
from elman.data.pairs import PairCorpus, Pairs
from elman.decoding import Beam, Hypothesis, beam_search
from elman.evaluation.transduction import figures, measures, rules_of
from elman.evaluation.transduction_baselines import baseline, references
from elman.seq2seq import SequenceToSequence
from elman.tree_constraint import constraint_of

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
