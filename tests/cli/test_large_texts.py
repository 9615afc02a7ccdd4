"""Commands on texts that are read as streams: compressed, in parts for several processes, with a file for the rows."""

import gzip
import io
import json
import random
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from elman.cli import main
from support.commands import TEXTS, complaint, output, table, trained
from support.parameters import slow_except


@pytest.fixture(scope="module", params=slow_except(tuple(TEXTS)[:1], TEXTS))
def run(request, tmp_path_factory):
    return trained(request.param, tmp_path_factory)


@pytest.fixture
def text(run, tmp_path):
    """Some hundred lines, of which some are blank and, of words, one is long."""
    draw, path = random.Random(0), tmp_path / "text.txt"
    lines = [" ".join(f"w{draw.randrange(30)}" for _ in range(draw.randrange(12))) for _ in range(300)]
    if "characters" not in (run / "recipe.toml").read_text():
        lines[120] = f"w1 {' ' * 70_000} w2"
    path.write_text("\n".join(lines) + "\nw3")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "form"), [(7, ()), (2, ("--json", "--by", "sentence"))])
def test_the_parts_of_a_text_are_the_whole(capsys, run, text, form, parts):
    whole = output(capsys, "score", run, text, "--unknown", "exclude", *form)
    found = [
        output(capsys, "score", run, text, "--unknown", "exclude", *form, "--shard", f"{number}/{parts}")
        for number in range(1, parts + 1)
    ]
    assert "".join(found) == whole
    assert sum(map(bool, found)) > 1


@pytest.mark.slow
def test_more_parts_than_batches(capsys, run, tmp_path):
    file = tmp_path / "short.txt"
    file.write_text("w1 w2\nw3\n\nw1\n")
    found = [output(capsys, "score", run, file, "--shard", f"{number}/9") for number in range(1, 10)]
    assert "".join(found) == output(capsys, "score", run, file)


@pytest.mark.slow
def test_a_compressed_text_is_read_as_it_is_unpacked(capsys, run, text):
    packed = text.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(text.read_bytes()))
    zst = pytest.importorskip("backports.zstd") if sys.version_info < (3, 14) else __import__("compression.zstd").zstd
    other = text.with_suffix(".txt.zst")
    other.write_bytes(zst.compress(text.read_bytes()))
    ask = ("--by", "sentence", "--unknown", "exclude")
    whole = output(capsys, "score", run, text, *ask)
    assert output(capsys, "score", run, packed, *ask) == output(capsys, "score", run, other, *ask) == whole
    assert output(capsys, "score", run, packed, *ask, "--shard", "1/2") == output(
        capsys, "score", run, text, *ask, "--shard", "1/2"
    )


def test_a_damaged_file_is_refused_in_one_line(capsys, run, text, tmp_path):
    packed = tmp_path / "cut.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes())[:-20])
    assert f"{packed}: the compressed file is damaged or incomplete" in complaint(capsys, "score", run, packed)


def test_rows_are_written_to_a_file_or_not_at_all(capsys, run, text, tmp_path, monkeypatch):
    out = tmp_path / "scored.tsv"
    whole = output(capsys, "score", run, text, "--by", "sentence", "--unknown", "exclude")
    assert output(capsys, "score", run, text, "--by", "sentence", "--unknown", "exclude", "--out", out) == ""
    assert out.read_text() == whole
    from elman.cli.scoring import Scoring

    def interrupted(*args, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Scoring, "_rows", interrupted)
        assert main(["score", str(run), str(text), "--unknown", "exclude", "--out", str(out)]) == 130
    assert out.read_text() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scored.tsv", "text.txt"]


def test_a_file_is_read_as_far_as_its_rows_are_asked_for(run, text, monkeypatch):
    """What is held does not grow with the text: rows are asked for one by one, and lines read as they are needed."""
    from elman.cli import texts

    read = []
    lines = texts.Text.lines
    monkeypatch.setattr(
        texts.Text, "lines", lambda self, start=0: (read.append(1) or one for one in lines(self, start))
    )

    class Full(io.StringIO):
        def write(self, row: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Full())
    main(["score", str(run), str(text), "--by", "sentence", "--unknown", "exclude"])
    assert 32 <= len(read) <= 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--shard", "3/2"), "--shard is '3/2'"),
        (("--shard", "half"), "give I/N"),
        (("--shard", "1/2", "--document"), "--document is for whole texts"),
        (("--shard", "1/2", "--unknown", "spread"), "give --unknown-types"),
    ],
)
def test_mistakes(capsys, run, text, arguments, words):
    assert words in complaint(capsys, "score", run, text, *arguments)


