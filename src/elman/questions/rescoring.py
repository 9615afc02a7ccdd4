"""What a language model gives the n best hypotheses of a recogniser."""

from collections.abc import Sequence

import numpy as np
import torch

from elman.data.nbest import Hypothesis, by_utterance
from elman.data.tokeniser import fold
from elman.data.windows import stack_sequences
from elman.evaluation.open_vocabulary import Sentences
from elman.evaluation.scoring import score_sentences
from elman.evaluation.unknown import Unknown
from elman.questions.mixing import Mix
from elman.run import Run
from elman.state import select


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


def _total(run: Run, tokens: Sequence[str], log_probs: np.ndarray, treatment: Unknown) -> float:
    unknown = [token not in run.vocabulary.ids for token in _folded(run, tokens)]
    return float(np.nansum(treatment.apply(log_probs, unknown), dtype=np.float64))


def _folded(run: Run, tokens: Sequence[str]) -> Sequence[str]:
    return fold(tokens) if run.recipe.data.text.folds_tokens else tokens
