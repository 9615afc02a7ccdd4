"""Options of dynamic evaluation, the cache and Monte Carlo dropout: how `evaluate`, `generate` and `score` use them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from cyclopts import Parameter

from elman.cli import progress, states
from elman.cli.options import Positive, given, group, option, record_of, refuse
from elman.config.inference import RULES, CacheRule, DropoutSampling, Rule
from elman.config.text import TextEvaluation
from elman.errors import UserError, notice
from elman.evaluation.result import Result
from elman.network.fast import precision
from elman.tasks.evaluating import EvaluationOptions

if TYPE_CHECKING:
    import numpy as np

    from elman.data.text.corpus import Split
    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.dynamic import Statistics
    from elman.network.model import LanguageModel
    from elman.tasks.adaptation import Method
    from elman.tasks.run import Run
    from elman.tasks.text.ensemble import NetworkReader
    from elman.tasks.text.run import TextRun

Facts: TypeAlias = dict[str, Any]


@group("Adaptation", 4)
class RuleOptions:
    """How weights follow the text that was just read."""

    rule: Annotated[Literal["rms", "sgd"] | None, option("kind", *RULES.values())] = None
    segment: Annotated[int | None, option("segment", *RULES.values())] = None
    lr: Annotated[float | None, option("lr", *RULES.values())] = None
    decay: Annotated[float | None, option("decay", *RULES.values())] = None
    eps: Annotated[float | None, option("eps", *RULES.values())] = None
    statistics_tokens: Annotated[
        Positive | None, Parameter(help="training tokens for gradient statistics (default: all)")
    ] = None

    def record(self) -> Rule:
        """The rule; raises UserError where an option does not belong to it."""
        if self.rule == "sgd":
            refuse([name for name in ("--eps", "--statistics-tokens") if name in given(self)], "belongs to --rule rms")
        return record_of(RULES[self.rule or "rms"], self)

    def statistics(self, loaded: "Run", rule: Rule | None) -> "Statistics | None":
        """The gradient statistics that a rule needs."""
        from elman.tasks.adaptation import is_writable, statistics

        if rule is None or rule.kind != "rms":
            return None
        part = "" if self.statistics_tokens is None else f"the first {self.statistics_tokens:,} tokens of "
        line = f"gradient statistics of {part}the training data are computed"
        line += f" once and kept in {loaded.path}" if is_writable(loaded.path) else ""
        with progress.counting("gradient statistics", line) as advance:
            return statistics(loaded, self.statistics_tokens, advance)

    def stream(self, loaded: "TextRun", saved: states.Saved | None, model: "LanguageModel") -> "AdaptiveStream":
        """The stream of --adapt, from its beginning or from a state file; `model` knows the text's words."""
        from elman.evaluation.adaptive_stream import saved_rule
        from elman.tasks.adaptation import adaptive_reading

        facts = {} if saved is None else saved.facts
        if saved is not None and facts.get("statistics_tokens", self.statistics_tokens) != self.statistics_tokens:
            before = facts["statistics_tokens"]
            right = "leave --statistics-tokens out" if before is None else f"give --statistics-tokens {before}"
            raise UserError(f"{saved.path}: the stream adapts by other gradient statistics; {right}")
        asked = given(self).keys() - {"--adapt", "--statistics-tokens"}
        rule = saved_rule(facts, self.record() if asked else None, self.record())
        kept = None if saved is None else (saved.tensors, facts)
        return adaptive_reading(loaded, rule, kept, self.statistics(loaded, rule), model)


@group("Adaptation", 4)
class OnlineOptions(RuleOptions):
    """Adaptation to one text.

    Attributes:
        adapt: continue to learn from the text (dynamic evaluation).
    """

    adapt: bool = False

    def check(self) -> None:
        """Raises UserError where options of the rule stand without --adapt."""
        if not self.adapt:
            refuse(given(self), "belongs to --adapt; add it")


