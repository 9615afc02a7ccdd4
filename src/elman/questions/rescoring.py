"""Choosing among the n best hypotheses of a recogniser by a language model."""

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import torch

from elman.data.nbest import Hypothesis, by_utterance
from elman.data.tokeniser import fold
from elman.data.windows import stack_sequences
from elman.evaluation.edit_distance import word_error_rate
from elman.evaluation.open_vocabulary import Sentences
from elman.evaluation.scoring import score_sentences
from elman.evaluation.unknown import Unknown
from elman.run import Run
from elman.state import select


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """score = sum_j given_weights[j] given_j + weight log p(text) - word_penalty words.

    Attributes:
        weight: of the language model's log-probability (nats), the "language model scale".
        word_penalty: taken off for every word.
        given_weights: one for each given score; None: all 1.

    """

    weight: float = 1.0
    word_penalty: float = 0.0
    given_weights: tuple[float, ...] | None = None

    def score(self, hypothesis: Hypothesis, log_prob: float) -> float:
        """The score of a hypothesis, given its log-probability."""
        weights = self.given_weights or (1.0,) * len(hypothesis.scores)
        given = sum(weight * score for weight, score in zip(weights, hypothesis.scores, strict=True))
        return given + self.weight * log_prob - self.word_penalty * len(hypothesis.text.split())


def read_hypotheses(run: Run, hypotheses: Sequence[Hypothesis]) -> Sentences:
    """Each text read as the training text was, on its own; an empty one is `<eos>` alone."""
    eos = run.vocabulary.eos
    encoded: list[tuple[list[str], np.ndarray]] = []
    for hypothesis in hypotheses:
        sentences = list(run.sentences([hypothesis.text]))
        tokens = [token for words, _ in sentences for token in words]
        if not tokens and eos is not None:
            tokens = [run.vocabulary.words[eos]]
            sentences = [(tokens, np.array([eos], dtype=np.int32))]
        encoded.append((tokens, np.concatenate([np.empty(0, np.int32), *(ids for _, ids in sentences)])))
    return run.as_read(encoded)


def unknown_types(run: Run, read: Sentences) -> int:
    """How many different words of the hypotheses the vocabulary lacks."""
    known = run.vocabulary.ids
    return len({token for tokens in read.words for token in _folded(run, tokens) if token not in known})


def log_probs_fresh(run: Run, read: Sentences, treatment: Unknown, batch_size: int = 32) -> list[float]:
    """The log-probability (nats) of each hypothesis as a text of its own, in batches of similar length."""
    order = sorted((index for index, ids in enumerate(read.ids) if len(ids)), key=lambda index: len(read.ids[index]))
    totals = [0.0] * len(read.ids)
    ids, inputs = ([part[index] for index in order] for part in (read.ids, read.inputs))
    scored = score_sentences(read.model, ids, run.first, batch_size, inputs)
    for index, log_probs in zip(order, scored, strict=True):
        totals[index] = _total(run, read.words[index], log_probs, treatment)
    return totals


@torch.inference_mode()
def log_probs_carried(
    run: Run, hypotheses: Sequence[Hypothesis], read: Sentences, treatment: Unknown, mix: Mix
) -> list[float]:
    """As `log_probs_fresh`, but each utterance is read after the hypotheses chosen for those before it."""
    state, before = run.begin(), run.first
    totals = [0.0] * len(read.ids)
    for group in by_utterance(hypotheses).values():
        ids, inputs = ([np.append(part[index], run.first) for index in group] for part in (read.ids, read.inputs))
        batch, lengths = stack_sequences(ids, before, inputs)
        batch = batch.to(run.device)
        many = select(state, torch.zeros(len(group), dtype=torch.long, device=run.device))
        log_probs = read.model.log_prob(batch.inputs, batch.targets, many)[0].t().float().cpu().numpy()
        for row, (index, length) in enumerate(zip(group, lengths, strict=True)):
            totals[index] = _total(run, read.words[index], log_probs[row, : length - 1], treatment)
        best = max(group, key=lambda index: mix.score(hypotheses[index], totals[index]))
        if len(chosen := read.inputs[best]):
            symbols = torch.tensor([before, *chosen[:-1].tolist()], device=run.device).unsqueeze(1)
            _, state = read.model.trace(symbols, state)
            before = int(chosen[-1])
    return totals


def ranked(hypotheses: Sequence[Hypothesis], log_probs: Sequence[float], mix: Mix) -> Iterator[tuple[str, list[int]]]:
    """The numbers of each utterance's hypotheses, the best first; equals keep their order."""
    scores = [mix.score(one, log_prob) for one, log_prob in zip(hypotheses, log_probs, strict=True)]
    for utterance, group in by_utterance(hypotheses).items():
        yield utterance, sorted(group, key=lambda index: -scores[index])


def chosen_error_rate(
    hypotheses: Sequence[Hypothesis], log_probs: Sequence[float], mix: Mix, references: dict[str, str]
) -> float:
    """The word error rate of what is chosen, over the utterances that have a reference."""
    best = ((name, hypotheses[order[0]].text) for name, order in ranked(hypotheses, log_probs, mix))
    return word_error_rate((text.split(), references[name].split()) for name, text in best if name in references)


def tune(
    hypotheses: Sequence[Hypothesis],
    log_probs: Sequence[float],
    mix: Mix,
    references: dict[str, str],
    weights: Sequence[float],
    penalties: Sequence[float],
) -> tuple[Mix, float]:
    """The mix of lowest word error rate on a grid, and that rate; of equals the one nearest the given scores alone."""
    best, lowest = mix, math.inf
    for weight in weights:
        for penalty in sorted(penalties, key=abs):
            candidate = msgspec.structs.replace(mix, weight=weight, word_penalty=penalty)
            rate = chosen_error_rate(hypotheses, log_probs, candidate, references)
            if rate < lowest:
                best, lowest = candidate, rate
    return best, lowest


def _total(run: Run, tokens: Sequence[str], log_probs: np.ndarray, treatment: Unknown) -> float:
    unknown = [token not in run.vocabulary.ids for token in _folded(run, tokens)]
    return float(np.nansum(treatment.apply(log_probs, unknown), dtype=np.float64))


def _folded(run: Run, tokens: Sequence[str]) -> Sequence[str]:
    return fold(tokens) if run.recipe.data.text.folds_tokens else tokens
