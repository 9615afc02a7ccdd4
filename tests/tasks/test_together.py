"""One training by several processes, as torchrun starts them: the same weights, whatever their number and their end."""

import json
import os
import socket
import time
from pathlib import Path

import pytest
import torch

from elman.data.windows import Part
from elman.errors import UserError
from elman.learning import checkpoint
from elman.learning.team import continues, team_of
from elman.learning.trainer import StopReason
from elman.tasks.experiment import Experiment, environment
from support import text_runs
from support.every_kind import AVERAGED, FEW, KINDS
from support.interruption import LONGEST, StopAt, end_after, kill
from support.pairwise import every_value
from support.systems import posix

pytestmark = posix

CPU = torch.device("cpu")
KILLED = -9
RAISED = 3


def together(size, train, port=None, delay=0.0):
    """Call `train(team)` in `size` processes, and return how each ended: its status, or minus the signal.

    The later their rank the later they begin, by `delay` seconds each.
    """
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            end_after(LONGEST)
            time.sleep(rank * delay)
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
            os.environ |= {name: str(value) for name, value in place.items()}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "test"}
            status = 1
            try:
                with team_of(CPU) as team:
                    status = train(team)
            except UserError:
                status = RAISED
            finally:
                os._exit(status)
        children.append(child)
    ends = [os.waitpid(child, 0)[1] for child in children]
    return [-os.WTERMSIG(end) if os.WIFSIGNALED(end) else os.WEXITSTATUS(end) for end in ends]


def digests(folder: Path):
    files = (folder / name for name in (checkpoint.CHECKPOINT, checkpoint.MODEL))
    return [checkpoint.digest_of(checkpoint.load(path)[0]) for path in files]


def training(recipe, out, data, *, resume=False, stop=None):
    """A function that trains to the end, or until `stop`: (rank, step, how)."""

    def train(team):
        experiment = Experiment(recipe, out, data=data, resume=resume, team=team)
        watchers = [StopAt(*stop[1:])] if stop is not None and stop[0] == team.rank else []
        return [*StopReason].index(experiment.train(watchers))

    return train


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_processes_share_a_training(kind, tmp_path):
    """Dropout, averaging and fine-tuning included; in text the state of the columns is carried."""
    write, make = KINDS[kind]
    data, recipe = write(tmp_path), make(tmp_path)
    assert Experiment(recipe, tmp_path / "1", data=data).train() is StopReason.FINISHED
    assert together(2, training(recipe, tmp_path / "2", data)) == [0, 0]
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    assert text_runs.metrics(tmp_path / "1") == text_runs.metrics(tmp_path / "2")


@every_value(kind=KINDS, count=[1, 4, 64])
def test_parts_of_a_validation_make_the_whole(kind, count, tmp_path):
    """Also where there are more parts than columns, batches or sentences."""
    write, make = KINDS[kind]
    experiment = Experiment(make(tmp_path), tmp_path / "run", data=write(tmp_path))
    whole = experiment.task.validate(experiment.model)
    parts = [experiment.task.validate(experiment.model, Part(index, count)) for index in range(count)]
    assert sum(part.count for part in parts) == whole.count
    assert sum(part.nll_sum for part in parts) == pytest.approx(whole.nll_sum, rel=1e-5)
    if count == 4 and kind != "pairs":  # they are one batch
        assert all(part.count < whole.count for part in parts)


@pytest.mark.slow
def test_a_training_that_loses_processes_goes_on_with_others(tmp_path):
    """A signal to one process stops all; a kill of one ends all; every time another number of them goes on."""
    data = text_runs.write_corpus(tmp_path / "corpus", FEW)
    recipe = text_runs.recipe(slices=4, **AVERAGED, checkpoint_minutes=0.0)
    assert Experiment(recipe, tmp_path / "alone", data=data).train() is StopReason.FINISHED
    out = tmp_path / "run"
    interrupted = [*StopReason].index(StopReason.INTERRUPTED)
    assert together(2, training(recipe, out, data, stop=(1, 10))) == [interrupted] * 2
    killed = together(4, training(recipe, out, data, resume=True, stop=(2, 30, kill)))
    assert killed == [RAISED, RAISED, KILLED, RAISED]
    assert together(1, training(recipe, out, data, resume=True)) == [0]
    assert digests(out) == digests(tmp_path / "alone")


@pytest.mark.slow
def test_processes_that_torchrun_starts_again_meet(monkeypatch):
    """Its store still has what the first processes left in it."""
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    for start in ("0", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", start)
        assert together(2, lambda team: int(team.from_first(team.rank + 5)), store.port, delay=0.2) == [5, 5]
    monkeypatch.setenv("GROUP_WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    assert together(2, lambda _: 0, store.port) == [RAISED, RAISED]


@pytest.mark.parametrize(
    ("machines", "begun", "now", "continued"),
    [
        (1, ("none", "none_a"), ("none", "none_a"), True),
        (1, ("none", "none_a"), ("none", "none_b"), False),
        (2, ("job7", "job7_a"), ("job7", "job7_b"), True),
        (2, ("none", "none_a"), ("none", "none_a"), False),
    ],
)
def test_a_run_is_continued_by_the_torchrun_that_began_it(machines, begun, now, continued, tmp_path, monkeypatch):
    """On one machine its folder of logs tells calls apart, on several the id that the user gives."""

    def starts(call, attempt):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("GROUP_WORLD_SIZE", str(machines))
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", call[0])
        monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", f"/logs/{call[1]}/attempt_{attempt}/0/error.json")

    run = tmp_path / "run"
    assert not continues(run)
    starts(begun, 0)
    assert not continues(run)
    run.mkdir()
    (run / "environment.json").write_text(json.dumps(environment(CPU)))
    (run / "recipe.toml").touch()
    starts(now, 1)
    assert continues(run) is continued


@pytest.mark.slow
def test_a_loss_that_is_not_finite_ends_all_processes(tmp_path):
    data = text_runs.write_corpus(tmp_path / "corpus")
    recipe = text_runs.recipe(slices=2, optimiser={"kind": "sgd", "lr": 1e39}, clip=None)
    assert together(2, training(recipe, tmp_path / "run", data)) == [RAISED, RAISED]


@pytest.mark.slow
def test_numbers_of_processes_that_cannot_share_the_slices(tmp_path):
    data, recipe = text_runs.write_corpus(tmp_path / "corpus"), text_runs.recipe()
    assert together(2, training(recipe, tmp_path / "run", data)) == [RAISED, RAISED]
    assert not (tmp_path / "run").exists()
    assert together(3, lambda _: 0) == [RAISED] * 3
