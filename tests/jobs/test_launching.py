"""Jobs whichever launcher runs them: outcomes, retries, stops, one that is killed, options that are wrong."""

import dataclasses
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.jobs.launching import Crew, Launch, attempt
from support import inline
from support.systems import posix
from support.work import die, fail_first, give, refuse, until_a_signal, wait_for_a_signal


@pytest.fixture
def importable(monkeypatch):
    """Let processes of other launchers import `support`."""
    own = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(own))


def ended(crew, seconds=60.0):
    """The outcomes of all jobs, by key."""
    found, deadline = {}, time.monotonic() + seconds
    while crew.running and time.monotonic() < deadline:
        found |= dict(crew.ended())
        time.sleep(0.02)
    return found


def test_an_outcome_is_a_value_or_a_line():
    assert attempt(give, 3) == (3, None, "")
    assert attempt(refuse).failure == "the text is too short"
    assert attempt(refuse).trace == ""
    unexpected = attempt(int, "three")
    assert unexpected.failure.startswith("ValueError: invalid literal")
    assert "Traceback" in unexpected.trace


@pytest.mark.parametrize(("times", "retries", "tries"), [(1, 1, 2), (2, 1, 2), (2, 3, 3), (0, 1, 1)])
def test_a_failure_is_begun_again_as_often_as_that(times, retries, tries, tmp_path, monkeypatch):
    inline.use(monkeypatch)
    told, path = [], tmp_path / "tries"
    with Crew(Launch(retries=retries), told.append, "the {}".format) as crew:
        crew.start("job", "its name", fail_first, path, times)
        (outcome,) = ended(crew).values()
    assert len(path.read_text()) == tries
    assert len(told) == tries - 1
    assert all(line == "the job: failed (OSError: the disk was away); it is begun again" for line in told)
    assert (outcome.value, outcome.failure) == (
        (times, None) if times <= retries else (None, "OSError: the disk was away")
    )


def test_a_job_that_was_asked_to_stop_is_not_begun_again(monkeypatch):
    launcher = inline.use(monkeypatch)
    with Crew(Launch(retries=5), print) as crew:
        crew.start("key", "a", refuse)
        crew.stop("key")
        assert [outcome.failure for _, outcome in crew.ended()] == ["the text is too short"]
    assert launcher.names == ["a"]


def test_no_more_jobs_than_allowed_and_closed_at_the_end(monkeypatch):
    launcher = inline.use(monkeypatch)
    with Crew(Launch(jobs=2), print) as crew:
        crew.start(1, "a", give, 1)
        assert crew.room == 1
        crew.start(2, "b", give, 2)
        assert crew.room == 0
        assert {key: outcome.value for key, outcome in crew.ended()} == {1: 1, 2: 2}
        assert crew.room == 2
        assert not launcher.closed
    assert launcher.closed


