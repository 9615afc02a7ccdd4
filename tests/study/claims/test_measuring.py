"""Measurements side by side: as many as the launch permits, each made once, timed ones alone."""

import dataclasses
import math
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from elman.errors import UserError
from elman.jobs.launching import Launch
from elman.study import claims as registry
from elman.study.claim import Computation, Measurement
from elman.study.conduct import plan
from elman.study.measures import measure_all, measured
from elman.study.runs import Machine
from elman.study.store import PlannedComputation, Store
from support import inline
from support.claims import ERRORS, Error, claim

TWO = Machine(Launch(jobs=2))


@dataclasses.dataclass
class Counted:
    """A computation that remembers its seeds; that of seed 3 is not finite."""

    seeds: list[int] = dataclasses.field(default_factory=list)

    def __call__(self, seed, _):
        self.seeds.append(seed)
        return Measurement({"error": math.inf if seed == 3 else 1 / seed}, {})


def computations(folder, function, seeds=(1, 2, 3)):
    made = Computation(function, minutes=1.0)
    return [PlannedComputation("arm", seed, None, made, folder / "claim" / f"arm-{seed}.json") for seed in seeds]


def test_computations_are_jobs_and_are_kept(tmp_path, monkeypatch):
    launcher, counted, told = inline.use(monkeypatch), Counted(), []
    planned = computations(tmp_path, counted)
    monkeypatch.setattr(Computation, "constants", {})
    found = measure_all([*planned, planned[0]], ERRORS, TWO, told.append)
    assert [one.figures["error"] for one in found] == [1, 0.5, math.inf, 1]
    assert launcher.names == ["claim-arm-1", "claim-arm-2", "claim-arm-3"]
    assert told == [f"arm, seed {seed}: computing" for seed in (1, 2, 3)]
    assert measure_all(planned, ERRORS, TWO, told.append) == found[:3]
    assert counted.seeds == [1, 2, 3, 3], "what is not finite is not kept"
    assert len(launcher.names) == 3, "one alone needs no job"


@pytest.mark.parametrize(
    ("measure", "machine", "minutes"),
    [
        (dataclasses.replace(ERRORS, timed=True), TWO, 1.0),
        (ERRORS, Machine(Launch(jobs=1)), 1.0),
        (ERRORS, TWO, 0.05),
    ],
)
def test_times_and_what_takes_no_time_are_measured_in_this_process(measure, machine, minutes, tmp_path, monkeypatch):
    launcher, told = inline.use(monkeypatch), []
    planned = [
        dataclasses.replace(one, computation=Computation(Error(1.0), minutes))
        for one in computations(tmp_path, Error(1.0))
    ]
    found = measure_all(planned, measure, machine, told.append)
    assert [one.figures["error"] for one in found] == pytest.approx([1.0, 1.1, 1.2])
    assert launcher.names == []
    assert len(told) == 3


def test_a_failure_is_one_line_and_its_trace_a_file(tmp_path, monkeypatch):
    inline.use(monkeypatch)
    monkeypatch.setattr(Error, "__call__", lambda self, seed, data: {}[seed])
    planned = computations(tmp_path, Error(1.0))
    with pytest.raises(UserError, match=r"^arm, seed 1: KeyError: 1; see .*arm-1\.log$"):
        measure_all(planned, ERRORS, TWO, print)
    assert "KeyError" in (tmp_path / "claim" / "arm-1.log").read_text()


def test_two_commands_make_a_measurement_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Computation, "constants", {})
    counted, slow = Counted(), Counted.__call__
    monkeypatch.setattr(Counted, "__call__", lambda self, *given: time.sleep(0.3) or slow(self, *given))
    (planned,) = computations(tmp_path, counted, seeds=(2,))
    with ThreadPoolExecutor(2) as two:
        found = [two.submit(measured, planned, ERRORS) for _ in range(2)]
    assert [one.result().figures["error"] for one in found] == [0.5, 0.5]
    assert counted.seeds == [2]


def test_the_planned_minutes_are_those_side_by_side(tmp_path):
    made = claim("toy", Error(1.0), Error(2.0))
    timed = dataclasses.replace(made, measure=dataclasses.replace(ERRORS, timed=True))
    assert plan(made, Store(tmp_path, None), "small", None, Machine()).measuring == pytest.approx(0.9)
    assert plan(made, Store(tmp_path, None), "small", None, TWO).measuring == pytest.approx(0.45)
    assert plan(timed, Store(tmp_path, None), "small", None, TWO).measuring == pytest.approx(0.9)


def test_every_claim_can_be_measured_in_another_process():
    for one in registry.CLAIMS.values():
        arms = [arm.small for arm in one.arms if isinstance(arm.small, Computation)]
        assert repr(pickle.loads(pickle.dumps((one.measure, arms)))) == repr((one.measure, arms))
