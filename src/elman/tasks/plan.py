"""What a training is to do: recipe, data, folder and device are settled here, and what cannot be done is refused."""

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

from elman.config.network import Output
from elman.config.recipe import Recipe
from elman.config.toml import DESCRIPTIVE, dump_recipe, load_recipe, parse_recipe, set_keys
from elman.data.catalog.known import is_known
from elman.errors import UserError, notice
from elman.evaluation.result import RESULTS
from elman.files import expanded, require_own, require_utf8, require_writable, write_atomic
from elman.formats import parse_json
from elman.jobs.locks import HELD
from elman.learning import checkpoint
from elman.learning.checkpoint import CHECKPOINT, MODEL
from elman.learning.team import ALONE, Team
from elman.network.device import choose_device
from elman.network.fast.precision import resolve
from elman.tasks.hub import fetched
from elman.tasks.open import recorded_source, source_of
from elman.tasks.run import data_facts
from elman.tasks.task import Task

EXTRAS = "extras.json"  # what else a command computes for a run, such as baselines; a resumed run computes it too


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A training that is settled: a new run, one that is resumed, or a trial of a few steps that leaves nothing.

    Attributes:
        recipe: with the precision chosen; a resumed run's names its data.
        source: where the data is, from every working folder.
        digest: what the data must have; None: whatever they are.
        out: the run folder; None: nothing is written.
        before: the recipe of the run that is resumed; None: the run is new.
        init: a run from whose weights to start.
        extras: what else is computed for the run, by name.
        team: the processes that train the run.
        measured: the precision was chosen by the speed of this machine.
    """

    recipe: Recipe
    source: str
    device: torch.device
    digest: str | None = None
    out: Path | None = None
    before: Recipe | None = None
    init: Path | None = None
    extras: tuple[str, ...] = ()
    team: Team = ALONE
    measured: bool = False

    @classmethod
    def trial(cls, recipe: Recipe, data: str | Path | None, device: torch.device) -> "Plan":
        """A few steps on some data, or on the recipe's own."""
        return cls(recipe=recipe, source=source_of(recipe) if data is None else str(data), device=device)

    @classmethod
    def new(
        cls,
        recipe: Recipe,
        out: Path | str,
        data: str | Path | None = None,
        *,
        device: torch.device | str = "cpu",
        init: Path | None = None,
        extras: Collection[str] = (),
        team: Team = ALONE,
    ) -> "Plan":
        """A new run; by default on the recipe's own data, whose digest must be that which the recipe gives, if it does.

        Raises UserError where the folder cannot hold a new run, or there are no data.
        """
        out, place = _writable(out), choose_device(device)
        require_free(out)
        _require_start(recipe, init)
        source = _source(data, lambda: source_of(recipe))
        measured = recipe.training.precision == "auto"
        if measured:
            recipe = _in_precision(recipe, "bf16" if team.from_first(resolve("auto", place) == "bf16") else "float32")
        return cls(
            recipe=recipe,
            source=source,
            digest=recipe.data.digest if data is None else None,
            out=out,
            device=place,
            init=None if init is None else fetched(init),
            extras=tuple(sorted({*extras})),
            team=team,
            measured=measured,
        )

    @classmethod
    def resume(
        cls,
        recipe: Recipe | None,
        out: Path | str,
        data: str | Path | None = None,
        *,
        device: torch.device | str = "cpu",
        init: Path | None = None,
        extras: Collection[str] = (),
        settings: Sequence[str] = (),
        team: Team = ALONE,
    ) -> "Plan":
        """The rest of a run, which may change the keys of `elman.learning.resumption.CHANGEABLE`.

        Without a recipe it is the run's under the `settings`, else `settings` are what changed it. The run
        keeps its description unless they change it; the data may have moved; the extras are added to the run's. Raises
        UserError where there is no run, or it cannot be resumed in this way.
        """
        out, place = _writable(out), choose_device(device)
        existing = out / "recipe.toml"
        if not existing.exists():
            _restore_recipe(out)
        before = load_recipe(existing)
        recipe = load_recipe(existing, settings) if recipe is None else recipe
        if recipe.training.precision == "auto":
            recipe = _in_precision(recipe, before.training.precision)
        from elman.learning.resumption import split_changes

        _, changed = split_changes(before, recipe)
        if changed:
            raise UserError(
                f"--resume with a changed recipe: {', '.join(changed)} differ from {existing}, and only epochs, rates,"
                " schedules and the like may change; resume with the recipe of the run (leave RECIPE and --set out), or"
                " start a new run with --init"
            )
        if init is not None:
            raise UserError(
                "--init gives the weights from which a run begins, and --resume continues with its own; leave one of"
                " them out"
            )
        for key in ("corpus", "digest"):
            if f"data.{key}" in set_keys(settings) and getattr(recipe.data, key) != getattr(before.data, key):
                raise UserError(
                    f"--resume with --set data.{key}: a run is continued on the data that it was begun with; leave it"
                    " out, and give --data where they are in another place now"
                )
        source = _source(data, lambda: recorded_source(out, before))
        set_here = {key.partition(".")[0] for key in set_keys(settings)}
        described = {name: getattr(before, name) for name in DESCRIPTIVE if name not in set_here}
        named = before.data.digest is not None and before.data.corpus is not None
        return cls(
            recipe=msgspec.structs.replace(
                recipe, data=before.data.changed(corpus=source) if named else before.data, **described
            ),
            source=source,
            digest=data_facts(out)["digest"],
            out=out,
            before=before,
            device=place,
            extras=tuple(sorted({*extras, *extras_of(out)})),
            team=team,
        )

    @property
    def by_similarity(self) -> bool:
        """Whether the words of a tree are put together by the vectors that training starts from."""
        return _by_similarity(self.recipe.model.output)

    def require_data(self, task: Task) -> None:
        """Raise UserError where the data are not the run's, or not the recipe's."""
        if self.digest in (None, task.digest):
            return
        if self.before is None:
            raise UserError(
                f"the {task.kind} of {task.source} has changed since the run of this recipe was trained on it (its"
                f" digest is {task.digest:.12}, data.digest is {self.digest:.12}); restore it, or accept it as it is"
                f" now with --data {shlex.quote(task.source)}"
            )
        raise UserError(
            f"--resume with other data: the {task.kind} of {task.source} has changed since {self.out} was started (its"
            f" digest is {task.digest:.12}, it was {self.digest:.12}); give the same --data, or start a new run with"
            " --init"
        )


