"""Options of dynamic evaluation and the cache, and the commands' share in them."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elman.cli import options, show, states
from elman.errors import UserError

if TYPE_CHECKING:
    import torch

    from elman.evaluation.adaptive_stream import AdaptiveStream
    from elman.evaluation.dynamic import Rule, Statistics
    from elman.network.model import LanguageModel
    from elman.tasks.adaptation import Method
    from elman.tasks.run import Run
    from elman.tasks.text.run import TextRun

METHODS = ("static", "dynamic", "cache", "dynamic+cache")

RULE = ("rule", "segment", "lr", "decay", "eps", "statistics_tokens")
CACHE = ("cache_weight", "cache_theta", "cache_window")
TUNING = ("tune_tokens", "jobs")


def add_methods(parser: argparse.ArgumentParser) -> None:
    """--method and what belongs to it."""
    parser.add_argument(
        "--method", choices=METHODS, default="static", help="adapt to what was just read (default: static, not at all)"
    )
    group = _add_rule(parser, "adaptation")
    group.add_argument("--cache-weight", type=float, metavar="P", help="the cache's share (default: 0.1)")
    group.add_argument("--cache-theta", type=float, metavar="T", help="how much similarity counts (default: 1)")
    group.add_argument("--cache-window", type=int, metavar="N", help="positions in the cache (default: 500)")
    group.add_argument("--tune", action="store_true", help="take the settings that are best on the valid split")
    group.add_argument("--tune-tokens", type=int, metavar="N", help="tune on its first N tokens (default: 10000)")
    group.add_argument("--jobs", type=int, metavar="N", help="tune N settings at a time (default: 1)")


def add_online(parser: argparse.ArgumentParser, what: str) -> None:
    """--adapt and the options of the rule."""
    parser.add_argument("--adapt", action="store_true", help=f"go on learning from {what}")
    _add_rule(parser, "adaptation, with --adapt")


def require_adapt(args: argparse.Namespace, *others: str) -> None:
    """Raises UserError where options that belong to --adapt stand without it."""
    if not args.adapt:
        _refuse(args, (*RULE, *others), "--adapt; add it")


def begin(
    args: argparse.Namespace, loaded: "TextRun", saved: "states.Saved | None", model: "LanguageModel"
) -> "AdaptiveStream":
    """The stream of --adapt, from its beginning or from a state file; `model` knows the text's words."""
    from elman.evaluation.adaptive_stream import saved_rule
    from elman.tasks.adaptation import adaptive_reading

    facts = {} if saved is None else saved.facts
    if saved is not None and facts.get("statistics_tokens", args.statistics_tokens) != args.statistics_tokens:
        before = facts["statistics_tokens"]
        right = "leave --statistics-tokens out" if before is None else f"give --statistics-tokens {before}"
        raise UserError(f"{saved.path}: the stream adapts by other gradient statistics; {right}")
    given = any(getattr(args, name) is not None for name in RULE[:-1])
    rule = saved_rule(facts, _rule(args) if given else None, _rule(args))
    kept = None if saved is None else (saved.tensors, facts)
    return adaptive_reading(loaded, rule, kept, _statistics(args, loaded, rule), model)


def require_method(args: argparse.Namespace) -> None:
    """Raises UserError where options do not belong to the method."""
    if "dynamic" not in args.method:
        _refuse(args, RULE, "--method dynamic")
    if "cache" not in args.method:
        _refuse(args, CACHE, "--method cache")
    if not args.tune:
        _refuse(args, TUNING, "--tune; add it")
    if args.method == "static":
        if args.tune:
            raise UserError("--tune needs something to tune; give --method dynamic, cache or dynamic+cache")
        return
    if args.ensemble or args.streams != 1 or args.warm_up:
        raise UserError(
            f"--method {args.method} reads one stream with one model; leave out --ensemble, --streams and --warm-up"
        )
    if args.tune:
        _refuse(args, ("lr", "decay", *CACHE), "settings without --tune, which chooses them; leave one out")
    for name in ("statistics_tokens", "tune_tokens", "jobs"):
        options.at_least(1, f"--{name.replace('_', '-')}", getattr(args, name))