def test_parts_of_standard_input(capsys, run, monkeypatch):
    assert "standard input has no known end" in complaint(capsys, "score", run, "-", "--shard", "1/2")


def test_spread_counts_the_types_of_a_file_first(capsys, run, tmp_path):
    file = tmp_path / "strange.txt"
    file.write_text("w1 q7 w3\nq8 q7 w2\n")
    if "characters" in (run / "recipe.toml").read_text():
        pytest.skip("of words")
    spread = table(output(capsys, "score", run, file, "--unknown", "spread"))
    given = table(output(capsys, "score", run, file, "--unknown", "spread", "--unknown-types", "2"))
    assert json.dumps(spread) == json.dumps(given)


LITTLE = ("cutoffs=[10,20]", "encoder.size=8", "core.sizes=[8,8]")
"""The recipe of One Billion Word with a model for a test, of a vocabulary of some thirty words."""


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    """A generated corpus in the layout of One Billion Word, its shards partly compressed."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    draw, folder = random.Random(1), tmp_path / "1-billion-word"
    for kind, name in [("training", "news.en-{:05d}-of-00100"), ("heldout", "news.en.heldout-{:05d}-of-00050")]:
        place = folder / f"{kind}-monolingual.tokenized.shuffled"
        place.mkdir(parents=True)
        for number in range(3):
            lines = (" ".join(f"w{draw.randrange(30)}" for _ in range(9)) + "\n" for _ in range(200))
            text = "".join(lines).encode()
            end = ".gz" if number == 2 else ""
            (place / (name.format(number) + end)).write_bytes(gzip.compress(text) if end else text)
    return folder


def test_the_recipe_of_one_billion_word_reads_its_layout(capsys, benchmark):
    recipe = "recipes/one-billion-word/adaptive-softmax.toml"
    choice, *others = LITTLE
    sets = [f"model.output.choice.{choice}", *(f"model.{one}" for one in others), "training.batch_size=4"]
    sets = [part for one in sets for part in ("--set", one)]
    prepared = json.loads(output(capsys, "data", "prepare", benchmark, "--recipe", recipe, "--json"))
    assert {name: split["tokens"] for name, split in prepared["splits"].items()} == {
        "train": 6000,
        "valid": 2000,
        "test": 2000,
    }
    cost = json.loads(output(capsys, "train", recipe, "--data", benchmark, *sets, "--dry-run", "--json"))
    assert cost["tokens_per_s"] > 0


def test_a_text_is_prepared_without_torch(benchmark):
    program = """
import subprocess
import sys
from elman.cli import main
sys.argv = ["elman", "data", "prepare", sys.argv[1], "--recipe", "recipes/text/prose.toml", "--set", "data.eos=line"]
assert main() == 0 and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program, benchmark], check=True, capture_output=True)


def test_what_is_prepared_is_said_plainly(capsys, benchmark):
    assert "give --recipe too" in complaint(capsys, "data", "prepare", benchmark)
    assert "belongs to --recipe" in complaint(capsys, "data", "prepare", "ptb", "--set", "data.min_count=2")
    music = ("--recipe", "recipes/music/nottingham-lstm-nade.toml")
    assert "only texts are prepared" in complaint(capsys, "data", "prepare", benchmark, *music)


@pytest.mark.slow
def test_parts_of_hidden_states_are_the_whole(capsys, run, text, tmp_path):
    if "characters" in (run / "recipe.toml").read_text():
        pytest.skip("of words")
    names = ["1/3", "2/3", "3/3"]
    files = [tmp_path / f"{name[0]}.npz" for name in names]
    for name, file in zip(names, files, strict=True):
        output(capsys, "embed", run, text, "--out", file, "--shard", name)
    output(capsys, "embed", run, text, "--out", tmp_path / "all.npz")
    output(capsys, "embed", run, text, "--out", tmp_path / "all.safetensors")
    parts, whole = [np.load(file) for file in files], np.load(tmp_path / "all.npz")
    other = load_file(tmp_path / "all.safetensors")
    for name in whole.files:
        assert np.array_equal(np.concatenate([part[name] for part in parts]), whole[name])
        assert name == "tokens" or np.array_equal(other[name], whole[name])
    assert set(whole.files) == {"tokens", "ids", "sentence", "layer2"}
