"""The scripts for a GPU at tiny size on the CPU: every section has results or a reason why there are none."""

import contextlib
import importlib
import json
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

from elman.cli import main as elman

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def run(script, out, *options):
    command = [sys.executable, str(BENCHMARKS / script), "--tiny", "--device", "cpu", "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2400)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def script(monkeypatch, capsys):
    """Run a script in this process: its own sections and evaluations too, other commands in processes as ever."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    gpu = importlib.import_module("gpu")

    class Here(gpu.Process):
        def __init__(self, command, log, out=None, env=MappingProxyType({})):
            self.run, file, words = None, Path(command[0]), list(command)
            if file.name == "gpu_kernels.py":
                with out.open("a") as rows, contextlib.redirect_stdout(rows):
                    main(file.name, words)
            elif words[:3] == ["-m", "elman", "evaluate"]:
                with log.open("a") as shown, contextlib.redirect_stdout(shown):
                    assert elman(words[2:]) == 0
            else:
                super().__init__(command, log, out, env)

        def wait(self, until):
            return None if self.run is None else super().wait(until)

    def main(name, words):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            importlib.import_module(name.removesuffix(".py")).main()

    def run(name, out, *options):
        main(name, [name, "--tiny", "--device", "cpu", "--out", str(out), *options])
        return capsys.readouterr().out

    monkeypatch.setattr(gpu, "Process", Here)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return run


@pytest.mark.slow
def test_every_section_of_the_kernels(script, tmp_path):
    shown = script("gpu_kernels.py", tmp_path)
    found = json.loads((tmp_path / "kernels.json").read_text())
    assert list(found) == ["environment", "values", "layers", "steps", "persistent", "likelihood", "compiled", "tests"]
    for section, part in found.items():
        assert part["rows"], section
        assert "reason" not in part, (section, part["reason"])
        for row in part["rows"]:
            assert "error" not in row or row["what"] == "nvidia-smi", row
            assert "ratio" not in row or row["ratio"] == row["reference"] / row["ours"]
    assert len({row["what"] for part in found.values() for row in part["rows"] if "step of" in row["what"]}) >= 12
    assert "of which 0 fail" in shown


@pytest.mark.slow
@pytest.mark.slow
def test_a_section_for_which_no_time_is_left(tmp_path):
    run("gpu_kernels.py", tmp_path, "--sections", "steps", "--minutes", "0")
    assert json.loads((tmp_path / "kernels.json").read_text()) == {"steps": {"reason": "no time left", "rows": []}}


@pytest.mark.slow
def test_a_training_and_what_follows_it(script, tmp_path):
    shown = script("gpu_training.py", tmp_path, "doc", "--epochs", "2", "--minutes", "40")
    found = json.loads((tmp_path / "training.json").read_text())
    doc = found["networks"]["doc"]
    assert (doc["epochs"], doc["planned"], doc["cut_off"], doc["stopped"]) == (2, 2, False, None)
    assert [epoch for epoch, *_ in doc["curve"]] == [1, 2]
    assert {"valid static", "test static", "test dynamic", "test cache"} <= set(doc["perplexity"])
    assert doc["evaluations"] == {"test dynamic": "complete", "test cache": "complete"}
    assert doc["weights"]["rounded"] == pytest.approx(doc["weights"]["valid, 8 streams"], rel=0.01)
    assert (tmp_path / "doc-1-of-1.safetensors").is_file()
    assert "52.38" in shown
    again = script("gpu_training.py", tmp_path, "doc", "--epochs", "2", "--minutes", "40")
    assert json.loads((tmp_path / "training.json").read_text())["networks"]["doc"] == doc
    assert again.splitlines()[:2] == shown.splitlines()[:2]


def test_epochs_for_the_time_that_is_left(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    epochs_for = runpy.run_path(str(BENCHMARKS / "gpu_training.py"))["epochs_for"]
    lines = [{"epoch": 0.1 * index, "seconds": 5.0 + index} for index in range(40)]  # a tenth of an epoch per second
    assert epochs_for(lines[:1], 100) is None
    assert epochs_for(lines, 100) == int(3.9 + 9.7)
    assert epochs_for(lines, -5) == 4
