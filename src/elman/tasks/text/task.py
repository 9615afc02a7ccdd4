"""The task of texts: words, characters, bytes or subwords."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from elman.config.inference import Sampling
from elman.config.recipe import Recipe
from elman.config.text import WARM_UP, TextData, TextEvaluation
from elman.data.catalog.known import info
from elman.data.text.block_reading import Progress
from elman.data.text.corpus import Split, first_words, open_corpus
from elman.data.text.tokeniser import shown
from elman.data.text.vocabulary import EOS, TABLE, Vocabulary
from elman.data.windows import WHOLE, ColumnsOf, EvaluationWindows, Part, Windows, columns_of, start_symbol
from elman.drawing.heat_map import Word
from elman.errors import UserError, command, counted, notice
from elman.evaluation.perplexity import Score, evaluate, evaluate_split, score_of, text_result
from elman.evaluation.result import Result
from elman.evaluation.scoring import score_document, surprisal
from elman.jobs import Advance
from elman.network.encoders.lookup import Lookup
from elman.network.model import LanguageModel
from elman.tasks.samples import Passage, Sample
from elman.tasks.task import Size, Task, write_results
from elman.tasks.text.run import TextRun

UNLIKE, LEAST_UNKNOWN = 3, 0.03
"""Held-out text is remarked on where its share of unknown words is this multiple of the training text's, or .03."""

COLUMNS = {"streams": 64, "length": 70, "warm_up": WARM_UP}
"""How a network is read beside n-grams, in nearly no time."""

_TOKENS = {"shakespeare": 1_200_000, "one-billion-word": 800_000_000}
_CHARACTERS = {"shakespeare": 5_000_000}
_WORDS = {"shakespeare": 27_000}
"""Approximate training tokens and characters, and words of vocabularies, where no count is published."""


