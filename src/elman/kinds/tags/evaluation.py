"""A tagger on a split: the tags of all words, how many are right, and which are taken for which."""

from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import torch

from elman.data.by_length import by_length
from elman.data.sentences import Ids
from elman.data.windows import WHOLE, Part
from elman.errors import UserError, optional
from elman.evaluation.labelling import Labelling, progressing, reading
from elman.evaluation.perplexity import Score, evaluating
from elman.evaluation.result import Confusion
from elman.evaluation.statistics import Floats, Measure, f1, precision, recall
from elman.jobs import Advance
from elman.kinds.tags.bank import is_chunk_tag
from elman.kinds.tags.corpus import TaggedSplit, TagSymbols, gather
from elman.network.device import widest
from elman.network.tag_model import TagModel

BATCH = 32  # sentences side by side; it changes nothing but the speed
CONFUSIONS = 10  # pairs of tags that are shown, those confused most often


class Tagging(NamedTuple):
    """What was found for every sentence: ids of tags, their probabilities, and log-probabilities of given tags."""

    found: list[Ids]
    probability: list[Floats]
    log_prob: list[Floats]

    def labelling(self, labels: Sequence[Ids]) -> Labelling:
        """The tags found, beside the right ones, word by word in the order of the sentences."""
        numbers = np.repeat(np.arange(len(labels)), [len(one) for one in labels])
        return Labelling(np.concatenate(self.log_prob), np.concatenate(self.found), np.concatenate(labels), numbers)


@torch.inference_mode()
def tag(
    model: TagModel,
    symbols: TagSymbols,
    sentences: Sequence[Sequence[str]],
    labels: Sequence[Ids] | None = None,
    *,
    batch_size: int = BATCH,
    advance: Advance = None,
) -> Tagging:
    """The most probable tag of every word by a model in evaluation mode; `<unk>` is never chosen.

    `labels` are the right ones; None: those found take their place in `log_prob`.
    """
    reader, ids = reading(model, symbols, sentences)
    lengths = np.array([len(one) for one in ids], np.int64)
    parts: list[list[Floats] | list[Ids]] = [[np.zeros(0)] * len(ids) for _ in range(3)]
    for indices in progressing(by_length(lengths, batch_size=batch_size), len(ids), advance):
        given = ids if labels is None else labels
        batch = gather([ids[index] for index in indices], [given[index] for index in indices]).to(model.device)
        assert batch.mask is not None
        log_probs = reader.tag_log_probs(batch.inputs, batch.mask).to(widest(model.device))
        among = log_probs.index_fill(-1, torch.tensor(symbols.unknown_label, device=model.device), -torch.inf)
        best, found = among.max(-1)
        right = best if labels is None else log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
        for some, values in zip(parts, (found, best.exp(), right), strict=True):
            rows = values.T.cpu().numpy()
            for row, index in zip(rows, indices, strict=True):
                some[index] = row[: lengths[index]].copy()
    return Tagging(*parts)  # type: ignore[arg-type]


def training_loss(
    model: TagModel, symbols: TagSymbols, split: TaggedSplit, part: Part = WHOLE, *, batch_size: int = BATCH
) -> Score:
    """Nats over the words of the right tags of some sentences, without dropout; the model is left as it was."""
    labels = part.of(split.labels)
    if not labels:
        return Score(0.0, 0)
    with evaluating(model):
        found = tag(model, symbols, part.of(split.sentences), labels, batch_size=batch_size)
    return found.labelling(labels).score


def require_nervaluate() -> Any:
    """The class that counts chunks; raises UserError where nervaluate is not installed."""
    needs = "F1 of chunks needs the package nervaluate: pip install 'elman[tags]'"
    return optional("nervaluate", needs).Evaluator


def chunk_measures(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> list[Measure]:
    """F1, precision and recall (percent) of the chunks of sentences, from tags in the form IOB, as nervaluate counts.

    A chunk is found where its first word, its last word and its type are right (the scheme `strict`). It begins at `B`,
    and at an `I` after `O` or after another type, as in the script conlleval of the shared tasks of CoNLL.

    Raises UserError where nervaluate is not installed, or a tag is in another form.
    """
    evaluator, rows = require_nervaluate(), []
    for ours, theirs in zip(found, right, strict=True):
        tags = sorted({*ours, *theirs})
        if other := [tag for tag in tags if not is_chunk_tag(tag)]:
            raise UserError(f"the tag {other[0]!r} is none of B-TYPE, I-TYPE and O, which F1 of chunks needs")
        types = sorted({tag[2:] for tag in tags} - {""})
        counted = evaluator([list(theirs)], [list(ours)], tags=types, loader="list").evaluate()["overall"]["strict"]
        rows.append((counted.correct, counted.actual, counted.possible))
    counts = np.array(rows, np.float64)
    signature = f"chunks: nervaluate {metadata.version('nervaluate')}, strict (first word, last word and type)"
    kinds = {"F1": f1, "precision": precision, "recall": recall}
    return [Measure(f"chunk {name}", counts, kind, signature) for name, kind in kinds.items()]


def measures(found: Labelling, split: TaggedSplit, symbols: TagSymbols) -> list[Measure]:
    """Accuracy (percent), also of words that training has and of the others, where there are any; and chunks.

    Of chunks F1, precision and recall come first.
    """
    known = np.concatenate([symbols.lexicon.knows(symbols.folded(words)) for words in split.sentences])
    signature = "accuracy: words tagged right; known words: in the training split"
    groups = {"accuracy": known | True, "accuracy, known words": known, "accuracy, unknown words": ~known}
    rows = [found.accuracy(len(split), name, signature, among) for name, among in groups.items() if among.any()]
    if not symbols.in_chunks:
        return rows
    ends = np.cumsum(split.lengths)[:-1]
    written = [symbols.labels.decode(one) for one in np.split(found.found, ends)]
    return [*chunk_measures(written, split.tags), *rows]


def confusions(found: Labelling, symbols: TagSymbols) -> list[Confusion]:
    """The pairs of a right tag and another that was found most often in its place, falling; ties by the tags."""
    wrong = found.found != found.right
    pairs = Counter(zip(found.right[wrong].tolist(), found.found[wrong].tolist(), strict=True))
    total = Counter(found.right.tolist())
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:CONFUSIONS]
    names = symbols.labels.words
    return [Confusion(names[right], names[other], count, total[right]) for (right, other), count in ordered]


def most_frequent(symbols: TagSymbols, split: TaggedSplit) -> Labelling:
    """Every word with its most frequent tag in training (`Lexicon`); unknown words are tagged as words seen once."""
    words = [word for sentence in split.sentences for word in symbols.folded(sentence)]
    log_probs = symbols.lexicon.log_probs(words, symbols.labels)
    right = np.concatenate(split.labels).astype(np.int64)
    among = log_probs.copy()
    among[:, symbols.unknown_label] = -np.inf
    numbers = np.repeat(np.arange(len(split)), split.lengths)
    return Labelling(log_probs[np.arange(len(right)), right], among.argmax(1), right, numbers)
