"""Answers of a run on pairs: the targets of a source, and where each of their words looked."""

import math

from elman.config.inference import Beam
from elman.errors import UserError
from elman.kinds.pairs.run import PairRun
from elman.serve import answers, questions
from elman.serve.limits import Limits
from elman.serve.service import Service
from elman.serve.tabs import Tab
from elman.serve.worker import Work

LONGEST_TARGET = 200  # symbols of a target at most, so that a search ends soon


class PairService(Service[PairRun]):
    """A run on pairs of a source and a target."""

    kind, static = "pairs", "elman.kinds.pairs.static:write_pairs"

    def __init__(self, name: str, run: PairRun, limits: Limits) -> None:
        super().__init__(name, run, limits)
        self.answers = {"translate": self.translate}

    def facts(self) -> answers.RunFacts:
        panels = [*self.answers, *(["attention"] if self.run.recipe.model.attends else [])]
        size, tokenisation = len(self.run.inputs.target), self.run.options.tokenisation
        return self._facts(size, panels=panels, tokenisation=tokenisation)

    def longest(self, length: int) -> int:
        """The most symbols of a target for a source of `length` symbols."""
        return min(LONGEST_TARGET, 2 * length + 10, self.run.options.max_target)

    def translate(self, question: questions.Translate, tab: Tab) -> Work[answers.Translated]:  # noqa: ARG002
        line = " ".join(question.text.split())
        size = max(question.beam, question.targets)
        longest = self.longest(len(self.run.inputs.tokenisers.source_words(line)))
        beam = Beam(size=size, nbest=question.targets, max_length=longest)
        try:
            (found,) = self.run.translate([line], beam, name="the source")
        except UserError as error:  # what is being written may be too long, or unknown so far
            return answers.Translated(source=[], targets=[], note=str(error))
        yield
        targets = [
            answers.Target(
                text=one.text,
                words=one.words,
                bits=-one.log_prob / math.log(2),
                attention=one.attention.round(4).tolist() if self.run.recipe.model.attends else [],
            )
            for one in found
        ]
        return answers.Translated(source=found[0].source if found else [], targets=targets)