class TextTask(Task):
    """A text and its vocabulary; raises UserError where no token of a split that is evaluated would count."""

    kind, run = "text", TextRun
    inputs: Vocabulary

    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None:
        assert isinstance(recipe.data, TextData)
        self.recipe, self.data = recipe, recipe.data
        self.corpus = open_corpus(source, recipe.data.options, progress=progress)
        self.inputs, self.digest, self.source = self.corpus.vocabulary, self.corpus.digest, source
        for split in ("valid", "test"):
            if self.data.evaluation.skip_first and len(self.corpus.split(split).tokens) < 2:
                raise UserError(
                    f"the {split} split of {source} has one token, which data.evaluation.skip_first leaves out: give a"
                    " longer text, or set it to false"
                )

    @classmethod
    def own_source(cls, recipe: Recipe) -> str | None:
        assert isinstance(recipe.data, TextData)
        if recipe.data.grammar is None or recipe.data.corpus is not None:
            return recipe.data.corpus
        from elman.data.grammar.sample import grammar_folder

        return str(grammar_folder(recipe.data.grammar))

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        data = recipe.data
        assert isinstance(data, TextData)
        if data.grammar is not None:
            return Size(7 * data.grammar.sentences, 50)
        corpus = cls.own_corpus(recipe)
        published = info(corpus).published
        if data.tokenisation == "characters":
            tokens, symbols = _CHARACTERS.get(corpus) or published["train"], 100
        else:
            tokens = _TOKENS.get(corpus) or published["train"]
            symbols = _WORDS.get(corpus) or published["vocabulary"]
        return Size(min(tokens, data.train_tokens or tokens), min(symbols, data.max_vocabulary or symbols))

    @classmethod
    def elsewhere(cls, recipe: Recipe, source: str) -> Recipe:
        """The recipe on another text, read as tokenised already where the recipe reads raw text; a grammar is kept."""
        data = recipe.data
        assert isinstance(data, TextData)
        if source == data.corpus or data.grammar is not None:
            return recipe
        tokenisation = "words" if data.tokenisation == "raw" else data.tokenisation
        other = msgspec.structs.replace(data, corpus=source, tokenisation=tokenisation)
        return msgspec.structs.replace(recipe, data=other)

    def recorded_recipe(self) -> Recipe:
        """The recipe as the run folder holds it; a text that the recipe's grammar generates is named by the grammar."""
        if self.data.grammar is None:
            return super().recorded_recipe()
        from elman.data.grammar.sample import grammar_folder

        generated = Path(self.source) == grammar_folder(self.data.grammar).absolute()
        return self._naming(None) if generated else super().recorded_recipe()

    @property
    def first(self) -> int:
        return start_symbol(self.corpus.vocabulary)

    def begin(self, model: LanguageModel) -> None:
        encoder = self.recipe.model.encoder
        if isinstance(encoder, Lookup) and encoder.cooccurrence is not None:
            from elman.tasks.text.vectors import begin_with_cooccurrence

            begin_with_cooccurrence(encoder.cooccurrence, model, self.corpus.split("train").tokens)

    def windows(self, max_extra: int | None) -> Windows:
        tokens, training, grammar = self.corpus.split("train").tokens, self.recipe.training, self.data.grammar
        if not training.memory and (grammar is None or not grammar.stages):
            return columns_of(tokens, training, max_extra, self.recipe.seed)
        from elman.data.starting_small import training_windows

        return training_windows(self.recipe, tokens, Path(self.source), max_extra)

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        tokens, rules = self.corpus.split("valid").tokens, msgspec.structs.asdict(self.data.evaluation)
        return evaluate(model, ColumnsOf(EvaluationWindows(tokens, self.first, **rules), part))

    def write(self, folder: Path) -> None:
        if self.corpus.subwords is not None:
            self.corpus.subwords.save(folder)
        self.corpus.vocabulary.save(folder / TABLE)
        super().write(folder)

    def start_from(self, model: LanguageModel, folder: Path) -> None:
        from elman.tasks.text.warm_start import start_from

        run, words = TextRun(folder), self.corpus.vocabulary.words
        found = start_from(model, words, run)
        if not self.data.spelt:
            kept = f"{found:,} of its {len(run.vocabulary):,} words are kept"
            notice(f"--init {folder.name}: {kept}, and {len(words) - found:,} are added")

    def finish(self, out: Path, device: torch.device, prompts: Sequence[str], advance: Advance) -> list[Result]:
        """results.json from one stream, samples.json, surprisal.json."""
        run, rules = TextRun(out, device), TextEvaluation(streams=1, skip_first=self.data.evaluation.skip_first)

        def evaluated(name: str) -> Result:
            return evaluate_split(run.model, run.split(self.corpus, name), self.first, rules, advance)

        def more() -> dict[str, Any]:
            samples = [sample(run, prompt, seed) for seed, prompt in enumerate(prompts)]
            return {"samples.json": samples, "surprisal.json": self._surprisal(run)}

        return write_results(out, evaluated, more)

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:
        """Unigrams and Kneser-Ney n-grams of the training text."""
        from elman.evaluation.ngram import kneser_ney

        order = order or (8 if self.data.tokenisation in ("characters", "bytes") else 5)
        skip = int(self.data.evaluation.skip_first)
        models = kneser_ney.baselines(self.corpus.split("train").tokens, len(self.corpus.vocabulary), order)
        self._strongest = list(models.items())[-1]
        rows = []
        for name, model in models.items():
            for split in map(self.corpus.split, splits):
                log_probs = model.log_prob(split.tokens, [self.first])[skip:]
                rows.append(text_result(score_of(log_probs), split.counted(skip_first=bool(skip)), name=name))
        return rows

    def remark(self, results: Sequence[Result], baselines: Sequence[Result]) -> str | None:
        """What is said where a baseline is as good as the model; with n-grams a network is often better than alone."""
        found = super().remark(results, baselines)
        ngrams = next((one.name.split()[-1] for one in baselines if one.name and one.name.endswith("-gram")), None)
        if found is None or ngrams is None:
            return found
        return f"{found}; or use both: {command('evaluate', 'RUN', '--mix', ngrams)}, and generate and score alike"

    def mixed(
        self, out: Path, device: torch.device, results: Sequence[Result], baselines: Sequence[Result]
    ) -> list[Result]:
        """Where n-grams are as good as the network, both together, with the weights that the valid split asks for.

        The network reads in many columns, each after 100 tokens that do not count, as `--mix` does with one.
        """
        name, model = self._strongest
        if not name.endswith("-gram") or super().remark(results, baselines) is None:
            return []
        from elman.evaluation.mixture import best_weights
        from elman.tasks.text.ensemble import ensemble_result, member_log_probs

        run, rules = TextRun(out, device), msgspec.structs.replace(self.data.evaluation, **COLUMNS)
        rows, weights = list[Result](), list[float]()
        for split in (run.split(self.corpus, one.split) for one in results):
            members = member_log_probs([run], split, [model], rules)
            weights = weights or best_weights(members)  # the first split is valid
            counts = split.counted(skip_first=rules.skip_first)
            row = ensemble_result(["network", name], members, weights, [{}], counts)
            rows.append(msgspec.structs.replace(row, name=f"with {name}"))
        return rows

    def summary(self) -> list[str]:
        parts = self.corpus.splits.items()
        lines = [
            f"{name:5} {len(split.tokens):>11,} tokens{self._ends(split)}, {split.unknown:,} unknown"
            for name, split in parts
        ]
        lines.append(f"vocabulary {len(self.corpus.vocabulary):,}")
        shares = {name: split.unknown / max(1, len(split.tokens)) for name, split in parts}
        held_out = max(shares.get(name, 0.0) for name in ("valid", "test"))
        if shares["train"] > 0 and held_out > UNLIKE * max(LEAST_UNKNOWN, shares["train"]):
            lines.append(
                f"the held-out text is unlike the training text: {held_out:.0%} of it are unknown words,"
                f" {shares['train']:.0%} in training; hold out text of the same kind for figures that mean something"
            )
        return lines

    def _ends(self, split: Split) -> str:
        """How many of the tokens of a split are ends of lines or paragraphs, in words."""
        end = self.corpus.vocabulary.ids.get(EOS)
        steps = range(0, 0 if end is None else len(split.tokens), 1 << 24)
        ends = sum(int(np.count_nonzero(split.tokens[at : at + (1 << 24)] == end)) for at in steps)
        units = {"raw": "words and marks", "words": "words"}.get(self.corpus.options.tokenisation)
        units = units or self.corpus.options.tokenisation
        of = "paragraphs" if self.corpus.options.eos == "paragraph" else "lines"
        return f" ({len(split.tokens) - ends:,} {units}, {counted(ends, 'end')} of {of})" if ends else ""

    def _surprisal(self, run: TextRun, tokens: int = 120) -> Passage:
        """A passage of the test split with the surprisal of each word."""
        ids = np.asarray(self.corpus.split("test").tokens[:tokens], dtype=np.int64)
        log_probs = next(score_document(run.model, [ids], self.first))
        known = self.corpus.vocabulary.decode(ids)
        try:
            own = first_words(self.corpus, "test", len(ids))
        except (OSError, UserError):  # the text is no longer there
            own = known
        rows = zip(known, own, surprisal(log_probs).round(3).tolist(), strict=True)
        return Passage([Word(word, bits, unknown=word != shown) for shown, word, bits in rows])


def sample(run: TextRun, prompt: str, seed: int, count: int = 120, temperature: float = 0.9) -> Sample:
    words = run.words(prompt, count=count, seed=seed, sampling=Sampling(temperature=temperature))
    return Sample(prompt=prompt, text=shown(words, run.options), temperature=temperature, seed=seed)
