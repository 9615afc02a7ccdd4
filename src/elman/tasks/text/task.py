"""Words and characters."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elman import config
from elman.config.inference import Sampling
from elman.data.text import subwords
from elman.data.text.cache import Progress
from elman.data.text.corpus import open_corpus
from elman.data.text.detokenise import shown
from elman.data.windows import EvaluationWindows, Windows, start_symbol
from elman.evaluation.ngram import CountModel, KneserNey, Unigram
from elman.evaluation.perplexity import evaluate, figures, score_of, split_figures
from elman.evaluation.scoring import score_document, surprisal
from elman.files import write_atomic
from elman.network.model import LanguageModel
from elman.tasks.task import Advance, Task, write_json
from elman.tasks.text.run import Run, load
from elman.tasks.text.starting_small import training_windows
from elman.tasks.text.warm_start import start_from


class Words(Task):
    """A text and its vocabulary.

    Raises:
        UserError: the text cannot be used.

    """

    kind, in_perplexity = "text", True

    def __init__(self, recipe: config.Recipe, source: str, progress: Progress | None = None) -> None:
        self.recipe = recipe
        self.corpus = open_corpus(source, recipe.data.text, progress=progress)
        self.inputs, self.digest, self.source = self.corpus.vocabulary, self.corpus.digest, source
        self.counts, self.words = self.corpus.vocabulary.counts, self.corpus.vocabulary.words

    @property
    def first(self) -> int:
        """The symbol that precedes a text."""
        return start_symbol(self.corpus.vocabulary)

    def windows(self, max_extra: int | None) -> Windows:
        """The training text in columns; with starting small, those of each epoch."""
        return training_windows(self.recipe, self.corpus.split("train").tokens, Path(self.source), max_extra)

    def validate(self, model: LanguageModel) -> float:
        """Nats a token of the validation text."""
        rules = self.recipe.evaluation
        windows = EvaluationWindows(
            self.corpus.split("valid").tokens,
            self.first,
            streams=rules.streams,
            length=rules.length,
            warm_up=rules.warm_up,
            skip_first=rules.skip_first,
        )
        return evaluate(model, windows).nll

    def write(self, folder: Path) -> None:
        """vocabulary.tsv, data.json and, of subwords, subwords.model."""
        if self.corpus.subwords is not None:
            write_atomic(folder / subwords.FILE, self.corpus.subwords.model)
        self.corpus.vocabulary.save(folder / "vocabulary.tsv")
        write_json(folder / "data.json", self.corpus.describe())

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        """Weights of another run, words mapped by their spelling."""
        start_from(model, self.corpus.vocabulary.words, load(folder))

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[dict[str, Any]]:
        """results.json from one stream, samples.json, surprisal.json."""
        run = load(out, device)
        results = [
            {
                **split_figures(
                    run.model,
                    run.split(self.corpus, name),
                    self.first,
                    skip_first=self.recipe.evaluation.skip_first,
                    advance=advance,
                ),
                "method": "static",
                "model": "best",
            }
            for name in ("valid", "test")
        ]
        write_json(out / "results.json", results)
        write_json(out / "samples.json", [sample(run, prompt, seed) for seed, prompt in enumerate(prompts)])
        write_json(out / "surprisal.json", self._surprisal(run))
        return results

    def baselines(self, order: int, splits: Sequence[str]) -> list[dict[str, Any]]:
        """Unigram and Kneser-Ney n-gram figures."""
        train = self.corpus.split("train").tokens
        models: dict[str, CountModel] = {
            "unigram": Unigram.train(train, len(self.corpus.vocabulary)),
            f"Kneser-Ney {order}-gram": KneserNey.train(train, len(self.corpus.vocabulary), order),
        }
        rows = []
        for name, model in models.items():
            for split in map(self.corpus.split, splits):
                log_probs = model.log_prob(split.tokens, [self.first])
                rows.append({"name": name, **figures(score_of(log_probs), split)})
        return rows

    def summary(self) -> list[str]:
        """Tokens of each split, words of the vocabulary."""
        lines = [
            f"{name:5} {len(split.tokens):>11,} tokens, {split.unknown:,} unknown"
            for name, split in self.corpus.splits.items()
        ]
        return [*lines, f"vocabulary {len(self.corpus.vocabulary):,}"]

    def _surprisal(self, run: Run, tokens: int = 120) -> dict[str, Any]:
        """A passage of the test split with the surprisal of each word."""
        ids = np.asarray(self.corpus.split("test").tokens[:tokens], dtype=np.int64)
        log_probs = next(score_document(run.model, [ids], self.first))
        words = self.corpus.vocabulary.decode(ids)
        bits = surprisal(log_probs).round(3).tolist()
        return {"sentence": [{"word": w, "surprisal": b} for w, b in zip(words, bits, strict=True)]}


def sample(run: Run, prompt: str, seed: int, count: int = 120, temperature: float = 0.9) -> dict[str, Any]:
    """A sample as samples.json holds it."""
    sampling = Sampling(temperature=temperature, forbidden=run.unspeakable)
    words = run.words(prompt, count=count, seed=seed, sampling=sampling)
    text = shown(words, run.recipe.data.text)
    return {"prompt": prompt, "text": text, "temperature": temperature, "seed": seed}
