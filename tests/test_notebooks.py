"""The notebooks, each executed from its beginning to its end at the small sizes, and stored without outputs."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

EMPTY = """
for _name in [one for one in globals() if one[0] != "_" and one not in get_ipython().user_ns_hidden]:
    del globals()[_name]
"""
"""What stands before a notebook, so that it sees no names of the one before it."""

SECONDS = 120
"""For one cell; small sizes take a few."""


def test_there_are_notebooks():
    assert {"five-minutes", "cells", "music"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_is_linked(path):
    cells = json.loads(path.read_text())["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    for cell in cells:
        assert not cell.get("outputs"), f"{path.name}: clear the outputs before it is stored"
        assert cell.get("execution_count") is None
    assert f"notebooks/{path.name}" in (ROOT / "docs" / "index.md").read_text()
    for readme in ("README.md", "README.ja.md"):
        assert f"(notebooks/{path.name})" in (ROOT / readme).read_text()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One for all notebooks, since it has to import torch: each of them begins with an empty namespace."""
    nbformat = pytest.importorskip("nbformat", reason="elman[notebooks] is not installed")
    nbclient = pytest.importorskip("nbclient", reason="elman[notebooks] is not installed")
    pytest.importorskip("ipykernel", reason="elman[notebooks] is not installed")
    folder = str(tmp_path_factory.mktemp("jupyter"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ELMAN_SMALL": "1", "OMP_NUM_THREADS": "1", "IPYTHONDIR": folder}.items():
            patch.setenv(name, value)
        patch.delenv("ELMAN_TRACK", raising=False)
        for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "TMPDIR"):
            patch.setenv(name, folder)
        manager = nbclient.NotebookClient(nbformat.v4.new_notebook()).create_kernel_manager()
        yield manager
        nbclient.util.run_sync(manager.shutdown_kernel)(now=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, kernel, tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(EMPTY))
    client = nbclient.NotebookClient(notebook, kernel, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    client.kc.stop_channels()
    text = json.dumps([cell.get("outputs", []) for cell in notebook.cells])
    assert '"output_type": "error"' not in text
    pictures = re.compile(r'"image/[^"]*": "[^"]*"')  # in whose letters any word may stand
    assert "nan" not in pictures.sub("", text)
