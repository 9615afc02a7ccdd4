"""Tuning of dynamic evaluation and the cache over grids, on the beginning of the validation text.

Every point's result is kept in RUN/tuning.json, so that interrupted tuning resumes where it stopped.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import torch

from elman.config.inference import CacheRule, Rule
from elman.errors import UserError
from elman.evaluation.dynamic import NeuralCache, Statistics
from elman.files import write_atomic
from elman.formats import read_json
from elman.jobs import processes
from elman.jobs.locks import waiting_for
from elman.learning.checkpoint import digest_of, model_tensors
from elman.network.fast import precision
from elman.tasks.adaptation import Method, is_writable, method_figures, reader, statistics
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.open import open_run
from elman.tasks.run import Run

RATES = {
    "rms": (tuple(rate * 1e-5 for rate in (3, 4, 5, 6, 7, 10)), (1e-3, 2e-3, 3e-3, 5e-3)),
    "sgd": ((0.03, 0.1, 0.3, 1.0), (0.0, 1e-3, 1e-2)),
}
"""Learning rates and decays; "rms" has the grid of the thesis, section 4.4.1."""

STRIDE, STRIDES = 1.5, 8
"""A best point at the border of the grid is followed outwards: the factor of a step, and the most steps."""

CACHES = ((0.05, 0.1, 0.15, 0.2, 0.3), (0.05, 0.1, 0.2, 0.4, 0.7, 1.0), (500, 2000))
"""Weights, thetas and windows of the cache."""


def beyond(rule: Rule, rates: Sequence[float], decays: Sequence[float]) -> list[Rule]:
    """The points one stride outwards from a rule at the border of the grid or beyond it; none from inside."""
    points = (
        (rule.lr >= max(rates), {"lr": rule.lr * STRIDE}),
        (rule.lr <= min(rates), {"lr": rule.lr / STRIDE}),
        (rule.decay >= max(decays), {"decay": rule.decay * STRIDE}),
        (0 < rule.decay <= min(decays), {"decay": rule.decay / STRIDE}),
    )
    return [msgspec.structs.replace(rule, **change) for outside, change in points if outside]


TOKENS = 10_000  # tokens of the validation text that are read
Progress = Callable[[int, int, float], None]  # called with (points done, points in all, best perplexity)


@dataclasses.dataclass
class Tuning:
    """Tuning of one run on the first `tokens` tokens of its validation text, or steps of its first pieces.

    `statistics_tokens` is as for `elman.tasks.adaptation.statistics`; `jobs` processes work side by side, and 1 stays
    in this one; `progress` is called after every point.
    """

    run: Run
    tokens: int = TOKENS
    statistics_tokens: int | None = None
    jobs: int = 1
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.split = self.run.adaptation_source(EvaluationOptions(split="valid")).beginning(self.tokens)
        self.path = self.run.path / "tuning.json"
        self.kept = _kept(self.path)
        products = {} if precision.chosen() == "float32" else {"precision": precision.chosen()}
        self.facts = {"model": digest_of(model_tensors(self.run.model)), **self.split.facts, **products}

    def best(self, method: Method) -> Method:
        """The best settings: first of the rule, then, with that rule, of the cache."""
        method.check(self.split)
        rule = None if method.rule is None else self._best_rule(method.rule)
        return Method(rule=rule, cache=None if method.cache is None else self._best_cache(rule))

    def _best_rule(self, rule: Rule) -> Rule:
        rates, decays = RATES[rule.kind]
        grid = [msgspec.structs.replace(rule, lr=lr, decay=decay) for lr, decay in product(rates, decays)]
        best = self._best_of(grid)
        for _ in range(STRIDES):
            further = beyond(best, rates, decays)
            if not further or (found := self._best_of([best, *further])) == best:
                break
            best = found
        return best

    def _best_of(self, rules: Sequence[Rule]) -> Rule:
        methods = [Method(rule=rule) for rule in rules]
        missing = [method for method in methods if self._found(method) is None]
        self._tell(methods)
        for method, nll in self._nlls(missing):
            self._keep(method, nll)
            self._write()
            self._tell(methods)
        best = self._least(methods).rule
        assert best is not None
        return best

    def _nlls(self, methods: Sequence[Method]) -> Iterator[tuple[Method, float]]:
        if not methods:
            return
        gradients = self._statistics(methods[0].rule)
        if self.jobs == 1:
            yield from ((method, method_figures(self.split, method, gradients).nll) for method in methods)
            return
        threads = max(1, torch.get_num_threads() // self.jobs)
        given = (self.run.path, str(self.run.device), self.tokens, self.statistics_tokens, threads)
        with processes(self.jobs, precision.use, precision.chosen()) as pool:
            futures = {pool.submit(_nll_elsewhere, *given, method): method for method in methods}
            for future in as_completed(futures):
                yield futures[future], future.result()

    def _statistics(self, rule: Rule | None) -> Statistics | None:
        return statistics(self.run, self.statistics_tokens) if rule is not None and rule.kind == "rms" else None

    def _best_cache(self, rule: Rule | None) -> CacheRule:
        grid = [CacheRule(weight=w, theta=theta, window=window) for w, theta, window in product(*CACHES)]
        methods = [Method(rule=rule, cache=cache) for cache in grid]
        missing = [method for method in methods if self._found(method) is None]
        if missing:
            # One pass of the model serves all points: what the cache needs of it is kept, the text being short.
            pieces = self._traced(rule)
            for method in missing:
                assert method.cache is not None
                mixed = NeuralCache(method.cache).read(*pieces)
                self._keep(method, -mixed.cpu().double().mean().item())
                self._tell(methods)
            self._write()
        return self._least(methods).cache or CacheRule()

    def _traced(self, rule: Rule | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Log-probabilities [n], last levels [n, D] and symbols [n] of the text."""
        model, windows = self.split.column(Method(rule=rule).segment)
        read, state = reader(model, rule, self._statistics(rule)), model.begin(1)
        pieces = []
        for batch, _ in windows:
            batch = batch.to(self.run.device)
            log_prob, hidden, state = read(batch.inputs, batch.targets, state)
            pieces.append((log_prob[:, 0], hidden[:, 0], batch.targets[:, 0]))
        log_prob, hidden, symbols = (torch.cat(parts) for parts in zip(*pieces, strict=True))
        return log_prob, hidden, symbols

    def _key(self, method: Method) -> str:
        by_rms = method.rule is not None and method.rule.kind == "rms"
        facts = self.facts | ({"statistics_tokens": self.statistics_tokens} if by_rms else {})
        return json.dumps(facts | msgspec.to_builtins(method), sort_keys=True)

    def _found(self, method: Method) -> float | None:
        return self.kept.get(self._key(method))

    def _keep(self, method: Method, nll: float) -> None:
        self.kept[self._key(method)] = nll if math.isfinite(nll) else math.inf

    def _write(self) -> None:
        if not is_writable(self.run.path):
            return
        with waiting_for(self.path):
            self.kept = _kept(self.path) | self.kept
            rows = [
                json.loads(key) | {"nll": nll if math.isfinite(nll) else "diverged"} for key, nll in self.kept.items()
            ]
            write_atomic(self.path, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")

    def _least(self, methods: Sequence[Method]) -> Method:
        best = min(methods, key=lambda method: self.kept[self._key(method)])
        if math.isinf(self.kept[self._key(best)]):
            raise UserError(f"{self.path}: dynamic evaluation diverged at every point of the grid; try another --rule")
        return best

    def _tell(self, methods: Sequence[Method]) -> None:
        found = [nll for nll in map(self._found, methods) if nll is not None]
        if self.progress is not None:
            self.progress(len(found), len(methods), math.exp(min(found)) if found and min(found) < 700 else math.inf)


def _nll_elsewhere(
    path: Path, device: str, tokens: int, statistics_tokens: int | None, threads: int, method: Method
) -> float:
    torch.set_num_threads(threads)
    return next(Tuning(open_run(path, device), tokens, statistics_tokens)._nlls([method]))[1]


def _kept(path: Path) -> dict[str, float]:
    """NLL by point, as the file holds them; raises UserError for a file of another form."""
    try:
        rows = read_json(path, list[dict[str, Any]]) if path.is_file() else []
        nlls = [float("inf" if row["nll"] == "diverged" else row["nll"]) for row in rows]
        points = [{name: value for name, value in row.items() if name != "nll"} for row in rows]
        return {json.dumps(point, sort_keys=True): nll for point, nll in zip(points, nlls, strict=True)}
    except (UserError, ValueError, KeyError, TypeError):
        raise UserError(f"{path}: damaged; remove it to tune again") from None
