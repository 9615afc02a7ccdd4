"""Tables on standard output."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from elman.cli import show
from elman.evaluation.result import Result

NUMBERS = ["12", "-0.5", ".977", "1,234 ± 5", "", "-", "inf", "nan", "<.001", "~3", "(2)", "5 %"]


def column(cells, capsys):
    """The second column of a printed table, its heading first, as wide as it is."""
    show.print_table("title", ["name", "a long heading"], [[f"row {n}", cell] for n, cell in enumerate(cells)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line[:1] in "│┃"]
    return [line.replace("┃", "│").split("│")[2][1:-1] for line in lines]


def test_numbers_are_aligned_to_the_right(capsys):
    heading, *cells = column(NUMBERS, capsys)
    assert cells == [cell.rjust(len(heading)) for cell in NUMBERS]


@pytest.mark.parametrize("words", ["valid", "bf16", "- none", "infinite memory"])
def test_words_are_aligned_to_the_left(words, capsys):
    heading, first, second = column(["1.5", words], capsys)
    assert second == words.ljust(len(heading))
    assert first == "1.5".ljust(len(heading))


def test_figures_of_a_diverged_model_are_short(capsys):
    row = Result.of(split="test", nll=2e5, perplexity=1e304, bits_per_token=3e5, tokens=3, characters=3, words=3)
    show.print_figures("title", "run", [("run", row)])
    printed = capsys.readouterr().out
    assert "1e+304" in printed
    assert "200000.0000" in printed


@pytest.mark.parametrize(("columns", "turned"), [("120", False), ("60", True)])
def test_a_table_that_is_too_wide_is_turned(capsys, monkeypatch, columns, turned):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", columns)
    header = ["run", "split", "perplexity", "nats/token", "bits/token", "bits/char"]
    show.print_table("figures", header, [["one", "test", "97.07", "4.5754", "6.6009", "2.1868"]])
    lines = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out).splitlines()
    assert lines[0] == "figures"
    assert any("97.07" in line and "perplexity" in line for line in lines) == turned
    assert max(map(len, lines)) <= int(columns)


def test_no_word_of_a_table_of_many_rows_is_broken_at_80_columns(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    header = ["model", "split", "perplexity", "nats/token", "bits/token", "bits/character", "tokens", "unknown"]
    show.print_table("", header, [["Kneser-Ney 5-gram", "valid", *["1234.5678"] * 4, "18,282", "1,255"]] * 4)
    printed = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    assert {"perplexity", "character", "Kneser-Ney", "unknown", "1234.5678"} <= set(re.findall(r"[\w.-]+", printed))
    assert max(map(len, printed.splitlines())) <= 80


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    code = "import sys; from elman.cli import LastingLog; log = LastingLog(sys.stderr)\n"
    code += "for _ in range(9): print('line', file=log, flush=True)\nprint(log.fileno(), log.isatty(), 'done')"
    command = [sys.executable, "-c", code]
    if (full := Path("/dev/full")).exists():
        with full.open("w") as stream:
            found = subprocess.run(command, stderr=stream, stdout=subprocess.PIPE, text=True)
        assert (found.returncode, found.stdout) == (0, "2 False done\n")
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run(command, stderr=write, stdout=subprocess.PIPE, text=True)
    os.close(write)
    assert (found.returncode, found.stdout) == (0, "2 False done\n")


def test_words_of_a_command_line_that_is_no_utf_8_are_written_as_they_came(capsysbinary, tmp_path):
    show.write_or_print(None, "fish\t\udcff\n", "1 line")
    show.write_or_print(tmp_path / "a", "fish\t\udcff\n", "1 line")
    assert capsysbinary.readouterr().out == b"fish\t\xff\n" + f"{tmp_path / 'a'}: 1 line\n".encode()
    assert (tmp_path / "a").read_bytes() == b"fish\t\xff\n"
