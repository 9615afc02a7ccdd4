"""The wheel and the sdist hold what the commands need, and the wheel works without the repository."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import filelock
import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("build", "setuptools_scm")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in NEEDED),
        reason="building needs the packages build and setuptools-scm: pip install -e '.[dev]'",
    ),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout: git lists the files of an sdist"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the sdist, and the wheel that was built from it: one for all processes of the tests.

    A build copies the tree into a folder beside it, where two at once would remove each other's.
    """
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("building needs setuptools 77 or newer")
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "dist"
    with filelock.FileLock(out.with_suffix(".lock")):
        if not list(out.glob("*.whl")):
            command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return out


@pytest.fixture(scope="module")
def names(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


def test_the_wheel_has_what_commands_read(names):
    for folder, pattern in (("recipes", "*.toml"), ("recipes", "*.json"), ("docs", "*.md")):
        expected = {f"elman/{folder}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob(pattern)}
        assert expected <= names
    expected = {f"elman/{path.relative_to(ROOT / 'src/elman')}" for path in _data()}
    assert expected <= names
    assert not [name for name in names if not name.startswith("elman")]


def _data():
    """Files of the package other than code, recipes and pages."""
    for path in (ROOT / "src/elman").rglob("*"):
        ours = path.relative_to(ROOT / "src/elman").parts
        if path.is_file() and path.suffix not in (".py", ".pyc") and ours[0] not in ("recipes", "docs"):
            yield path


def test_the_sdist_has_what_tests_read(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        members = sdist.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    inside = {member.name.partition("/")[2] for member in members}
    tops = {"tests/test_release.py", "recipes/shakespeare/demo.toml", "docs/index.md", "results/README.md"}
    assert {*tops, "constraints.txt"} <= inside


def test_links_of_the_description_are_names(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("METADATA"))
        text = wheel.read(name).decode()
    assert "Description-Content-Type: text/markdown" in text
    assert "docs/python.md" in text
    assert not re.findall(r"\]\([^)]*\.md", text)


@pytest.mark.skipif(importlib.util.find_spec("twine") is None, reason="needs the package twine")
def test_the_index_would_accept_it(built):
    files = [str(path) for path in built.iterdir()]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True, capture_output=True)


def test_the_wheel_works_without_the_repository(built, tmp_path):
    with zipfile.ZipFile(wheel := next(built.glob("*.whl"))) as opened:
        opened.extractall(tmp_path / "site")
    code = (
        "import elman, sys; from elman.cli import main; print(elman.__file__); print(elman.__version__)\n"
        "for line in sys.argv[1:]: assert main(line.split()) == 0, line"
    )
    lines = ["recipes", "docs training", "docs", "models list", "data list", "generate shakespeare --tokens 5 --seed 1"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "ELMAN_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, *lines]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place, found = done.stdout.splitlines()[:2]
    assert Path(place) == tmp_path / "site/elman/__init__.py"
    assert wheel.name.startswith(f"elman-{found}-")
    assert "recipes/ptb/awd-lstm.toml" in done.stdout