BEGUN = (".lock", HELD)
"""Files by which a folder says that a training of elman has begun in it, so that what else is there is its own."""


ENDED = (RESULTS, "metrics.jsonl", "samples.json", "report.html")  # files that a run writes only after its recipe


def require_free(out: Path) -> None:
    """Raise UserError where a new run cannot be in the folder `out`, since something is there that it could replace.

    A folder is free that is missing or empty, hidden files apart, or in which a training was killed before it began.
    """
    out = expanded(out)
    if (out / "recipe.toml").exists():
        raise UserError(f"{out} already holds a run; add --resume to continue it, or choose another --out")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; choose a folder for --out")
    if (model := _model_of(out)) is not None:
        raise UserError(
            f"{out} holds {model.name} of a run whose recipe.toml is missing; add --resume, which restores it, or"
            " choose another --out"
        )
    require_own(out, *BEGUN)
    if ended := [name for name in ENDED if (out / name).exists()]:
        raise UserError(
            f"{out} holds {', '.join(ended)} and no recipe.toml, checkpoint or model: nothing there can be"
            " continued; choose another --out"
        )


def _model_of(out: Path) -> Path | None:
    """The checkpoint of a run folder, or its model; None: there is neither."""
    return next((out / name for name in (CHECKPOINT, MODEL) if (out / name).exists()), None)


def _restore_recipe(out: Path) -> None:
    """Write recipe.toml again by what the checkpoint and data.json hold of it.

    Raises UserError where there is no checkpoint and no model, or one of the files is damaged.
    """
    if (path := _model_of(out)) is None:
        require_free(out)
        raise UserError(f"{out} is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume")
    (_, facts), data = checkpoint.load(path, "recipe"), data_facts(out)
    tables = facts["recipe"] | {"title": out.name}
    tables["data"] = tables["data"] | {"corpus": data["source"], "digest": data["digest"]}
    write_atomic(out / "recipe.toml", dump_recipe(parse_recipe(tables, str(path))))
    notice(f"{out}: recipe.toml was missing; restored from {path.name}, without its title and notes")


def _by_similarity(output: Output) -> bool:
    return getattr(output.choice, "assignment", None) == "similarity"


def _require_start(recipe: Recipe, init: Path | None) -> None:
    """Raise UserError where a new run needs the weights of another, and there is none."""
    output = recipe.model.output
    if init is None and getattr(recipe.data, "vocabulary_from", None) == "init":
        raise UserError(
            'data.vocabulary_from = "init" adds the words of the run that training starts from: give that run with'
            ' --init, or set "train"'
        )
    if init is None and _by_similarity(output):
        raise UserError(
            'model.output.choice.assignment = "similarity" needs trained word vectors: train with'
            ' "frequency" first and give that run with --init, or keep "frequency"'
        )
    if init is None and output.gate is not None and output.gate.alone:
        raise UserError(
            "model.output.gate.alone trains the gate of a trained model, and its weights are random here: train the"
            " network without the gate first and give that run with --init, or set alone = false"
        )


def extras_of(out: Path) -> list[str]:
    """What else is computed for the run in a folder; nothing where that is not recorded."""
    try:
        found = parse_json((out / EXTRAS).read_bytes())
    except (OSError, ValueError):
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _writable(out: Path | str) -> Path:
    out = expanded(out)
    require_utf8(out, "--out")
    require_writable(out)
    return out


def _source(data: str | Path | None, own: Callable[[], str]) -> str:
    """Some data or its own; names stay and paths become absolute, so that they mean the same from every folder."""
    source = own() if data is None else str(data)
    source = source if is_known(source) else str(expanded(source).absolute())
    require_utf8(source, "--data")
    return source


def _in_precision(recipe: Recipe, precision: str) -> Recipe:
    return msgspec.structs.replace(recipe, training=msgspec.structs.replace(recipe.training, precision=precision))
