"""The task of pairs of a source and a target."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elman.config.recipe import Recipe
from elman.data.text.block_reading import Progress
from elman.data.windows import WHOLE, Part
from elman.evaluation.ngram import kneser_ney
from elman.evaluation.perplexity import Score, score_of
from elman.evaluation.result import Result, written_by
from elman.evaluation.statistics import estimates
from elman.files import write_atomic
from elman.jobs import Advance
from elman.kinds.pairs.corpus import Pairs, open_pairs, say_held_out
from elman.kinds.pairs.evaluation import evaluate_output, evaluate_pairs, pair_result, target_accuracy
from elman.kinds.pairs.letters import CONTEXTS, aligned, letter_by_letter
from elman.kinds.pairs.measures import measures, references, require_libraries, rules_of
from elman.kinds.pairs.record import PairData
from elman.kinds.pairs.run import PairRun
from elman.kinds.pairs.symbols import PairSymbols
from elman.network.model import LanguageModel
from elman.network.seq2seq import SequenceToSequence
from elman.tasks.samples import Attention, Sample
from elman.tasks.splits import WholeSequences
from elman.tasks.task import Size

SAMPLES = 6  # sources of the test split whose targets a run folder shows

_PAIRS = {
    "tsv": (30_000, 20, 8),
    "parallel": (50_000, 11.4, 8.8),
    "trees": (4_000, 16.5, 45),
    "pronunciations": (110_000, 7.4, 6.4),
}
"""Approximate numbers: training pairs, symbols per source and symbols per target."""
_SEQUENCES = (150_000, 20, 6)
"""The same of programs and pronunciations, whose vocabularies have less than a hundred symbols."""
_GIGAWORD = (3_800_000, 32, 11)  # the same of headlines in subwords, whose recipes do not cut the vocabulary


class PairTask(WholeSequences):
    kind, run, unit, opening, by_tokens = "pairs", PairRun, "pairs", open_pairs, True
    inputs: PairSymbols

    def __init__(self, recipe: Recipe, source: str, progress: Progress | None = None) -> None:
        super().__init__(recipe, source, progress)
        for split in ("valid", "test"):
            say_held_out(self.corpus, self.corpus.split(split))

    def require(self) -> None:
        """Raise UserError as every task of whole sequences does, and where a library of the measures is missing."""
        super().require()
        require_libraries(rules_of(self.data.options))  # better refused now than after training

    @classmethod
    def nominal_size(cls, recipe: Recipe) -> Size:
        data = recipe.data
        assert isinstance(data, PairData)
        few = data.form == "trees" or data.measures == "sequences"
        whole = data.form == "tsv" and data.max_vocabulary is None
        usual = _SEQUENCES if data.measures == "sequences" else _GIGAWORD if whole else _PAIRS[data.form]
        pairs, of_source, of_target = usual
        pairs = min(pairs, data.train_pairs or pairs)
        words = 100 if few else data.max_vocabulary or 5_000
        return Size(round(pairs * of_target), words, round(pairs * of_source))

    def validate(self, model: LanguageModel, part: Part = WHOLE) -> Score:
        assert isinstance(model, SequenceToSequence)
        return evaluate_pairs(model, self.corpus, self.corpus.split("valid"), part)

    def result(self, run: PairRun, name: str, advance: Advance) -> Result:
        """The result over whole pairs; of the test split also output-test.txt and its quality."""
        split = self.corpus.split(name)
        score = evaluate_pairs(run.model, self.corpus, split, advance=advance)
        accuracy = target_accuracy(run.model, self.corpus, split)
        if name != "test":
            return pair_result(score, accuracy, split)
        lines, quality = evaluate_output(run.model, self.corpus, split, self.data.evaluation, advance)
        for what, texts in (("output", lines), ("reference", references(split, self.corpus.symbols))):
            write_atomic(run.path / f"{what}-test.txt", "".join(f"{line}\n" for line in texts))
        return pair_result(score, accuracy, split, quality)

    def baselines(self, order: int | None, splits: Sequence[str]) -> list[Result]:
        """Models of the targets alone, which read no source; of sequences also what is written letter by letter."""
        options, train, rows = self.data.options, self.corpus.split("train"), []
        models = kneser_ney.baselines(self._stream(train), len(self.inputs), order or 5)
        for name, model in models.items():
            for split in map(self.corpus.split, splits):
                score = score_of(model.log_prob(self._stream(split), [self._end]))
                rows.append(score.result(split.name, name=f"{name} of targets"))
        if rules_of(options).kind == "sequences":
            letters = aligned(self.corpus)
            for split in map(self.corpus.split, splits):
                right = references(split, self.inputs)
                for name, contexts in {"each letter by itself": CONTEXTS[-1:], "letters in context": CONTEXTS}.items():
                    lines = letter_by_letter(letters, self.corpus, split, contexts=contexts)
                    found = estimates(measures(lines, right, rules_of(options), split.source_text))
                    rows.append(written_by(name, split.name, len(split), found))
        return rows

    def _stream(self, pairs: Pairs) -> npt.NDArray[np.int64]:
        """The targets of a split one after another, each with its end."""
        return np.insert(pairs.target.symbols.astype(np.int64), pairs.target.ends, self._end)

    @property
    def _end(self) -> int:
        assert self.inputs.target.eos is not None
        return self.inputs.target.eos

    def summary(self) -> list[str]:
        lines = [
            f"{name:5} {len(pairs):>9,} pairs, {pairs.facts['source_symbols']:,} source and"
            f" {pairs.facts['tokens']:,} target symbols"
            for name, pairs in self.corpus.splits.items()
        ]
        return [*lines, f"vocabularies {len(self.inputs.source):,} and {len(self.inputs):,}"]

    def samples(self, run: PairRun, count: int) -> list[Sample]:  # noqa: ARG002 - the same for all
        pairs, limit, symbols = self.corpus.split("test"), self.data.max_source, self.corpus.symbols
        shown = [
            place
            for place, ids in enumerate(pairs.source)
            if len(symbols.tokenisers.source_words(pairs.source_text[place])) <= limit
            and set(ids.tolist()) != {symbols.source.unk}
        ][:SAMPLES]
        found = run.translate([pairs.source_text[place] for place in shown])
        return [
            Sample(
                prompt=pairs.source_text[place],
                reference=pairs.target_text[place],
                text=best.text,
                attention=Attention(best.source, [*best.words, "<eos>"], best.attention.astype(float).round(3).tolist())
                if run.model.attends
                else None,
            )
            for place, (best, *_) in zip(shown, found, strict=True)
        ]
