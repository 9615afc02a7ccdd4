"""elman train without a recipe: what is chosen, printed and repeated; and data given to a recipe of another kind."""

import itertools
import json
import random
import re
import shlex

import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.cli.train import _show_sample
from elman.data.text.vocabulary import Vocabulary
from elman.formats import read_json
from elman.tasks.proposal import choose
from elman.tasks.text.run import TextRun
from support.commands import refusal

WORDS = ("the", "old", "man", "went", "down", "to", "a", "harbour", "where", "boats", "lay", "still", "and", "looked")
SMALL = ("--set", "training.epochs=1", "--threads", "1")


@pytest.fixture
def novel(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(choose, "TIMED_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    lines = (" ".join(draw.choices(WORDS, k=9)).capitalize() + "." for _ in range(240))
    path = tmp_path / "novel.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def chosen(capsys, *arguments):
    """The lines of the choice, and the command in them."""
    assert main([str(argument) for argument in arguments]) == 0
    lines = capsys.readouterr().err.splitlines()
    line = next(line for line in lines if line.startswith("the same as: "))
    return lines, shlex.split(line.removeprefix("the same as: "))


@pytest.mark.slow
def test_the_printed_command_gives_the_same_run(capsys, novel):
    lines, command = chosen(capsys, "train", "novel.txt", "--minutes", "0.05", *SMALL)
    assert next(filter(None, lines)) == "chosen for novel.txt and 0.05 min: recipes/text/prose.toml"
    assert command[:5] == ["elman", "train", "recipes/text/prose.toml", "--data", "novel.txt"]
    assert command[-4:] == ["--threads", "1", "--out", "runs/novel"]
    assert any(one.startswith("training.minutes=0.0") for one in command)
    run = novel.parent / "runs" / "novel"
    command[command.index("--out") + 1] = "again"
    assert main(command[1:]) == 0
    again = novel.parent / "again"
    assert (again / "recipe.toml").read_text() == (run / "recipe.toml").read_text()
    assert (again / "vocabulary.tsv").read_text() == (run / "vocabulary.tsv").read_text()
    recipe = config.load_recipe(run / "recipe.toml")
    assert (recipe.title, recipe.training.epochs, recipe.data.eos) == ("novel (words)", 1, "line")
    assert "novel (words)" in (run / "report.html").read_text()


@pytest.mark.slow
def test_reasons_and_command_follow_the_settings_of_the_user(capsys, novel):
    wanted = ("model.core.sizes=[24, 16]", "model.encoder.size=16", "training.epochs=5", "data.eos=none")
    own = [*(word for one in wanted for word in ("--set", one)), *SMALL]
    lines, command = chosen(capsys, "train", "novel.txt", "--minutes", "0.05", *own)
    keys = [one.partition("=")[0] for before, one in itertools.pairwise(command) if before == "--set"]
    assert len(keys) == len(set(keys))
    assert {"model.core.sizes=[24, 16]", "training.epochs=1", "data.eos=none"} <= set(command)
    reasons = [line.strip() for line in lines if line.startswith("  ")]
    assert "as given: model.core.sizes=[24, 16], model.encoder.size=16, training.epochs=1, data.eos=none" in reasons
    assert re.match(r"1 epoch of .* would be enough for data of this size", reasons[1])
    assert not [line for line in reasons[:3] if re.search("layers of|lines are units|wrapped", line)]
    recipe = config.load_recipe(novel.parent / "runs" / "novel" / "recipe.toml")
    assert (recipe.model.core.sizes, recipe.training.epochs) == ((24, 16), 1)


@pytest.mark.slow
def test_data_by_position_or_by_option(capsys, novel):
    commands = [
        chosen(capsys, "train", *data, "--dry-run", "--seed", 5, "--device", "cpu", *SMALL)[1]
        for data in (["novel.txt"], ["--data", "novel.txt"])
    ]
    assert [command[:5] for command in commands] == [commands[0][:5]] * 2
    assert "seed=5" in commands[0]
    assert commands[0][-2:] == ["--out", "runs/novel"]
    assert not (novel.parent / "runs").exists()


def test_one_line_is_read_without_ends(capsys, novel):
    novel.write_text(novel.read_text().replace("\n", " "))
    _, command = chosen(capsys, "train", novel, "--dry-run", "--max-minutes", "2", *SMALL)
    assert "data.eos=none" in command
    assert command[-2:] == ["--max-minutes", "2"]


def test_lines_of_json_are_named(capsys, novel):
    lines = "".join(f'{{"text": "{line}"}}\n' for line in novel.read_text().splitlines())
    (novel.parent / "novel.jsonl").write_text(lines)
    reasons, _ = chosen(capsys, "train", "novel.jsonl", "--dry-run", *SMALL)
    assert "  text: lines of JSON, read as it stands" in reasons


def test_figures_of_a_short_text_are_doubted(capsys, novel):
    reasons, _ = chosen(capsys, "train", "novel.txt", "--dry-run", *SMALL)
    assert any(
        re.fullmatch(r"  the test split has 1\d\d tokens: its figures are mostly chance", one) for one in reasons
    )
    novel.write_text(3 * novel.read_text())
    assert not any("chance" in line for line in chosen(capsys, "train", "novel.txt", "--dry-run", *SMALL)[0])


def test_a_script_without_spaces_is_read_in_characters(capsys, novel):
    novel.write_text("吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n" * 60, encoding="utf-8")
    _, command = chosen(capsys, "train", novel, "--dry-run", *SMALL)
    assert command[2] == "recipes/text/characters.toml"


def test_a_text_with_spaces_is_read_in_characters_where_they_are_asked_for(capsys, novel):
    asked = ("--set", "data.tokenisation=characters")
    lines, command = chosen(capsys, "train", "novel.txt", "--dry-run", *asked, *SMALL)
    assert command[2] == "recipes/text/characters.toml"
    assert "  every line break is a symbol" in lines


@pytest.mark.slow
def test_series_and_pairs(capsys, novel):
    values = np.sin(np.arange(600) / 5)
    table = novel.parent / "waves.csv"
    table.write_text("\n".join(f"{value:.4f},{other:.4f}" for value, other in itertools.pairwise(values)) + "\n")
    _, command = chosen(capsys, "train", table, "--dry-run", *SMALL)
    assert command[2] == "recipes/series/table.toml"
    assert "title=waves (series)" in command
    pairs = novel.parent / "pairs.tsv"
    pairs.write_text("".join(f"{line}\t{line[:9]}\n" for line in novel.read_text().splitlines()))
    _, command = chosen(capsys, "train", pairs, "--dry-run", "--minutes", "0.1", *SMALL)
    assert command[2] == "recipes/headlines/small-encdec.toml"
    assert "data.valid=12" in command


def test_what_cannot_be_chosen(capsys, novel):
    (novel.parent / "scan.txt").write_bytes(b"%PDF-1.7" + bytes(40))
    line = refusal(capsys, "train", "scan.txt")
    assert line == "elman: scan.txt: this is a PDF file; convert it to plain text, MIDI or a table of numbers first"
    assert "no data are there" in refusal(capsys, "train", "nothing.txt")
    assert "names data too" in refusal(capsys, "train", "novel.txt", "--data", "novel.txt")
    line = refusal(capsys, "train", "recipes/text/prose.toml", "--data", "novel.txt", "--minutes", "3")
    assert line.startswith("elman: --minutes belongs to data without a RECIPE")
    line = refusal(capsys, "train")
    assert line.endswith("or data of your own: elman train novel.txt")
    assert refusal(capsys, "train", "novel.txt", "--resume").startswith("elman: runs/novel is not a run folder")
    (novel.parent / "runs" / "novel").mkdir(parents=True)
    (novel.parent / "runs" / "novel" / "recipe.toml").touch()
    assert refusal(capsys, "train", "novel.txt").startswith("elman: runs/novel already holds a run; add --resume")
    assert "is a run folder; to repeat it" in refusal(capsys, "train", "runs/novel")


@pytest.mark.slow
def test_no_size_is_chosen_for_no_time(capsys, novel):
    line = refusal(capsys, "train", "novel.txt", "--minutes", "0", *SMALL)
    assert line == "elman: --minutes is 0; it must be above 0"
    line = refusal(capsys, "train", "novel.txt", "--max-minutes", "0", *SMALL)
    assert line == "elman: --max-minutes 0 leaves no time for which a size could be chosen; give --minutes too"
    lines, command = chosen(
        capsys, "train", "novel.txt", "--minutes", "0.05", "--max-minutes", "0", "--dry-run", *SMALL
    )
    assert next(filter(None, lines)) == "chosen for novel.txt and 0.05 min: recipes/text/prose.toml"
    assert command[-2:] == ["--max-minutes", "0"]


def test_a_place_that_cannot_hold_a_run_is_refused_before_anything_is_chosen(capsys, novel):
    assert refusal(capsys, "train", "novel.txt", "--out", "novel.txt") == (
        "elman: novel.txt is a file; choose a folder for --out"
    )


@pytest.mark.parametrize(
    ("recipe", "name", "data", "looks"),
    [
        ("music/nottingham-gru.toml", "novel.txt", b"It was a bright\ncold day\n" * 30, "text"),
        ("shakespeare/demo.toml", "mine.mid", b"MThd\0\0\0\6", "a MIDI file"),
        ("series/table.toml", "novel.txt", b"It was a bright\ncold day\n" * 30, "text"),
        ("headlines/small-encdec.toml", "novel.txt", b"It was a bright\ncold day\n" * 30, "text"),
        ("text/prose.toml", "scan.txt", b"%PDF-1.7\n", "a PDF file"),
    ],
)
def test_data_of_another_kind(capsys, tmp_path, recipe, name, data, looks):
    path = tmp_path / name
    path.write_bytes(data)
    line = refusal(capsys, "train", f"recipes/{recipe}", "--data", path, "--out", tmp_path / "run")
    kind = {"music": "music", "series": "series", "headlines": "pairs"}.get(recipe.split("/")[0], "text")
    assert re.match(rf"elman: {path}: the recipe is for {kind} \(.*\), but this looks like {looks}; ", line)
    assert not (tmp_path / "run").exists()


def test_titles_name_other_data(tmp_path):
    from elman.config.toml import find
    from elman.tasks.open import entitled

    demo, mine = config.load_recipe(find("shakespeare/demo.toml")), tmp_path / "my novel.txt"
    mine.touch()
    assert entitled(demo, mine).title == "my novel (words)"
    assert entitled(demo, "shakespeare") == entitled(demo, tmp_path / "Shakespeare") == entitled(demo, None) == demo
    assert entitled(demo, mine, ["title = mine"]).title == demo.title
    published = config.load_recipe(find("ptb/awd-lstm.toml"))
    assert published.expected is not None
    assert entitled(published, mine).expected is None
    characters = config.load_recipe(find("japanese/characters.toml"))
    assert entitled(characters, tmp_path).title == f"{tmp_path.name} (characters)"
    music, series = (config.load_recipe(find(f"{name}.toml")) for name in ("music/nottingham-gru", "series/table"))
    assert entitled(music, tmp_path / "tunes").title == "tunes (music)"
    assert entitled(series, tmp_path / "table.csv") == series


@pytest.mark.slow
def test_baselines_stand_beside_the_result_and_what_does_not_exceed_them_says_so(capsys, novel):
    assert main(["train", "novel.txt", "--minutes", "0.02", "--set", "training.optimiser.lr=1e-9", *SMALL]) == 0
    printed = capsys.readouterr()
    assert "Kneser-Ney 5-gram" in printed.out
    assert "no better than the baseline" in printed.err
    assert "or use both: elman evaluate RUN --mix 5-gram" in printed.err
    arguments = ["train", "novel.txt", "--minutes", "0.02", "--no-baselines", "--out", "alone", *SMALL]
    assert main(arguments) == 0
    assert "Kneser-Ney" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_network_of_the_run_to_start_from_is_taken(capsys, novel):
    shape = ("--set", "model.core.sizes=[24,16]", "--set", "model.encoder.size=16")
    assert main(["train", "novel.txt", "--minutes", "0.02", "--out", "first", *shape, *SMALL]) == 0
    other = novel.parent / "other.txt"
    other.write_text(novel.read_text().replace("harbour", "garden"))
    assert main(["train", "other.txt", "--minutes", "0.02", "--out", "second", "--init", "first", *SMALL]) == 0
    recipe = config.load_recipe(novel.parent / "second" / "recipe.toml")
    assert (recipe.model.core.sizes, recipe.model.encoder.size) == ((24, 16), 16)
    printed = capsys.readouterr().err
    first, second = (Vocabulary.load(novel.parent / name / "vocabulary.tsv") for name in ("first", "second"))
    assert {*first.words, "garden", "garden."} >= {*second.words} == {*first.words, "garden"}
    assert second.counts[second.ids["harbour"]] == 0 < second.counts[second.ids["garden"]]
    assert f"--init first: {len(first)} of its {len(first)} words are kept, and 1 are added" in printed
    recorded = str(novel.parent / "second" / "recipe.toml")
    assert "data.vocabulary_from" in refusal(capsys, "train", recorded, "--out", "third")
    parameters = sum(one.numel() for one in TextRun(novel.parent / "second").model.parameters())
    for data in (recorded, "other.txt"):  # a recipe, and a text for which one is chosen
        assert main(["train", data, "--out", "third", "--init", "first", "--dry-run", "--json", *shape, *SMALL]) == 0
        assert json.loads(capsys.readouterr().out)["parameters"] == parameters
    assert main(["train", "--resume", "--out", "second", "--epochs", "2", "--set", "training.minutes=3"]) == 0
    assert main(["evaluate", "second", "--data", "novel.txt"]) == 0


def test_a_run_remembers_the_encoding_of_its_data(capsys, novel):
    hebrew = novel.read_text().translate(
        {ord(one): 0x5D0 + ord(one) - ord("a") for one in "abcdefghijklmnopqrstuvwxyz"}
    )
    novel.with_name("he.txt").write_bytes(hebrew.encode("cp1255"))
    _, command = chosen(capsys, "train", "he.txt", "--minutes", "0.05", *SMALL, "--encoding", "cp1255")
    assert command[-2:] == ["--encoding", "cp1255"]
    assert read_json(novel.parent / "runs" / "he" / "data.json")["encoding"] == "cp1255"
    assert main(["evaluate", "runs/he"]) == 0
    assert main(["train", "--resume", "--out", "runs/he", "--epochs", "2", "--set", "training.minutes=3"]) == 0
    capsys.readouterr()
    assert main(["data", "info", "he.txt"]) == 2  # another command knows nothing of it
    assert "he.txt: not UTF-8" in capsys.readouterr().err


def test_what_was_seen_is_named(capsys, novel):
    (novel.parent / "empty").mkdir()
    (novel.parent / "photos").mkdir()
    for name in ("a.jpg", "b.jpg", "c.dat"):
        (novel.parent / "photos" / name).write_bytes(b"\xff\xd8\xff\0")
    assert "(seen: no file; tried: " in refusal(capsys, "train", "empty")
    assert "(seen: 2 .jpg, 1 .dat; tried: " in refusal(capsys, "train", "photos")
    novel.with_name("tune.txt").write_text("X:1\nT:a tune\nM:4/4\nK:C\nCDEF|\n")
    assert "music in ABC notation" in refusal(capsys, "train", "tune.txt")
    novel.with_name("items.tsv").write_text("item\tsentence\n" + "".join(f"{n}\tThe cat.\n" for n in range(1, 9)))
    assert "elman score RUN FILE --column NAME" in refusal(capsys, "train", "items.tsv")
    novel.with_name("wrong.csv").write_text("time,v\n" + "".join(f"2020_{n:02},{n}_5\n" for n in range(1, 13)))
    assert "'1_5' is not a finite number" in refusal(capsys, "train", "wrong.csv")
    assert "there is no such file or folder" in refusal(capsys, "score", "nothere.arpa", "novel.txt")


def test_a_split_far_below_its_share_is_reported(capsys, novel):
    lines = ["The cat sleeps here now.\n"] * 760
    novel.with_name("long.txt").write_text("".join(lines) + "word " * 199 + "end\nA small end.\n")
    assert main(["train", "recipes/text/prose.toml", "--data", "long.txt", "--set", "data.eos=line", "--dry-run"]) == 0
    assert "long.txt: the test split has 13 bytes, where its share of the text is 1,00" in capsys.readouterr().err


def test_a_split_of_words_has_no_hint_to_cut_at_words(capsys, novel):
    novel.with_name("few.txt").write_text("word " * 20 + "a")
    assert main(["train", "few.txt", "--dry-run", "--set", "training.batch_size=1"]) == 2
    found = capsys.readouterr().err
    assert "where its share of the text is 5, since words are not cut\n" in found
    assert "data.eos=none cuts" not in found


@pytest.mark.parametrize(("text", "shown"), [("word " * 90, "word " * 79 + "word"), ("语言" * 300, "语言" * 200)])
def test_a_printed_sample_ends_with_a_whole_word_where_there_are_words(capsys, tmp_path, text, shown):
    (tmp_path / "samples.json").write_text(json.dumps([{"text": text}]))
    _show_sample(tmp_path)
    assert capsys.readouterr().out == f"\na sample:\n{shown}\n"
