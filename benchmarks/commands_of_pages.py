"""Executes commands of README and manual that need no training, download or server; lists the others, and why.

Names of runs stand for one small model of a made-up text, names of files for small files. A command has `--limit`
seconds of processor time. `--out` is the list, a Markdown page; `--pages` limits it to some pages.
"""

import argparse
import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import test_project  # noqa: E402
from elman.cli import main  # noqa: E402

REASONS = (
    (r"^(pip|uvx|jupyter|make)\b|^\. ", "installs, or starts another program"),
    (r"hf://|HF_TOKEN|--push|models (fetch|publish)|lm_eval|\blarge\b|models\.toml", "needs the Hub or a registry"),
    (r"^(curl|python -m http)|elman serve|--interactive", "needs a server or a person: tests/serve, tests/cli"),
    (r"^(python|torchrun|ELMAN_)|--launcher", "a benchmark, several processes or a cluster"),
    (r"data prepare|data info [a-z0-9-]+$|evaluate shakespeare|--pairs blimp", "needs a corpus that is downloaded"),
    (r"elman data programs", "writes 400,000 programs: tests/data/test_programs.py"),
    (r"elman (train|demo)\b", "trains: tests/config/test_published_recipes.py, tests/network/cores/test_one_key.py"),
    (r"elman (reproduce|sweep|lab (compare|heads|lesson))", "trains several models: tests/study"),
    (r"\b(COMMAND|RUN|FILE|MODEL|TEXT|NAME|OUT|DIR|A B|RECIPE|REFERENCES|WEIGHTS|TABLE)\b", "a form with placeholders"),
    (r"compose|forecast|translate|elman (tag|parse)|attention|phrases", "another kind than text: tests/kinds"),
    (r"nottingham|headlines|tagger|parser|labels|mackey", "another kind than text: tests/kinds"),
    (r"grammar test|analyze (trajectory|stability|dynamics)", "a grammar or constraints: tests/cli, tests/analysis"),
    (r"import fastai|runs/(doc|mos)\b|neighbours|runs/open", "foreign weights, mixtures or spelling: tests/cli"),
    (r"metrics|data trees|given\.ptb|reading-times|nbest/|news|suite\.json", "files of other programs: tests/cli"),
)
LINES = "my lord , the king is dead .\nthe sea was high and the night was long .\nwho are you , sir ?\n" * 12
GRAMMAR = "The boy sees boys .\nGirls see the girl .\n" * 12
TEMPLATE = """text = "the {noun} {verb} dead ."
[slots.noun]
singular = ["king", "lord"]
plural = ["boys", "girls"]
[slots.verb]
agrees = "noun"
singular = ["is"]
plural = ["are"]
"""
ROWS = (
    ("item", "condition", "sentence"),
    *((item, label, f"the king | {verb} dead") for item in "12" for label, verb in (("a", "is"), ("b", "was"))),
)
PAIR = '{"sentence_good": "the king is .", "sentence_bad": "the king are .", "UID": "one"}\n'
SIZES = ("model.core.sizes=[20]", "model.encoder.size=20", "data.eos=line")
FILES = ["play", "sonnet", "chapter", "lines", "first", "rest", "other-text", "letter", "sentences"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", nargs="*", default=[], help="such as README.md index.md (default: all)")
    parser.add_argument("--minutes", type=float, default=60, help="after these nothing more is executed")
    parser.add_argument("--limit", type=int, default=40)
    return parser.parse_args()


def found():
    """Every command of README and manual once, with its first page."""
    lines = {}
    first = [test_project.READMES[0], *(ROOT / "docs" / f"{name}.md" for name in ("index", "questions"))]
    for page in dict.fromkeys([*first, *sorted((ROOT / "docs").glob("*.md"))]):
        for _, words in test_project.command_lines(page):
            lines.setdefault(tuple(words), test_project.name(page))
    return lines


def reason(line):
    return next((why for pattern, why in REASONS if re.search(pattern, line)), None)


def prepare(lines):
    """The small runs and texts that the commands of this folder name."""
    Path("novel.txt").write_text((LINES + GRAMMAR) * 20)
    settings = [word for size in SIZES for word in ("--set", size)]
    began = ["train", "recipes/text/prose.toml", "--data", "novel.txt", "--out", "small", "--epochs", "1", *settings]
    print(run([*began, "--no-baselines"], 120))
    began[began.index("small")] = "letters"
    print(run([*began, "--no-baselines", "--set", "data.tokenisation=characters", "--set", "data.min_count=1"], 120))
    for name in {name for words in lines for name in re.findall(r"\bruns/[\w-]+", " ".join(words))}:
        shutil.copytree("letters" if name == "runs/characters" else "small", name)
    for file in FILES:
        Path(f"{file}.txt").write_text(LINES)
    for file, mark in (("items.tsv", "\t"), ("items.csv", ",")):
        Path(file).write_text("".join(mark.join(row) + "\n" for row in ROWS))
    Path("my-pairs.tsv").write_text("good\tbad\n" + "the king is dead .\tthe king are dead .\n" * 4)
    Path("template.toml").write_text(TEMPLATE)
    for name in ("nbest", "valid"):
        Path(f"{name}.tsv").write_text("1\t-1\t-2\tthe king is dead\n1\t-2\t-1\tthe king was dead\n")
    Path("valid.txt").write_text("1 the king is dead\n")
    print(run(["ngram", "train", "novel.txt", "--out", "novel.arpa.gz"], 60))
    for name in ("demo", "5gram", "model", "ptb"):
        shutil.copy("novel.arpa.gz", f"{name}.arpa.gz")


def run(words, limit):
    """Exit status of a command in this process, and the last line of what it complains of."""
    said = io.StringIO()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = main(list(words))
    except SystemExit as end:
        status = end.code
    except TimeoutError:
        return 124, f"longer than {limit} seconds of processor time"
    except Exception as error:  # a page of results names it
        return 1, f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    last = (said.getvalue().strip().splitlines() or [""])[-1]
    return status or 0, last.replace(f"{Path.cwd()}/", "").replace(str(Path.home()), "~")


def expanded(words):
    """Words, with the names that a pattern such as runs/* stands for, as a shell does."""
    return [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else []) or [word]]


