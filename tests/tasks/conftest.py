import pytest

from elman.tasks.experiment import Experiment
from support import text_runs


@pytest.fixture(scope="session")
def short_corpus(tmp_path_factory):
    return text_runs.write_corpus(tmp_path_factory.mktemp("corpus"), {"train": 40, "valid": 10, "test": 10})


@pytest.fixture
def train(short_corpus, tmp_path):
    """Trains a small recipe into a folder of the test, or resumes the run there."""

    def trained(name="run", *, resume=False, stop=None, minutes=None, **training):
        experiment = Experiment(text_runs.recipe(**training), tmp_path / name, data=short_corpus, resume=resume)
        experiment.train([] if stop is None else [stop], minutes)
        return tmp_path / name

    return trained


@pytest.fixture
def corpus(short_corpus):
    return short_corpus
