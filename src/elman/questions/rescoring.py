"""What a language model gives the n best hypotheses of a recogniser."""

from collections.abc import Sequence

import msgspec
import numpy as np
import torch

from elman.data.nbest import Hypothesis, by_utterance
from elman.data.tokeniser import fold
from elman.data.windows import stack_sequences
from elman.evaluation.scoring import score_sentences
from elman.evaluation.unknown import Unknown
from elman.questions.mixing import Mix
from elman.run import Run
from elman.state import select


class Encoded(msgspec.Struct, frozen=True):
    """The tokens of a hypothesis as written, `<eos>` included, and their ids [n]."""

    tokens: list[str]
    ids: np.ndarray


def encode_hypotheses(run: Run, hypotheses: Sequence[Hypothesis]) -> list[Encoded]:
    """Each text read as the training text was, on its own; an empty one is `<eos>` alone."""
    eos = run.vocabulary.eos
    encoded = []
    for hypothesis in hypotheses:
        sentences = list(run.sentences([hypothesis.text]))
        tokens = [token for words, _ in sentences for token in words]
        if not tokens and eos is not None:
            tokens = [run.vocabulary.words[eos]]
            sentences = [(tokens, np.array([eos], dtype=np.int32))]
        encoded.append(Encoded(tokens, np.concatenate([np.empty(0, np.int32), *(ids for _, ids in sentences)])))
    return encoded


def unknown_types(run: Run, encoded: Sequence[Encoded]) -> int:
    """How many different words of the hypotheses the vocabulary lacks."""
    return len({token for one in encoded for token in _as_read(run, one.tokens) if token not in run.vocabulary.ids})


def log_probs_fresh(run: Run, encoded: Sequence[Encoded], treatment: Unknown, batch_size: int = 32) -> list[float]:
    """The log-probability (nats) of each hypothesis as a text of its own, in batches of similar length."""
    order = sorted((index for index, one in enumerate(encoded) if len(one.ids)), key=lambda i: len(encoded[i].ids))
    totals = [0.0] * len(encoded)
    scored = score_sentences(run.model, (encoded[index].ids for index in order), run.first, batch_size)
    for index, log_probs in zip(order, scored, strict=True):
        totals[index] = _total(run, encoded[index], log_probs, treatment)
    return totals


@torch.inference_mode()
def log_probs_carried(
    run: Run, hypotheses: Sequence[Hypothesis], encoded: Sequence[Encoded], treatment: Unknown, mix: Mix
) -> list[float]:
    """As `log_probs_fresh`, but each utterance is read after the hypotheses chosen for those before it."""
    state, before = run.begin(), run.first
    totals = [0.0] * len(encoded)
    for group in by_utterance(hypotheses).values():
        batch, lengths = stack_sequences([np.append(encoded[index].ids, run.first) for index in group], before)
        batch = batch.to(run.device)
        many = select(state, torch.zeros(len(group), dtype=torch.long, device=run.device))
        log_probs = run.model.log_prob(batch.inputs, batch.targets, many)[0].t().float().cpu().numpy()
        for row, (index, length) in enumerate(zip(group, lengths, strict=True)):
            totals[index] = _total(run, encoded[index], log_probs[row, : length - 1], treatment)
        best = max(group, key=lambda index: mix.score(hypotheses[index], totals[index]))
        if len(ids := encoded[best].ids):
            read = torch.tensor([before, *ids[:-1].tolist()], device=run.device).unsqueeze(1)
            _, state = run.model.trace(read, state)
            before = int(ids[-1])
    return totals


def _total(run: Run, one: Encoded, log_probs: np.ndarray, treatment: Unknown) -> float:
    unknown = [token not in run.vocabulary.ids for token in _as_read(run, one.tokens)]
    return float(np.nansum(treatment.apply(log_probs, unknown), dtype=np.float64))


def _as_read(run: Run, tokens: Sequence[str]) -> Sequence[str]:
    return fold(tokens) if run.recipe.data.text.lowercase else tokens