def test_an_exception_stops_the_jobs(monkeypatch):
    launcher = inline.use(monkeypatch)
    begun = []
    monkeypatch.setattr(launcher, "start", lambda *_: begun.append(inline.Done(attempt(refuse))) or begun[-1])

    def interrupted():
        with Crew(Launch(retries=5), print) as crew:
            crew.start("key", "a", give, 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [job.stops for job in begun] == [1]
    assert launcher.closed


@posix
@pytest.mark.slow
def test_a_killed_process_takes_no_other_with_it(tmp_path):
    with Crew(Launch(jobs=2), print) as crew:
        crew.start("killed", "a", die)
        crew.start("kept", "b", give, 5)
        found = ended(crew)
        assert found["kept"].value == 5
        assert "killed from outside" in found["killed"].failure
        crew.start("after", "c", give, 6)
        assert ended(crew)["after"].value == 6


@pytest.mark.slow
def test_local_jobs_see_one_gpu_each_and_share_them(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for gpus, seen in ((("2", "GPU-7"), ["2", "GPU-7", "2"]), ((), [None] * 3)):
        with Crew(Launch(jobs=3, gpus=gpus), print) as crew:
            for key in range(3):
                crew.start(key, str(key), os.getenv, "CUDA_VISIBLE_DEVICES")
            assert [outcome.value for _, outcome in sorted(ended(crew).items())] == seen


LAUNCHES = {
    "local": Launch(),
    "slurm": Launch("slurm", options={"cluster": "local", "time": "5"}),
    "ray": Launch("ray", options={"cluster_cpus": "2"}),
}
PACKAGES = {"local": "torch", "slurm": "submitit", "ray": "ray"}


@posix
@pytest.mark.slow
@pytest.mark.parametrize("name", LAUNCHES)
def test_every_launcher_gives_outcomes_and_stops_as_asked(name, tmp_path, importable):
    pytest.importorskip(PACKAGES[name], reason=f"needs the package {PACKAGES[name]}")
    launch, path = dataclasses.replace(LAUNCHES[name], folder=tmp_path, jobs=3), tmp_path / "begun"
    with Crew(launch, print) as crew:
        crew.start("value", "a value", give, {"a": 1})
        crew.start("failure", "a failure", refuse)
        crew.start("stopped", "stopped", wait_for_a_signal, path)
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        crew.stop("stopped")
        found = ended(crew)
    assert found["value"].value == {"a": 1}
    assert found["failure"].failure == "the text is too short"
    assert path.with_suffix(".saved").exists()


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (Launch("slurm", options={"cluster": "local", "partitoin": "gpu"}), "--slurm: Unknown argument 'partitoin'"),
        (Launch("slurm", options={"cluster": "local", "time": "an hour"}), '--slurm: Parameter "timeout_min"'),
        (Launch("slurm", options={"cluster": "abacus"}), "--slurm: AutoExecutor doesn't know"),
        (Launch("ray", options={"num_cpu": "1"}), "--ray num_cpu: there is no such option"),
        (Launch("ray", options={"num_cpus": "-1"}), "--ray num_cpus=-1: it must be a number, 0 or more"),
    ],
)
def test_wrong_options_of_launchers_are_refused(launch, message, tmp_path):
    pytest.importorskip(PACKAGES[launch.launcher])
    with pytest.raises(UserError) as error:
        dataclasses.replace(launch, folder=tmp_path).begin(print)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["slurm", "ray"])
def test_a_missing_package_names_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(UserError, match=rf"pip install 'elman\[{name}\]'"):
        Launch(name).begin(print)


@posix
@pytest.mark.slow
def test_a_job_whose_time_is_over_saves_itself_and_is_queued_again(tmp_path, importable):
    """By the signal that Slurm sends before it ends a job."""
    pytest.importorskip("submitit")
    launcher = Launch("slurm", options={"cluster": "local"}, folder=tmp_path).begin(print)
    path = tmp_path / "begun"
    job = launcher.start("a job", until_a_signal, path)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    (task,) = children_of(int(launcher._jobs[-1].job_id))
    os.kill(task, signal.SIGUSR2)
    while not job.done() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.with_suffix(".saved").read_text() == "saved"
    assert job.outcome().value == "continued"
    launcher.close()


def children_of(process):
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_jobs_of_an_earlier_driver_are_found_by_their_names(tmp_path, monkeypatch):
    """The number of a job that still runs on Slurm is taken up again; one that has ended is submitted anew."""
    submitit = pytest.importorskip("submitit")
    from elman.jobs.slurm import Slurm

    running = {"17"}

    class Submitted:
        def __init__(self, folder, job_id):
            self.job_id = job_id

        def done(self, force_check=False):
            return self.job_id not in running

    monkeypatch.setattr(submitit, "SlurmJob", Submitted)
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "jobs.json").write_text(json.dumps({"first": "17", "second": "18"}))
    launcher = Slurm(tmp_path, {"cluster": "local"})
    new = []
    monkeypatch.setattr(launcher._executor, "cluster", "slurm")
    monkeypatch.setattr(launcher._executor, "update_parameters", lambda **_: None)
    monkeypatch.setattr(launcher._executor, "submit", lambda *call: new.append(call) or Submitted(None, "19"))
    launcher.start("first", give, 1)
    launcher.start("second", give, 2)
    assert [job.job_id for job in launcher._jobs] == ["17", "19"]
    assert [call[1:] for call in new] == [(give, 2)]
    assert json.loads((tmp_path / "slurm" / "jobs.json").read_text()) == {"first": "17", "second": "19"}
