"""What is planned before anything is trained: a file of plans, each with its digest and what was known when."""

from datetime import UTC, datetime
from typing import Any

import msgspec

import elman
from elman.errors import command, counted
from elman.files import canonical_json, finite, json_text, sha256_lines, write_atomic
from elman.formats import read_json
from elman.study.claim import Claim, Computation, Scale
from elman.study.statistics import LEVEL, MARGIN
from elman.study.store import Plan, PlannedComputation, Store, trial_recipes


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A plan: the seeds, arms, grids, comparisons, level and margin, with the SHA-256 of them all.

    Attributes:
        digest: of `content`; empty where a claim was judged before plans were kept.
        fresh: the seeds that are judged: those which no earlier verdict has used, all where it used them all.
        trained: how many of its runs were trained when it was written.
        after: the verdict, with its seeds, that was known when it was written.
    """

    digest: str = ""
    written: str = ""
    version: str = ""
    seeds: list[int]
    fresh: list[int]
    trained: int = 0
    after: str | None = None
    content: dict[str, Any] = {}

    @property
    def words(self) -> str:
        when = f", when {counted(self.trained, 'run')} had been trained" if self.trained else ", before training"
        told = f"Plan {self.digest[:12]}, written {self.written}{when}."
        if not self.digest:
            told = "No plan was kept of this claim, which was judged before plans were."
        if self.fresh != self.seeds:
            told += f" Seeds {between(self.fresh)} were added after a verdict ({self.after}): they alone are judged."
        elif self.after is not None:
            told += f" It follows a verdict ({self.after})."
        if self.digest and sha256_lines(canonical_json(self.content)) != self.digest:
            told += " Its content has another digest: it was changed afterwards."
        return told


def between(seeds: list[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def register(planned: Plan, store: Store) -> list[PlanRecord]:
    """The plans of a claim so far, this one last; a new one is added to its file before it is trained.

    A plan of the same content is the same plan. Seeds that are added after a verdict are judged alone, so that what
    is known of the first ones cannot decide. Where there is a record and no file of plans, as where a stored record was
    copied, its plans are the earlier ones.
    """
    path, verdict = store.out / f"{planned.name}.plan.json", store.out / f"{planned.name}.json"
    found = read_json(verdict, dict[str, Any]) if verdict.is_file() else {}
    judged = msgspec.convert(found.get("plans", []), list[PlanRecord])
    earlier = msgspec.convert(read_json(path), list[PlanRecord]) if path.is_file() else judged
    content = plan_content(planned, store)
    digest = sha256_lines(canonical_json(content))
    known = [one.digest for one in earlier]
    if digest in known:
        return earlier[: known.index(digest) + 1]
    last = list(found.get("seeds", []))
    used = {*last, *(seed for one in judged for seed in one.seeds)}
    before = earlier[-1].content if earlier else {}  # empty too where a claim was judged before plans were kept
    same = not before or {**before, "seeds": None} == {**content, "seeds": None}
    seeds = list(planned.seeds)
    runs = [one for each in planned.runs.values() for one in each]
    made = PlanRecord(
        digest=digest, written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), version=elman.__version__, seeds=seeds,
        fresh=[seed for seed in seeds if not same or seed not in used] or seeds,
        trained=sum(one.path.is_file() if isinstance(one, PlannedComputation) else not one.is_open for one in runs),
        after=f"{found.get('verdict')}, seeds {between(last)}" if last else None, content=content,
    )  # fmt: skip
    write_atomic(path, json_text(msgspec.to_builtins([*earlier, made]), indent=1) + "\n")
    return [*earlier, made]


def arm_lines(claim: Claim, scale: Scale) -> list[str]:
    """How each arm is made: the command that trains it for a seed, and what is tried before, or what is computed."""
    found = []
    for arm in claim.arms:
        source = claim.origin(arm, scale)
        if isinstance(source, Computation):
            settings = ", ".join(f"{name} = {value}" for name, value in source.constants.items())
            found.append(f"{arm.label}: computed, {type(source.function).__name__} with {settings}")
            continue
        options = [word for each in source.settings for word in ("--set", each)]
        found.append(f"{arm.label}: {command('train', f'recipes/{source.recipe}', *options, '--set', 'seed=SEED')}")
        if source.grid is not None:
            tried = " or ".join(", ".join(settings) for settings in source.grid.alternatives)
            found.append(f"  with the best by validation loss of {tried}")
    return found


def plan_content(planned: Plan, store: Store) -> dict[str, Any]:
    """Plain values that determine what is trained and how it is judged."""
    arms = dict[str, Any]()
    for arm in planned.claim.arms:
        source = planned.claim.origin(arm, planned.scale)
        if isinstance(source, Computation):
            arms[arm.label] = {"constants": source.constants}
        else:
            digest = store.place(arm.label, source.at(0)).folder.name[-12:]
            grid = [list(settings) for settings, _ in trial_recipes(source)]
            arms[arm.label] = {"recipe": source.recipe, "settings": list(source.settings), "grid": grid, "run": digest}
    comparisons = [{"kind": type(one).__name__, **msgspec.to_builtins(one)} for one in planned.claim.comparisons]
    rules = {"level": LEVEL, "margin of no difference": MARGIN, "constants": dict(planned.claim.measure.constants)}
    made = finite({
        "claim": planned.claim.sentence, "scale": planned.scale, "seeds": list(planned.seeds), "arms": arms,
        "comparisons": comparisons, **rules,
    })  # fmt: skip
    return msgspec.json.decode(msgspec.json.encode(made), type=dict[str, Any])
