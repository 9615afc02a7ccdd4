"""Models of transformers, causal or masked, that score text by their own tokenisers (pip install 'elman[hf]').

Causal models read each sentence after their beginning symbol (`bos_token`, else `eos_token`); where the tokeniser has
neither, the first token is not predicted. A text longer than the context is read in windows that advance by `stride`
tokens, by default half of the context, so that every token but the first ones has the rest of it before it. Masked
models give pseudo-log-likelihoods (Salazar et al. 2020, Masked language model scoring, ACL): every token is predicted
from all others, with `within_word_l2r` without those after it in its word (Kauf & Ivanova 2023, A better way to do
masked language model scoring, ACL).
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elman.config.text import TextOptions
from elman.data.text.reading import Sentence, TextReader
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError, first_line, optional
from elman.evaluation.scoring import Prediction, Sentences
from elman.jobs import Advance
from elman.tasks.text.logits import SYMBOLS, Network, with_fused_gelu
from elman.tasks.text.model import Foreign, Pll, Predicted, Scored, States, Whole, unranked

AHEAD = 512  # sentences looked at together, so that few symbols are padding and few are read twice
WINDOW = 1 << 12  # symbols of a window at most, where the context of a model is longer or has no end


class Pretrained(Foreign):
    """A model of a folder; raises UserError where transformers is missing or the folder has no language model.

    Its tokens are slices of the text, each with the blanks in front of it; a word is what white space separates.
    """

    pll: Pll = "within_word_l2r"
    stride: int | None = None
    what, asked_of_text = "a model of transformers", ("stride",)

    def __init__(self, path: Path, folder: Path, device: torch.device | str = "cpu") -> None:
        super().__init__(path)
        transformers = optional("transformers", f"{path} is a model of transformers: pip install 'elman[hf]'")
        self.options = TextOptions(tokenisation="subwords", eos="none")
        try:
            transformers.utils.logging.disable_progress_bar()
            config = transformers.AutoConfig.from_pretrained(folder)
            self.masked = any("MaskedLM" in name for name in config.architectures or ())
            kind = transformers.AutoModelForMaskedLM if self.masked else transformers.AutoModelForCausalLM
            self.cut: Any = transformers.AutoTokenizer.from_pretrained(folder)
            model: Any = kind.from_pretrained(folder, dtype=torch.float32)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise UserError(f"{path}: transformers cannot open it as a language model ({first_line(error)})") from None
        self.model = with_fused_gelu(model.to(device).eval())
        self.model.config.use_cache = False
        if not self.cut.is_fast:
            raise UserError(
                f"{path}: its tokeniser does not give the places of tokens in a text; take one with a fast form"
            )
        if self.masked and self.cut.mask_token_id is None:
            raise UserError(f"{path}: its tokeniser has no mask, by which a masked model is asked for a token")
        self.cut.backend_tokenizer.no_truncation()
        self.cut.backend_tokenizer.no_padding()
        self.first = self.cut.bos_token_id if self.cut.bos_token_id is not None else self.cut.eos_token_id
        self.lacking = -1 if self.cut.unk_token_id in (None, self.first) else int(self.cut.unk_token_id)
        sizes = (getattr(config, "max_position_embeddings", None), self.cut.model_max_length)
        self.limit = min((one for one in sizes if one and one < 1 << 30), default=1 << 30)
        self.network = Network(self.model, len(self.cut), self.limit)

    @functools.cached_property
    def _words(self) -> list[str]:
        return [str(word) for word in self.cut.convert_ids_to_tokens(list(range(len(self.cut))))]

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:  # type: ignore[override]
        words = tuple(dict.fromkeys(self._words))
        return Vocabulary(words, (0,) * len(words))

    @functools.cached_property
    def spaces(self) -> tuple[int, ...]:  # type: ignore[override]
        """The ids of tokens that begin with white space; none of a masked model."""
        marks = ("Ġ", "Ċ", "ĉ", "\N{LOWER ONE EIGHTH BLOCK}", " ", "\n", "\t")
        return () if self.masked else tuple(at for at, word in enumerate(self._words) if word.startswith(marks))

    def reader(self, *_: Any, **__: Any) -> TextReader:
        """What reads any text, of which the model lacks nothing."""
        return _Reader(self)

    def sentence(self, text: str, line: int) -> Sentence:
        """A text as tokens, which together are all of it."""
        pieces, ids = self._tokens(text.strip())
        unknown = (ids == self.lacking).tolist()
        starts, found, between = list[bool](), False, True
        for at, piece in enumerate(pieces):
            starts.append(at == 0 or (found and (between or piece[:1].isspace())))
            found = bool(piece.strip()) or (found and not starts[-1])
            between = piece[-1:].isspace()
        return Sentence(pieces, starts, unknown, frozenset(), pieces, ids, line)

    def _tokens(self, text: str) -> tuple[list[str], np.ndarray]:
        """The tokens of a text, which together are all of it, and their ids [n]."""
        read = self.cut.backend_tokenizer.encode(text, add_special_tokens=False)
        pieces, at = list[str](), 0
        for _, end in read.offsets:
            pieces.append(text[at : max(at, end)])
            at = max(at, end)
        return pieces, np.array(read.ids, dtype=np.int32)

    def predict_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Predicted:
        """The prediction of each sentence; of a masked model without ranks, entropies and ends of words."""
        return self._asked(text, document, batch_size, whole=True)

    def score_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Scored:
        for sentence, found in self._asked(text, document, batch_size, whole=False):
            yield sentence, found.log_prob

    def _asked(self, text: Sentences, document: bool, batch_size: int, *, whole: bool) -> Predicted:
        self.independent(document)
        items = (sentence for sentence, _ in text.items)
        ahead = AHEAD if batch_size > 1 else 1
        while group := list(islice(items, ahead)):
            found = map(self._masked, group) if self.masked else self._causal(group, batch_size, whole)
            yield from zip(group, found, strict=True)

    def _causal(self, group: list[Sentence], batch_size: int, whole: bool) -> Iterator[Prediction]:
        begin = [] if self.first is None else [self.first]
        rows = [np.concatenate([begin, sentence.ids]).astype(np.int64) for sentence in group]
        short = [row for row in rows if len(row) <= self.limit]
        found = iter(self.network.figures(short, self.spaces if whole else None, batch_size))
        for row in rows:
            figures = next(found) if len(row) <= self.limit else self._windows(row, self.limit, whole)
            yield self._prediction(figures, len(begin))

    def read_whole(self, lines: Sequence[str], stride: int | None, advance: Advance = None) -> tuple[Whole, str]:
        """The log-probabilities of a text with its line ends, in windows; raises UserError of a masked model."""
        if self.masked:
            raise UserError(
                f"{self.path} is a masked model, whose pseudo-log-likelihoods are no perplexity of a text; score gives"
                " them"
            )
        self.stride, window = stride, min(self.limit, WINDOW)
        begin = [] if self.first is None else [self.first]
        pieces, ids = self._tokens("".join(lines))
        figures = self._windows(np.concatenate([begin, ids]).astype(np.int64), window, whole=False, advance=advance)
        found = Whole(self._prediction(figures, len(begin)).log_prob, "".join(pieces), int((ids == self.lacking).sum()))
        return found, f"windows of {window} tokens that advance by {self.advance_of(window)}"

    def states(self, text: Sentences, layers: Sequence[int]) -> Iterator[States]:
        """The hidden states of the tokens of each sentence; level 0 is below the first layer."""
        for sentence, _ in text.items:
            if self.masked:
                read = self.cut("".join(sentence.pieces), return_special_tokens_mask=True)
                row, own = read["input_ids"], np.flatnonzero(1 - np.array(read["special_tokens_mask"], dtype=int))
            else:
                begin = [self.first or 0] if self.first is not None or not len(sentence.ids) else []
                row, own = [*begin, *sentence.ids.tolist()], np.arange(len(begin), len(begin) + len(sentence.ids))
            if len(row) > self.limit:
                raise UserError(f"{self.path} reads {self.limit} tokens at once, and a text has {len(row)}; divide it")
            every = self._levels(row)
            yield sentence.pieces, sentence.ids, [every[layer][own].float().cpu().numpy() for layer in layers]

    @torch.inference_mode()
    def _levels(self, row: Sequence[int]) -> list[torch.Tensor]:
        """The hidden states [T, H] of symbols [T] at each level."""
        ids = torch.tensor([row], device=self.model.device)
        found = self.model(input_ids=ids, output_hidden_states=True).hidden_states
        if found is None:
            raise UserError(f"{self.path}: this kind of model does not show its hidden states")
        return [level[0] for level in found]

    @property
    def num_levels(self) -> int:
        return len(self._levels([self.first or 0]))

    def word_vectors(self, side: str) -> torch.Tensor:
        """The vectors [V, D] of the tokens; raises UserError where the model has none on that side."""
        part = self.model.get_input_embeddings() if side == "input" else self.model.get_output_embeddings()
        if part is None:
            raise UserError(f"{self.path} has no {side} vectors of tokens")
        found: torch.Tensor = part.weight[: len(self._words)].detach()
        return found

    def advance_of(self, limit: int) -> int:
        """How far windows of `limit` symbols advance; raises UserError where that leaves some out."""
        if self.stride is not None and self.stride >= limit:
            raise UserError(f"--stride {self.stride}: {self.path} reads {limit} tokens at once; give less than that")
        return self.stride or max(1, limit // 2)

    def _windows(self, row: np.ndarray, limit: int, whole: bool, advance: Advance = None) -> np.ndarray:
        """The figures of symbols beyond the context, which are read in windows."""
        stride, parts, done = self.advance_of(limit), list[np.ndarray](), 0
        begins = range(0, max(1, len(row) - limit + stride), stride)
        side_by_side = max(1, SYMBOLS // limit)
        for group in (begins[at : at + side_by_side] for at in range(0, len(begins), side_by_side)):
            windows = [row[at : at + limit] for at in group]
            found = self.network.figures(windows, self.spaces if whole else None, SYMBOLS)
            for at, figures in zip(group, found, strict=True):
                # The last figure of a window is of what follows it: the next window has its rank and probability.
                stop = at + figures.shape[1] - (at + limit < len(row))
                parts.append(figures[:, done - at : stop - at])
                done = stop
            if advance is not None:
                advance(done, len(row))
        return np.concatenate(parts, axis=1)

    @staticmethod
    def _prediction(figures: np.ndarray, begin: int) -> Prediction:
        """The figures [1 or 4, n] after each symbol that was read, a beginning among them or not, as a sentence's."""
        figures = figures if begin else np.pad(figures, ((0, 0), (1, 0)), constant_values=np.nan)
        log_prob = figures[0, :-1].astype(np.float32)
        if len(figures) == 1:
            return unranked(log_prob)
        entropy, space = figures[2:].astype(np.float32)
        return Prediction(log_prob, np.nan_to_num(figures[1, :-1]).astype(np.int64), entropy, space)

    @torch.inference_mode()
    def _masked(self, sentence: Sentence) -> Prediction:
        text, device = "".join(sentence.pieces), self.model.device
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
        return unranked(np.array(log_probs, dtype=np.float32))


class _Reader(TextReader):
    """Cuts texts into tokens by the tokeniser of a model, which lacks no word."""

    def __init__(self, model: Pretrained) -> None:
        super().__init__(model.vocabulary, model.tokeniser)
        self._model = model

    def sentences(self, lines: Iterable[str], number: int = 1) -> Iterator[Sentence]:
        for at, line in enumerate(lines, start=number):
            if line.strip():
                yield self._model.sentence(line, at)

    def one(self, text: str, number: int = 1) -> Sentence:
        return self._model.sentence(text, number)

    complete = one