def evaluate(folder: Path, args: argparse.Namespace, device: "torch.device") -> dict[str, Any]:
    """The row of a run under a method; on the run's own text, read as ever, it is kept in results.json."""
    from elman.tasks.adaptation import Method, method_figures, record
    from elman.tasks.open import open_run
    from elman.tasks.run import EvaluationOptions

    method = Method(
        rule=_rule(args) if "dynamic" in args.method else None,
        cache=_cache(args) if "cache" in args.method else None,
    )
    loaded = open_run(folder, device)
    how = EvaluationOptions(
        split=args.split, data=args.data, skip_first=args.skip_first, unknown_as_unk=args.unknown_as_unk
    )
    source = loaded.adaptation_source(how)
    gradients = _statistics(args, loaded, method.rule)
    if args.tune:
        method = _tuned(args, loaded, method)
    with show.counting(f"evaluating {folder}") as advance:
        row = method_figures(source, method, gradients, advance)
    if args.data is None and not args.unknown_as_unk:
        record(loaded, row)
    return {"run": str(folder), "data": source.data, **row}


def _tuned(args: argparse.Namespace, loaded: "Run", method: "Method") -> "Method":
    from elman.tasks.tuning import TOKENS, Tuning

    with show.bar("valid ppl {task.fields[best]:.2f}") as shown:
        task = shown.add_task("tuning", total=None, best=float("nan"))

        def told(done: int, total: int, best: float) -> None:
            shown.update(task, completed=done, total=total, best=best)

        tokens = args.tune_tokens or TOKENS
        return Tuning(loaded, tokens, args.statistics_tokens, jobs=args.jobs or 1, progress=told).best(method)


def _statistics(args: argparse.Namespace, loaded: "Run", rule: "Rule | None") -> "Statistics | None":
    from elman.tasks.adaptation import statistics

    options.at_least(1, "--statistics-tokens", args.statistics_tokens)
    if rule is None or rule.kind != "rms":
        return None
    with show.counting("gradient statistics") as advance:
        return statistics(loaded, args.statistics_tokens, advance)


def _rule(args: argparse.Namespace) -> "Rule":
    from elman.evaluation.dynamic import DEFAULTS

    if args.rule == "sgd":
        _refuse(args, ("eps", "statistics_tokens"), "--rule rms")
    rule = DEFAULTS[args.rule or "rms"]
    given = {name: getattr(args, name) for name in ("segment", "lr", "decay", "eps")}
    return _with(rule, given)


def _cache(args: argparse.Namespace) -> Any:
    from elman.evaluation.cache import CacheRule

    return _with(CacheRule(), {name.removeprefix("cache_"): getattr(args, name) for name in CACHE})


def _with(settings: Any, given: dict[str, Any]) -> Any:
    import msgspec

    settings = msgspec.structs.replace(settings, **{key: value for key, value in given.items() if value is not None})
    settings.check()
    return settings


def _add_rule(parser: argparse.ArgumentParser, title: str) -> "argparse._ArgumentGroup":
    group = parser.add_argument_group(title)
    group.add_argument("--rule", choices=["rms", "sgd"], help="how weights follow the gradient (default: rms)")
    group.add_argument("--segment", type=int, metavar="N", help="tokens between two updates (default: 5)")
    group.add_argument("--lr", type=float, metavar="R", help="learning rate (default: 5e-5; sgd: 0.1)")
    group.add_argument("--decay", type=float, metavar="L", help="return to the trained weights (default: 2e-3; sgd: 0)")
    group.add_argument("--eps", type=float, metavar="E", help="of the rule rms (default: 2e-5)")
    group.add_argument(
        "--statistics-tokens", type=int, metavar="N", help="training tokens for gradient statistics (default: all)"
    )
    return group


def _refuse(args: argparse.Namespace, names: tuple[str, ...], to: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise UserError(f"--{name.replace('_', '-')} belongs to {to}")
