"""elman docs: the pages that come with the package; folders that a checkout on Windows has as files."""

import json
from pathlib import Path

import elman.files
from elman.cli import docs
from elman.files import shipped_folder
from support.commands import output, refusal

PAGES = Path(__file__).parents[2] / "docs"


def test_the_list_has_every_page_and_its_title(capsys):
    found = json.loads(output(capsys, "docs", "--json"))
    assert sorted(found) == sorted(path.stem for path in PAGES.glob("*.md"))
    assert found["training"] == "Training"
    assert "trees-and-tags" in output(capsys, "docs")


def test_a_page_is_shown_under_both_names(capsys):
    text = output(capsys, "docs", "training")
    assert text == output(capsys, "docs", "docs/training.md")
    assert text.startswith("# Training\n")
    assert json.loads(output(capsys, "docs", "training", "--json"))["text"] == (PAGES / "training.md").read_text(
        "utf-8"
    )


def test_links_to_pages_are_commands(capsys):
    assert "(elman docs training)" in output(capsys, "docs", "index")
    assert "](training.md" not in output(capsys, "docs", "index")


def test_a_page_that_is_not_there(capsys):
    assert "did you mean training?" in refusal(capsys, "docs", "trainin")


def test_a_link_that_was_checked_out_as_a_file(tmp_path, monkeypatch):
    package = tmp_path / "src" / "elman"
    package.mkdir(parents=True)
    monkeypatch.setattr(elman.files, "__file__", str(package / "files.py"))
    (package / "recipes").write_text("../../recipes")
    assert shipped_folder("recipes") == tmp_path / "recipes"
    (package / "docs").mkdir()
    assert shipped_folder("docs") == package / "docs"
    assert docs.FOLDER.is_dir()
