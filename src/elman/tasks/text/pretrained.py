"""Models of transformers, causal or masked, that score text by their own tokenisers (pip install 'elman[hf]').

Causal models read each sentence after their beginning symbol (`bos_token`, else `eos_token`); where the tokeniser has
neither, the first token is not predicted. A sentence longer than the context is read in windows that begin every half
context, so that every token but the first ones has at least half of it before it. Masked models give pseudo-
log-likelihoods (Salazar et al. 2020, Masked language model scoring, ACL): every token is predicted from all others,
with `within_word_l2r` without those after it in its word (Kauf & Ivanova 2023, A better way to do masked language model
scoring, ACL).
"""

import functools
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elman.config.text import TextOptions
from elman.data.text.lacking import Tally
from elman.data.text.reading import Sentence
from elman.data.text.tokeniser import word_starts
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError, first_line
from elman.evaluation.scoring import Prediction, Sentences
from elman.tasks.text.model import Foreign, Pll, Predicted, Reader, Scored, unranked

AHEAD = 512
"""Sentences sorted by their length at once, so that few symbols are padding."""

SYMBOLS = 1 << 13
"""Symbols read side by side at most, the padding included."""


class Pretrained(Foreign):
    """A model of a folder; raises UserError where transformers is missing or the folder has no language model.

    Its tokens are slices of the text, each with the blanks in front of it; a word is what white space separates.
    """

    pll: Pll = "within_word_l2r"

    def __init__(self, path: Path, folder: Path, device: torch.device | str = "cpu") -> None:
        super().__init__(path)
        try:
            import transformers
        except ImportError:
            raise UserError(f"{path} is a model of transformers: pip install 'elman[hf]'") from None
        self.options = TextOptions(tokenisation="subwords", eos="none")
        try:
            transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
            config = transformers.AutoConfig.from_pretrained(folder)
            self.masked = any("MaskedLM" in name for name in config.architectures or ())
            kind = transformers.AutoModelForMaskedLM if self.masked else transformers.AutoModelForCausalLM
            self.cut: Any = transformers.AutoTokenizer.from_pretrained(folder)
            model: Any = kind.from_pretrained(folder, dtype=torch.float32)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UserError(f"{path}: transformers cannot open it as a language model ({first_line(error)})") from None
        self.model = model.to(device).eval()
        if not self.cut.is_fast:
            raise UserError(
                f"{path}: its tokeniser does not give the places of tokens in a text; take one with a fast form"
            )
        if self.masked and self.cut.mask_token_id is None:
            raise UserError(f"{path}: its tokeniser has no mask, by which a masked model is asked for a token")
        self.first = self.cut.bos_token_id if self.cut.bos_token_id is not None else self.cut.eos_token_id
        sizes = (getattr(config, "max_position_embeddings", None), self.cut.model_max_length)
        self.limit = min((one for one in sizes if one and one < 1 << 30), default=1 << 30)

    @functools.cached_property
    def _words(self) -> list[str]:
        return [str(word) for word in self.cut.convert_ids_to_tokens(list(range(len(self.cut))))]

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:  # type: ignore[override]
        """The tokens as the tokeniser writes them."""
        words = tuple(dict.fromkeys(self._words))
        return Vocabulary(words, (0,) * len(words))

    @functools.cached_property
    def spaces(self) -> tuple[int, ...]:  # type: ignore[override]
        """The ids of tokens that begin with white space; none of a masked model."""
        marks = ("Ġ", "Ċ", "ĉ", "\N{LOWER ONE EIGHTH BLOCK}", " ", "\n", "\t")
        return () if self.masked else tuple(at for at, word in enumerate(self._words) if word.startswith(marks))

    def reader(
        self,
        name: str = "the text",  # noqa: ARG002
        *,
        as_is: bool = False,  # noqa: ARG002
        leave_out: bool = False,  # noqa: ARG002
        cure: str = "",  # noqa: ARG002
    ) -> Reader:
        """A reader by the model's own tokeniser."""
        return _Reader(self)

    def sentence(self, text: str, line: int) -> Sentence:
        """A text as tokens, which together are all of it."""
        text = text.strip()
        read = self.cut(text, add_special_tokens=False, return_offsets_mapping=True)
        pieces, at = list[str](), 0
        for _, end in read["offset_mapping"]:
            pieces.append(text[at : max(at, end)])
            at = max(at, end)
        ids = np.array(read["input_ids"], dtype=np.int32)
        unknown = [int(one) == self.cut.unk_token_id != self.first for one in ids]
        starts = word_starts(pieces, self.options)
        return Sentence(pieces, starts, unknown, frozenset(), pieces, ids, line)

    def predict_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Predicted:
        """The prediction of each sentence; of a masked model without ranks, entropies and ends of words."""
        return self._asked(text, document, batch_size, whole=True)

    def score_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Scored:
        """The log-probabilities (nats) of each sentence."""
        for sentence, found in self._asked(text, document, batch_size, whole=False):
            yield sentence, found.log_prob

    def _asked(self, text: Sentences, document: bool, batch_size: int, *, whole: bool) -> Predicted:
        self.independent(document)
        items = (sentence for sentence, _ in text.items)
        ahead = AHEAD if batch_size > 1 else 1
        while group := list(islice(items, ahead)):
            order = sorted(range(len(group)), key=lambda index: len(group[index].ids))
            found = self._masked(group, order) if self.masked else self._causal(group, order, batch_size, whole)
            yield from zip(group, (found[index] for index in range(len(group))), strict=True)

    def _causal(self, group: list[Sentence], order: list[int], batch_size: int, whole: bool) -> dict[int, Prediction]:
        found, batch = dict[int, Prediction](), list[int]()
        for index in [*order, -1]:
            longest = len(group[index].ids) + 1
            if batch and (index < 0 or len(batch) == batch_size or (len(batch) + 1) * longest > SYMBOLS):
                found |= zip(batch, self._batch([group[one].ids for one in batch], whole), strict=True)
                batch = []
            batch.append(index)
        return found

    def _batch(self, sentences: list[np.ndarray], whole: bool) -> list[Prediction]:
        begin = [] if self.first is None else [self.first]
        rows = [np.concatenate([begin, ids]).astype(np.int64) for ids in sentences]
        if max(map(len, rows)) > self.limit:
            return [self._windows(row, len(begin), whole) for row in rows]
        width = max(1, *map(len, rows))
        ids, mask = (np.zeros((len(rows), width), dtype=np.int64) for _ in range(2))
        for place, row in enumerate(rows):
            ids[place, : len(row)], mask[place, : len(row)] = row, 1
        figures = self._figures(torch.from_numpy(ids), torch.from_numpy(mask), whole)
        return [
            self._prediction([one[place, : len(row)] for one in figures], len(begin)) for place, row in enumerate(rows)
        ]

    def _windows(self, row: np.ndarray, begin: int, whole: bool) -> Prediction:
        """A sentence beyond the context, in windows that begin every half of it."""
        stride, parts, done = max(1, self.limit // 2), list[list[np.ndarray]](), 0
        for at in range(0, max(1, len(row) - self.limit + stride), stride):
            ids = torch.from_numpy(row[at : at + self.limit]).unsqueeze(0)
            figures = self._figures(ids, torch.ones_like(ids), whole)
            # The last figure of a window is of what follows it: the next window has its rank and probability.
            last = at + self.limit >= len(row)
            keep = slice(done - at, len(ids[0]) if last else len(ids[0]) - 1)
            parts.append([one[0, keep] for one in figures])
            done = at + len(ids[0]) - 1
        return self._prediction([np.concatenate(part) for part in zip(*parts, strict=True)], begin)

    @torch.inference_mode()
    def _figures(self, ids: torch.Tensor, mask: torch.Tensor, whole: bool) -> list[np.ndarray]:
        """Of what follows each symbol [B, T]: log-probability and rank of the next one, entropy, white space."""
        device = self.model.device
        logits = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits.float()
        following = ids.roll(-1, 1).to(device).unsqueeze(-1)
        picked = logits.gather(-1, following)
        if not whole:
            values = [(picked.squeeze(-1) - logits.logsumexp(-1))]
        else:
            log_probs = logits.log_softmax(-1)
            spaces = torch.tensor(self.spaces, dtype=torch.long, device=device)
            values = [
                log_probs.gather(-1, following).squeeze(-1),
                (logits > picked).sum(-1) + 1,
                torch.special.entr(log_probs.exp()).sum(-1),
                log_probs[..., spaces].logsumexp(-1),
            ]
        return [value.cpu().numpy() for value in values]

    @staticmethod
    def _prediction(figures: list[np.ndarray], begin: int) -> Prediction:
        """The figures after each symbol that was read, the beginning among them or not, as those of the sentence."""
        log_prob, *others = figures
        if not begin:
            log_prob = np.concatenate([[np.nan], log_prob])
        if not others:
            return unranked(log_prob[:-1].astype(np.float32))
        before = [] if begin else [0]
        rank, entropy, space = (np.concatenate([np.array(before) * np.nan, one]) for one in others)
        ranks = np.nan_to_num(rank[:-1]).astype(np.int64)
        return Prediction(log_prob[:-1].astype(np.float32), ranks, entropy.astype(np.float32), space.astype(np.float32))

    @torch.inference_mode()
    def _masked(self, group: list[Sentence], order: list[int]) -> dict[int, Prediction]:
        found, device = dict[int, Prediction](), self.model.device
        for index in order:
            text = "".join(group[index].pieces)
            read = self.cut(text, return_special_tokens_mask=True)
            ids, words = torch.tensor(read["input_ids"]), read.word_ids()
            own = [at for at, special in enumerate(read["special_tokens_mask"]) if not special]
            if len(ids) > self.limit:
                raise UserError(f"{self.path} reads {self.limit} tokens at once, and a text has {len(ids)}; divide it")
            rows = ids.repeat(len(own), 1)
            for row, at in enumerate(own):
                later = [one for one in own if one > at and self.pll != "original" and words[one] == words[at]]
                rows[row, [at, *later]] = self.cut.mask_token_id
            log_probs, step = list[float](), max(1, SYMBOLS // len(ids))
            for start in range(0, len(own), step):
                places = torch.tensor(own[start : start + step])
                logits = self.model(input_ids=rows[start : start + step].to(device)).logits.float().cpu()
                chosen = logits[torch.arange(len(places)), places].log_softmax(-1)
                log_probs += chosen.gather(-1, ids[places].unsqueeze(-1)).squeeze(-1).tolist()
            found[index] = unranked(np.array(log_probs, dtype=np.float32))
        return found


class _Reader:
    def __init__(self, model: Pretrained) -> None:
        self.tally, self._model = Tally(), model

    def sentences(self, lines: Iterable[str], number: int = 1) -> Iterator[Sentence]:
        for at, line in enumerate(lines, start=number):
            if line.strip():
                yield self._model.sentence(line, at)

    def one(self, text: str, number: int = 1) -> Sentence:
        return self._model.sentence(text, number)

    complete = one

    def report(self) -> list[str]:
        return []
