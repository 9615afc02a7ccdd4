"""What a person may type by mistake gets one line that names the option, and exit status 2."""

import os
import subprocess
import sys

import pytest

from elman.cli import COMMANDS, main
from support.commands import refusal

MISTAKES = {
    "generate RUN --temperature 0,8": ("--temperature", "0.8"),
    "generate RUN --temperature nan": ("--temperature", "finite"),
    "generate RUN --temperature -1": ("--temperature", "0 or more"),
    "generate RUN --temperature": ("--temperature", "value"),
    "generate RUN --temp 3": ("--temp", "--temperature"),
    "generate RUN --temprature 1": ("--temprature", "--temperature"),
    "generate RUN --length 20": ("--length", "--tokens"),
    "generate RUN --tokens 1.5": ("--tokens", "whole"),
    "generate RUN --tokens many": ("--tokens", "whole"),
    "generate RUN --tokens -1": ("--tokens", "0 or more"),
    "generate RUN --top-k 0": ("--top-k", "1 or more"),
    "generate RUN --top-p 1.5": ("--top-p", "at most 1"),
    "generate RUN --top-p inf": ("--top-p", "finite"),
    "generate RUN --rule adam": ("--rule", "rms or sgd"),
    "generate RUN --unk=3": ("--unk", "no value"),
    "generate RUN --lr 1": ("--lr", "--adapt"),
    "generate RUN --threads 0": ("--threads", "1 or more"),
    "evaluate RUN --device warp": ("--device", "warp"),
    "generate RUN ANOTHER": ("ANOTHER", "too many"),
    "generate": ("RUN", "missing"),
    "compose RUN": ("--out", "missing"),
    "compose RUN --out a.png": ("--out", ".mid", ".wav"),
    "compose RUN --out a.mid --samples 0": ("--samples", "1 or more"),
    "compose RUN --out a.mid --tempo 2": ("--tempo", "4 or more"),
    "translate RUN": ("--source", "missing"),
    "minimal-pairs RUN": ("--pairs", "missing"),
    "train recipes/ptb/small-awd-lstm.toml --patience 5": ("--patience", "--set training.patience=5"),
    "train --resume": ("--resume", "--out"),
    "train": ("RECIPE", "missing"),
    "evaluate RUN --weights 1 x": ("--weights", "number"),
    "evaluate RUN --weights 1 2": ("--weights", "--ensemble"),
    "evaluate RUN --tune": ("--tune", "--method"),
    "evaluate RUN --method dynamc": ("--method", "dynamic"),
    "evaluate RUN --method dynamic --cache-weight 0.2": ("--cache-weight", "cache"),
    "evaluate RUN --method cache --cache-weight 1": ("--cache-weight", "below 1"),
    "evaluate RUN --warm-up -5": ("--warm-up", "0 or more"),
    "score RUN": ("FILE", "missing"),
    "score RUN FILE --by words": ("--by", "word"),
    "score RUN FILE --byy word": ("--byy", "--by"),
    "score RUN FILE --unknown-types 5": ("--unknown-types", "spread"),
    "rescore RUN FILE --kaldi --srilm": ("--kaldi", "--srilm"),
    "embed RUN FILE": ("--out", "missing"),
    "analyze rnak RUN": ("rnak", "rank"),
    "analyze dynamics RUN --kick 0": ("--kick", "or more"),
    "analyze frequency RUN --edges 5 1": ("--edges", "rise"),
    "analyze frequency RUN --edges 1 0": ("--edges", "1 or more"),
    "analyze neighbours RUN w -k 0": ("-k", "1 or more"),
    "grammar generate elman-1991 --complex 1.5": ("--complex", "at most 1"),
    "lab compare --out lab --budget nan": ("--budget", "finite"),
    "reproduce all --scale big": ("--scale", "small"),
    "data prepare": ("NAME", "missing"),
    "trian recipes/x.toml": ("trian", "train"),
    "sample RUN": ("sample", "generate"),
    "--verbose": ("--verbose", "option"),
}


@pytest.mark.slow
def test_a_wrong_command_line(capsys):
    for command, words in MISTAKES.items():
        line = refusal(capsys, *command.split())
        assert line.startswith("elman: ")
        for word in words:
            assert word in line, command


def test_a_free_text_may_begin_with_a_hyphen(capsys, tmp_path):
    assert "is not a run folder" in refusal(capsys, "generate", tmp_path, "--prompt", "-la la", "--seed", "3")
    assert "is not a run folder" in refusal(capsys, "score", tmp_path, "-")


@pytest.mark.slow
def test_help_fits_80_columns_without_colour(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for command in (name for group in COMMANDS.values() for name in group):
        assert main([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert text.startswith("Usage: elman "), command
        assert "\x1b" not in text, command
        assert max(map(len, text.splitlines())) <= 80, command


def test_help_gives_defaults_and_ranges(capsys):
    assert main(["generate", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("--temperature X>=0", "--top-p 0<X<=1", "[default: 200]", "{rms,sgd}", "[default: 5e-05; sgd: 0.1]"):
        assert words in text


@pytest.mark.slow
def test_a_closed_pipe_ends_a_command_quietly():
    read = subprocess.Popen([sys.executable, "-c", "pass"], stdin=subprocess.PIPE)
    command = [sys.executable, "-m", "elman", "grammar", "generate", "elman-1991", "--sentences", "20000"]
    done = subprocess.run(command, stdout=read.stdin, stderr=subprocess.PIPE, text=True)
    read.stdin.close()
    read.wait()
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [["models", "list"], ["--help"]])
def test_a_closed_pipe_ends_a_table_quietly(capsys, monkeypatch, command):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(command) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limit")
def test_a_limit_at_which_torch_ends_without_a_word(capsys, monkeypatch):
    import resource

    limits = iter([((1 << 30) - 1, -1), (1 << 30, 1 << 30), (-1, -1)])
    monkeypatch.setattr(resource, "getrlimit", lambda kind: next(limits) if kind == resource.RLIMIT_AS else None)
    assert "1023 MB of memory, and torch needs 1 GB" in refusal(capsys, "models", "list")
    assert [main(["models", "list"]) for _ in range(2)] == [0, 0]


@pytest.mark.slow
def test_completion_of_the_shell_knows_commands_and_options():
    from elman.cli import application

    script = application().generate_completion(shell="bash")
    assert "minimal-pairs" in script
    assert "--temperature" in script