def stop(*_):
    raise TimeoutError


def listed(lines, limit, minutes):
    """Rows (command, page, outcome) of all commands."""
    end = time.monotonic() + 60 * minutes
    for words, page in lines.items():
        line = shlex.join(words)
        why = reason(line)
        if why is None and time.monotonic() > end:
            why = "not executed in this call: its minutes were over"
        elif why is None:
            began = time.process_time()
            status, last = run(expanded(words[1:]), limit)
            why = (
                f"executed, {time.process_time() - began:.1f} s"
                if status == 0
                else f"status {status}: {last[:150]}".replace("`", "'")
            )
        yield f"`{line}`", page.removeprefix("docs/"), why


def write(path, rows):
    executed = sum(row[2].startswith("executed") for row in rows)
    head = (
        "# Commands of README and manual\n\nWritten by `python benchmarks/commands_of_pages.py --out FILE`: of"
        f" {len(rows)} commands {executed} were executed with a small run and small files; the others are"
        " listed with the reason, or with what they said. Every one of them parses (`tests/test_project.py`).\n\n"
        "| command | page | outcome |\n|---|---|---|\n"
    )
    lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)
    path.write_text(head + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    options = arguments()
    out = options.out.resolve()
    commands = {words: page for words, page in found().items() if not options.pages or Path(page).name in options.pages}
    signal.signal(signal.SIGPROF, stop)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        (Path(folder) / "recipes").symlink_to(ROOT / "recipes")
        prepare(commands)
        table = []
        for row in listed(commands, options.limit, options.minutes):
            table.append(row)
            write(out, table)
        os.chdir(ROOT)
