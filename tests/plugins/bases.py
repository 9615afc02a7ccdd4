"""A kind of data for the tests of plug-ins: DNA, a file of the letters A, C, G and T, its parts taken in order."""

import hashlib
from pathlib import Path
from typing import ClassVar

import msgspec
import numpy as np

from elman.config.data import Data
from elman.config.record import Positive, Record, Reporting, restricted
from elman.data.windows import WHOLE, ColumnsOf, EvaluationWindows, TrainingWindows
from elman.errors import UserError
from elman.evaluation.perplexity import evaluate
from elman.network.build import build_model
from elman.tasks.evaluating import DEFAULT, AdaptationSource
from elman.tasks.run import Run
from elman.tasks.task import Size, Task, copy_weights, write_results


class Options(Record, frozen=True, kw_only=True):
    letters: str = "ACGT"


class Bases(Options, Data, frozen=True, kw_only=True, tag_field="kind", tag="bases"):
    encoders: ClassVar[tuple[str, ...]] = ("lookup",)
    command: ClassVar[str] = "evaluate"
    reporting: ClassVar[Reporting] = Reporting("perplexity", "perplexity", "base", "Exp of nats per base.", None, ())
    task: ClassVar[str] = f"{__name__}:BasesTask"
    corpus: str | None = None
    digest: str | None = None
    streams: Positive = 2

    @property
    def options(self):
        return restricted(self, Options)


class Letters(msgspec.Struct):
    letters: str

    def __len__(self):
        return len(self.letters)

    @property
    def digest(self):
        return hashlib.sha256(self.letters.encode()).hexdigest()


class Corpus:
    def __init__(self, source, options):
        self.source, self.letters = str(source), Letters(options.letters)
        text = "".join(Path(source).read_text().split())
        if other := set(text) - set(options.letters):
            raise UserError(f"{source}: {sorted(other)[0]!r} is none of the bases {options.letters}")
        ids = np.array([options.letters.index(one) for one in text], dtype=np.int32)
        self.digest = hashlib.sha256(ids.tobytes()).hexdigest()
        cuts = (8 * len(ids) // 10, 9 * len(ids) // 10)
        self.splits = dict(zip(("train", "valid", "test"), np.split(ids, cuts), strict=True))

    def describe(self):
        splits = {name: {"tokens": len(ids)} for name, ids in self.splits.items()}
        facts = {"letters": self.letters.letters, "splits": splits}
        return {"name": Path(self.source).stem, "source": self.source, "digest": self.digest, **facts}


class BasesRun(Run):
    kind = "bases"

    def __init__(self, path, device="cpu"):
        super().__init__(path, device)
        self.inputs = Letters(self.facts["letters"])

    def corpus(self, data=None):
        return self.opened(data, lambda source: Corpus(source, self.recipe.data.options))

    @staticmethod
    def build(recipe, inputs):
        return build_model(recipe.model, len(inputs))

    def evaluate(self, options=DEFAULT, advance=None):
        options.require(self.kind, "streams")
        corpus = self.corpus(options.data)
        windows = EvaluationWindows(corpus.splits[options.split], 0, streams=options.streams or 1)
        score = evaluate(self.model, windows, advance)
        return score.result(options.split, context="carried", method="static", data=corpus.source)

    def adaptation_source(self, options=DEFAULT) -> AdaptationSource:
        raise UserError("runs on bases do not adapt; use --method static")


class BasesTask(Task):
    kind, run = "bases", BasesRun

    def __init__(self, recipe, source, progress=None):
        self.recipe, self.source = recipe, source
        self.corpus = Corpus(source, recipe.data.options)
        self.inputs, self.digest = self.corpus.letters, self.corpus.digest

    @classmethod
    def nominal_size(cls, recipe):
        return Size(1000, 4)

    def windows(self, max_extra):
        training = self.recipe.training
        rules = msgspec.structs.asdict(training.window) | {"max_extra": max_extra, "seed": self.recipe.seed}
        return TrainingWindows(self.corpus.splits["train"], training.batch_size, **rules)

    def validate(self, model, part=WHOLE):
        windows = EvaluationWindows(self.corpus.splits["valid"], 0, streams=self.recipe.data.streams)
        return evaluate(model, ColumnsOf(windows, part))

    def start_from(self, model, folder):
        copy_weights(model, BasesRun(folder), "the same model section")

    def finish(self, out, device, prompts, advance):
        run = BasesRun(out, device)

        def evaluated(name):
            return run.evaluate(msgspec.structs.replace(DEFAULT, split=name), advance)

        return write_results(out, evaluated, dict)

    def summary(self):
        return [f"{name:5} {len(ids):,} bases" for name, ids in self.corpus.splits.items()]


ELMAN = {"tasks": [Bases]}
