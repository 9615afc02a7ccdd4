"""`~` in the paths of a command line: the home folder in every form of an option, and users that do not exist."""

import ast
import os
from pathlib import Path

import pytest

import elman
from elman import config
from elman.cli import application, main
from elman.cli.paths import NAMES
from elman.files import expanded
from elman.tasks.proposal import choose
from support import text_runs
from support.commands import commands_of, output, refusal

ROOT = Path(elman.__file__).parent
NOBODY = "~nobody-of-this-name"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home folder, and another one from which commands are called."""
    folder, here = tmp_path / "home", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(here)
    return folder


@pytest.fixture
def recipe(home):
    path = home / "recipe.toml"
    path.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    return path


def arguments(*words):
    return application().parse_args(words)[1].arguments


def test_a_path_begins_in_a_home_folder_or_stays_as_it_is(home):
    assert [expanded("~/x"), expanded(Path("~")), expanded("a/~/x")] == [home / "x", home, Path("a/~/x")]
    assert expanded(f"{NOBODY}/x") == Path(f"{NOBODY}/x")


@pytest.mark.slow
def test_paths_are_expanded_in_one_place():
    """`Path.expanduser` raises RuntimeError where there is no such user, which no command expects."""
    calls = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "expanduser"
    ]
    assert calls == ["files.py"]


def test_an_option_with_its_value_behind_a_sign_of_equality(home):
    given = arguments("demo", "--out=~/run", "--data=~/novel.txt")
    assert (given["out"], given["data"]) == (home / "run", str(home / "novel.txt"))
    assert arguments("lab", "compare", "--out=~/lab")["trials"].out == home / "lab"
    given = arguments("evaluate", "~/a", "~/b", "--data=~/novel.txt", "--mix=~/five.arpa=0.5")
    assert given["runs"] == (home / "a", home / "b")
    assert str(home / "novel.txt") in repr(given)
    assert repr(str(home / "five.arpa=0.5")) in repr(given)
    assert arguments("models", "list", "--registry=~/registry.toml")["registry_"] == str(home / "registry.toml")
    assert arguments("ngram", "train", "~/text/*.gz", "--out=~/m.arpa")["source"] == str(home / "text/*.gz")


def test_what_is_no_path_stays_as_it_is():
    assert arguments("generate", "~/run", "--prompt=~/x")["prompt"] == "~/x"
    assert arguments("score", "run", "-")["file"] == "-"
    assert arguments("models", "list", "--registry=http://localhost//x")["registry_"] == "http://localhost//x"
    assert arguments("train", "r.toml", "--set", "title=~/x")["settings"] == ("title=~/x",)


@pytest.mark.slow
def test_the_names_of_files_in_help():
    """What help calls a file is expanded, and every name of the list is one of an argument."""
    found = set()
    for command in commands_of():
        app = application().parse_commands(command)[1][-1]
        for argument in app.assemble_argument_collection() if app.default_command is not None else ():
            found |= {argument.parameter.metavar or "", argument.name}
    assert found >= NAMES
    assert {name for name in found if name.startswith(("FILE", "DATA"))} <= NAMES


@pytest.mark.parametrize(
    "command",
    [
        "evaluate {nobody}/run",
        "generate {nobody}/run",
        "info {nobody}/run",
        "compare {nobody}/run {nobody}/run",
        "train {nobody}/recipe.toml",
        "train {recipe} --data {nobody}/novel.txt",
        "train {nobody}/novel.txt",
        "train --resume --out {nobody}/run",
        "sweep {recipe} --resume --out {nobody}/sweep",
        "sweep --resume --out {nobody}/sweep",
        "models list --registry {nobody}/registry.toml",
    ],
)
def test_a_user_who_does_not_exist_is_one_line(capsys, recipe, command):
    words = command.format(nobody=NOBODY, recipe=recipe).split()
    assert NOBODY in refusal(capsys, *words)


def test_a_cache_of_a_user_who_does_not_exist(capsys, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", f"{NOBODY}/cache")
    assert f"{NOBODY}/cache" in refusal(capsys, "minimal-pairs", "shakespeare", "--pairs", "blimp")


def test_an_estimate_finds_data_in_the_home_folder(capsys, home, recipe):
    text_runs.write_corpus(home / "corpus")
    printed = output(capsys, "train", recipe, "--data=~/corpus", "--dry-run")
    assert "time in all" in printed
    assert "on a GPU" in printed
    assert "time in all" in output(capsys, "train", recipe, "--set", "data.corpus=~/corpus", "--dry-run")


@pytest.mark.slow
def test_a_recipe_is_chosen_for_data_in_the_home_folder(capsys, home, monkeypatch):
    monkeypatch.setattr(choose, "TIMED_SECONDS", 0.0)
    (home / "novel.txt").write_text("The old man went down to the harbour .\n" * 240)
    options = ("--dry-run", "--device", "cpu", "--set", "training.epochs=1")
    assert main(["train", "--data=~/novel.txt", "--out=~/runs/novel", *options]) == 0
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"--data {home / 'novel.txt'}" in line
    assert f"--out {home / 'runs' / 'novel'}" in line


def test_a_plugin_in_the_home_folder(capsys, home):
    assert str(home / "none.py") in refusal(capsys, "--plugin=~/none.py", "recipes")
    assert str(home) not in os.environ.get("ELMAN_PLUGINS", ""), "what cannot be loaded is not for child processes"


@pytest.mark.parametrize("out", [["--out", ""], ["--out="]])
def test_an_empty_path_is_not_the_working_folder(capsys, recipe, out):
    assert refusal(capsys, "train", recipe, *out) == "elman: --out is empty; give a name"
    assert not list(Path().iterdir())


def test_files_and_folders_of_others_are_never_replaced(capsys):
    Path("text.txt").write_text("mine\n")
    assert "text.txt is there already" in refusal(capsys, "ngram", "train", "text.txt", "--out", "text.txt")
    for name in ("sum.json", "test.txt", "corpus.json"):
        (folder := Path(f"of-{name}")).mkdir()
        (folder / name).write_text("mine")
        for command in (
            ["reproduce", "bf16-training", "--out", folder],
            ["data", "programs", folder],
            ["grammar", "generate", "elman-1991", "--out", folder],
        ):
            assert f"holds other files ({name}), which could be replaced" in refusal(capsys, *command)
        assert [path.read_text() for path in folder.iterdir()] == ["mine"]
    assert Path("text.txt").read_text() == "mine\n"
