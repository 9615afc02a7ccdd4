"""Music in a file, and a run trained on it."""

import numpy as np
import pytest

from elman import config
from elman.cli import main
from support.music_runs import arrays, recipe


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("music") / "music.npz"
    np.savez(path, **arrays())
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory, data):
    out = tmp_path_factory.mktemp("runs") / "run"
    file = out.with_suffix(".toml")
    file.write_text(config.dump_recipe(recipe(epochs=8)))
    assert main(["train", str(file), "--data", str(data), "--out", str(out), "--json"]) == 0
    return out