@group("Adaptation", 4)
class MethodOptions(RuleOptions):
    """How a split is evaluated.

    Attributes:
        method: adapt to what was just read (dynamic, cache), average over masks of dropout (mc-dropout), or neither
            (static).
        tune: choose the settings that are best on the valid split.
        tune_tokens: tune on its first tokens (default: 10000).
        jobs: settings tuned in parallel (default: 1).
    """

    method: Literal["static", "dynamic", "cache", "dynamic+cache", "mc-dropout"] = "static"
    cache_weight: Annotated[float | None, option("weight", CacheRule())] = None
    cache_theta: Annotated[float | None, option("theta", CacheRule())] = None
    cache_window: Annotated[int | None, option("window", CacheRule())] = None
    samples: Annotated[int | None, option("samples", DropoutSampling())] = None
    seed: Annotated[int | None, option("seed", DropoutSampling())] = None
    tune: Annotated[bool, Parameter(show_default=False)] = False
    tune_tokens: Positive | None = None
    jobs: Positive | None = None

    def check(self) -> None:
        """Raises UserError where options do not belong to the method."""
        asked = given(self)
        cache = [name for name in asked if name.startswith("--cache-")]
        tuning = [name for name in ("--tune-tokens", "--jobs") if name in asked]
        sampling = [name for name in ("--samples", "--seed") if name in asked]
        rule = [name for name in asked if name not in (*cache, *tuning, *sampling, "--method", "--tune")]
        if "dynamic" not in self.method:
            refuse(rule, "belongs to --method dynamic")
        if "cache" not in self.method:
            refuse(cache, "belongs to --method cache")
        if self.method != "mc-dropout":
            refuse(sampling, "belongs to --method mc-dropout")
        if not self.tune:
            refuse(tuning, "belongs to --tune; add it")
        elif self.method in ("static", "mc-dropout"):
            raise UserError("--tune needs something to tune; give --method dynamic, cache or dynamic+cache")
        else:
            chosen = [name for name in asked if name in ("--lr", "--decay", *cache)]
            refuse(chosen, "is chosen by --tune; leave one of the two out")

    def evaluate(self, loaded: "Run", options: EvaluationOptions) -> Result:
        """The result of a run under the method; of its own data, read as usual, it is kept in results.json."""
        from elman.evaluation.dynamic import BEYOND, DIVERGED
        from elman.tasks.adaptation import method_figures

        if self.method == "static":
            with progress.counting(f"evaluating {loaded.path}") as advance:
                return msgspec.structs.replace(loaded.evaluate(options, advance), run=str(loaded.path))
        if self.method == "mc-dropout":
            return self._sampled(loaded, options)
        source, method = loaded.adaptation_source(options), self._method()
        method.check(source)
        self._say_tuned(options.split, own=options.data is None)
        method, gradients = self._settled(loaded, method)
        with progress.counting(f"evaluating {loaded.path}") as advance:
            result = method_figures(source, method, gradients, advance)
        if not result.nll < BEYOND:
            raise UserError(DIVERGED)
        return _kept(loaded, source.data, result, options, self._others(gradients))

    def networks(self, runs: "Sequence[TextRun]", split: str, *, own: bool) -> "tuple[NetworkReader, list[Facts]]":
        """How the networks of an ensemble read a split, each adapting by itself, and the method and settings of each.

        `own`: whether the data belong to the first run.
        """
        from elman.tasks.adaptation import method_log_probs
        from elman.tasks.text.ensemble import run_log_probs

        adapts = self.method != "static"
        self._say_tuned(split, own=own)
        settled = {run.path: self._settled(run, self._method()) for run in runs if adapts}

        def read(run: "TextRun", split: "Split", rules: TextEvaluation) -> "np.ndarray":
            with progress.counting(f"evaluating {run.path}, {split.name}") as advance:
                if not adapts:
                    return run_log_probs(run, split, rules, advance)
                source = run.source_of(split, run.source, skip_first=rules.skip_first)
                return method_log_probs(source, *settled[run.path], advance)

        def facts(method: "Method", gradients: "Statistics | None") -> Facts:
            return {"method": method.name, "settings": {**msgspec.to_builtins(method), **self._others(gradients)}}

        return read, [facts(*settled[run.path]) if adapts else {} for run in runs]

    def _method(self) -> "Method":
        from elman.tasks.adaptation import Method

        return Method(
            rule=self.record() if "dynamic" in self.method else None,
            cache=record_of(CacheRule(), self) if "cache" in self.method else None,
        )

    def _say_tuned(self, split: str, *, own: bool) -> None:
        if self.tune and split == "valid" and own:
            notice("the settings are tuned on the beginning of the split that is evaluated; --split test is held out")

    def _settled(self, loaded: "Run", method: "Method") -> "tuple[Method, Statistics | None]":
        """The method, tuned where that is asked for, and the gradient statistics that it needs."""
        gradients = self.statistics(loaded, method.rule)
        return (self._tuned(loaded, method) if self.tune else method), gradients

    def _others(self, gradients: "Statistics | None" = None) -> Facts:
        """Settings outside the method that differ from what is usual."""
        part = gradients is not None and self.statistics_tokens is not None
        found = {"statistics_tokens": self.statistics_tokens} if part else {}
        return found if precision.chosen() == "float32" else {**found, "precision": precision.chosen()}

    def _sampled(self, loaded: "Run", options: EvaluationOptions) -> Result:
        from elman.tasks.adaptation import dropout_figures

        sampling = record_of(DropoutSampling(), self)
        source = loaded.adaptation_source(options)
        with progress.counting(f"evaluating {loaded.path}, {sampling.samples} passes") as advance:
            result = dropout_figures(loaded, source, sampling, advance)
        return _kept(loaded, source.data, result, options, self._others())

    def _tuned(self, loaded: "Run", method: "Method") -> "Method":
        from elman.tasks.tuning import TOKENS, Tuning

        with progress.bar("valid ppl {task.fields[best]:.2f}") as shown:
            task = shown.add_task("tuning", total=None, best=float("nan"))

            def advance(done: int, total: int, best: float) -> None:
                shown.update(task, completed=done, total=total, best=best)

            tokens = self.tune_tokens or TOKENS
            tuning = Tuning(loaded, tokens, self.statistics_tokens, jobs=self.jobs or 1, progress=advance)
            return tuning.best(method)


def _kept(loaded: "Run", data: str, result: Result, options: EvaluationOptions, others: Facts) -> Result:
    """The result with its other settings too; of the run's own data, read as usual, it is kept in results.json."""
    from elman.tasks.adaptation import record

    result = msgspec.structs.replace(result, settings={**(result.settings or {}), **others})
    if options.data is None and not options.unknown_as_unk:
        record(loaded, result)
    return msgspec.structs.replace(result, run=str(loaded.path), data=data)
