"""Which precision `auto` stands for: measured once on a machine, and remembered."""

import itertools
import json
import threading

import pytest
import torch

from elman.cli import main
from elman.network.fast import precision, preference

CPU = torch.device("cpu")


def rates(reduced):
    return [
        preference.Peak("torch.mm", "float32", 50.0),
        preference.Peak("torch.mm", "bf16", reduced / 2),
        preference.Peak("oneDNN", "float32", 100.0),
        preference.Peak("oneDNN", "bf16", reduced),
    ]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty one."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def machine(monkeypatch):
    """A machine whose bf16 products reach the last number of a list, float32 100; its length counts measurements."""
    measured = [200.0]

    def measure(_):
        measured.append(measured[-1])
        return rates(measured[-1])

    monkeypatch.setattr(preference, "measure", measure)
    return measured


def records(cache):
    return sorted((cache / "machines").glob("*.json"))


def test_auto_follows_the_measured_gain(monkeypatch):
    for reduced, expected in ((129.0, "float32"), (130.0, "bf16")):
        preference.remember(CPU, preference.gain(rates(reduced)))
        assert precision.resolve("auto", CPU) == expected
        assert precision.resolve("bf16", CPU) == "bf16"
        assert precision.resolve("float32", CPU) == "float32"


def test_a_machine_is_measured_once(machine, cache):
    assert preference.automatic(CPU) == "bf16"
    machine.append(100.0)  # beside other work it seems slower, which no later run may act upon
    assert preference.automatic(CPU) == "bf16"
    assert len(machine) == 3
    (path,) = records(cache)
    assert json.loads(path.read_text())["gain"] == 2.0


def test_processes_that_begin_at_once_agree(machine):
    found = []
    threads = [threading.Thread(target=lambda: found.append(preference.automatic(CPU))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["bf16"] * 4
    assert len(machine) == 2


@pytest.mark.parametrize("changed", ["threads", "variable", "torch"])
def test_another_machine_is_measured_by_itself(changed, machine, cache, monkeypatch):
    assert preference.automatic(CPU) == "bf16"
    if changed == "threads":
        monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    elif changed == "variable":
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    else:
        monkeypatch.setattr(torch, "__version__", "99")
    machine.append(100.0)
    assert preference.automatic(CPU) == "float32"
    assert len(records(cache)) == 2


@pytest.mark.parametrize("damage", ["", "{}", '{"machine": {}, "gain": null}', "[" * 100])
def test_a_damaged_record_is_measured_again(damage, machine, cache):
    preference.automatic(CPU)
    (path,) = records(cache)
    path.write_text(damage)
    assert preference.automatic(CPU) == "bf16"
    assert len(machine) == 3
    assert json.loads(path.read_text())["gain"] == 2.0


def test_a_cache_that_cannot_be_written_is_measured_every_time(machine, cache):
    cache.write_text("a file in the place of the folder")
    assert [preference.automatic(CPU) for _ in range(2)] == ["bf16", "bf16"]
    assert len(machine) == 3


def test_info_measures_again_and_remembers(machine, capsys):
    preference.automatic(CPU)
    machine.append(100.0)
    assert main(["info", "--machine", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["auto"] == "float32"
    assert preference.automatic(CPU) == "float32"


@pytest.mark.slow
def test_products_are_timed_by_the_processor_time_of_a_thread(monkeypatch):
    """Two threads that work for 2 s each are no faster than one; the clock on the wall is not read."""
    clock = itertools.count(0.0, 4.0)
    monkeypatch.setattr(preference.time, "process_time", lambda: next(clock))
    monkeypatch.setattr(preference.time, "perf_counter", lambda: pytest.fail("read"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    expected = 2e-9 * preference.ROWS * preference.INPUTS * preference.OUTPUTS / 2.0
    assert {peak.gflops for peak in preference.measure(CPU)} == {expected}


@pytest.mark.parametrize("types", [(), (torch.float32,), (torch.float32, torch.bfloat16)])
def test_the_products_of_every_library_are_timed(types, monkeypatch):
    monkeypatch.setattr(preference.policy, "uses_onednn", lambda x: x.dtype in types)
    monkeypatch.setattr(preference.matmul, "pack", lambda w, *_: w)
    monkeypatch.setattr(preference, "_seconds", lambda *_: 1.0)
    found = {(one.library, one.precision) for one in preference.measure(CPU)}
    names = {torch.float32: "float32", torch.bfloat16: "bf16"}
    assert found == {("torch.mm", "float32"), ("torch.mm", "bf16"), *(("oneDNN", names[one]) for one in types)}
