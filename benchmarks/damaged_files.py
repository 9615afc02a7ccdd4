"""Do damaged files of users end in one line? Damages files other than run folders, and reads them with a command.

    python benchmarks/damaged_files.py [--count 1000] [--seed 0] [--only NUMBER] [--limit 10] [--json]

Trees, tables, tags, pairs, MIDI, ARPA, archives, plug-ins, registries, n-best lists, stimuli, minimal pairs, grammars,
recipes and texts are damaged in a way drawn at random (`damage.BYTES` and those here), and read by the command that
reads such files, in a fork of this process (Linux). Files of a page without a server are read by node, where there is
one, as the page itself reads them, with its own scripts and runtime. Faults are tracebacks, signals, more than
`--limit` seconds, endings that are not one line, and other answers of a page, which has the digests of its files.
What is read with the same answer as before, though bytes changed, is listed for judgement. Exit status 1 on a fault.
"""

import collections
import gzip
import io
import json
import os
import random
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import torch
from backports import zstd

import damage
import tiny_runs
from elman.cli import main as elman
from elman.serve import static
from elman.serve.static import fetched
from mutations import options_of

RUNS = ("text", "pairs", "series", "trees", "tags", "music")

MORE: dict[str, damage.Change] = {
    "NUL bytes": lambda data, draw: _at(data, draw, b"\0" * draw.randint(1, 3)),
    "a control character": lambda data, draw: _at(data, draw, bytes([draw.choice([1, 7, 8, 11, 12, 27, 28, 127])])),
    "invalid UTF-8": lambda data, draw: _at(data, draw, draw.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88"])),
    "a huge number": lambda data, draw: _number(data, draw, draw.choice([b"9" * 400, b"1e999", b"-1", b"nan", b"0"])),
    "twice": lambda data, draw: data + data,  # noqa: ARG005
    "a long line": lambda data, draw: _at(data, draw, b"x" * 100_000),
}


def _at(data: bytes, draw: random.Random, new: bytes) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + new + data[place:]


def _number(data: bytes, draw: random.Random, new: bytes) -> bytes:
    places = [place for place, byte in enumerate(data) if 48 <= byte < 58]
    if not places:
        return _at(data, draw, new)
    place = end = draw.choice(places)
    while end < len(data) and 48 <= data[end] < 58:
        end += 1
    return data[:place] + new + data[end:]


class Case(NamedTuple):
    """A file, and the command that reads it; FILE stands for its damaged copy, OUT for a new place."""

    kind: str
    name: str
    data: bytes
    command: tuple[str, ...]
    beside: Path | None = None
    """A folder whose other files stand beside the damaged one."""


PAGE = (
    "files.json",
    "runs.json",
    "begin.js",
    "sampling.js",
    "ort-wasm-simd-threaded.wasm",
    "m/model.json",
    "m/model.onnx",
)
"""Files of a page without a server that are damaged; `m`: the folder of its model."""

ASKED = """
import { Local } from "./local.js";
const local = new Local();
await local.open();
const { marks } = await local.ask("score", { text: "w1 w2 w3 w1" });
process.stdout.write(JSON.stringify(marks.map((one) => one.bits)));
"""
"""In the place of main.js: what the page would show is printed."""

BROWSER = """
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const said = {};
process.chdir(process.argv[1]);
const there = (id) => (["title", "status"].includes(id) ? (said[id] ??= {}) : null);
globalThis.document = { body: { dataset: {} }, getElementById: there };
globalThis.fetch = async (name) =>
  new Response(existsSync(name) ? readFileSync(name) : null, { status: existsSync(name) ? 200 : 404 });
try {
  await import(pathToFileURL("begin.js"));
  if (!("begun" in document.body.dataset)) throw new Error("nothing begins");
} catch (error) {  // opened.js says it
  said.status = { textContent: `begin.js is missing or damaged (${error.message})` };
}
process.on("exit", () => {  // what was begun and is not waited for has ended too
  if (!said.status) return;
  console.error(`elman: ${said.status.textContent}`);
  process.exitCode = 2;
});
"""
"""What node has for a browser."""


class Outcome(NamedTuple):
    """How a command ended: its status (negative: a signal; None: no answer in time) and what it printed."""

    status: int | None
    out: str
    err: str


def page_cases(run: str, package: Path, page: Path) -> list[Case]:
    """Files of a page without a server."""
    run_quietly(["export", run, "--to", "web", "--package", str(package), "--out", str(page)])
    (page / "main.js").write_text(ASKED)
    (page / "model-1").rename(page / "m")
    (page / "runs.json").write_text((page / "runs.json").read_text().replace('"model-1"', '"m"'))
    (page / "files.json").unlink()
    static.write_list(page)
    command = ("node", "--input-type=module", "-e", BROWSER, "HERE")
    return [Case(f"page: {name}", name, (page / name).read_bytes(), command, page) for name in PAGE]


def cases(base: Path) -> list[Case]:
    """Small files of every kind."""
    package = fetched() if shutil.which("node") else None
    os.environ["ELMAN_CACHE"] = str(base / "cache")
    run = {}
    for kind in RUNS:
        data = tiny_runs.write_data(kind, base / f"{kind}-data")
        run[kind] = str(base / kind)
        tiny_runs.train(kind, data, base / kind)
    text = (base / "text-data" / "test.txt").read_bytes()
    trees, series = (base / "trees-data" / "trees.ptb").read_bytes(), (base / "series-data" / "series.csv").read_bytes()
    pairs, rolls = (base / "pairs-data" / "pairs.tsv").read_bytes(), (base / "music-data" / "rolls.npz").read_bytes()
    sentences = text.decode().splitlines()
    few = "\n".join(sentences[:6]) + "\n"
    nbest = "".join(f"u{n // 3}\t{-1.5 * n}\t{line}\n" for n, line in enumerate(sentences[:9])).encode()
    table = (
        "item\tcondition\ttext\n" + "".join(f"{n}\tc{n % 2}\t{line}\n" for n, line in enumerate(sentences))
    ).encode()
    minimal = "".join(f"{one}\t{two}\n" for one, two in zip(sentences[:10], sentences[10:], strict=True)).encode()
    blimp = "".join(
        json.dumps({"sentence_good": one, "sentence_bad": two, "UID": "x", "pairID": str(n)}) + "\n"
        for n, (one, two) in enumerate(zip(sentences[:8], sentences[8:16], strict=True))
    ).encode()
    columns = "".join(
        f"{word}\t{'NN' if len(word) > 2 else 'VB'}\n" if word else "\n"
        for line in sentences
        for word in (*line.split(), "")
    ).encode()
    arpa = base / "three.arpa"
    run_quietly(["ngram", "train", str(base / "text-data" / "train.txt"), "--order", "3", "--out", str(arpa)])
    tune = base / "tune.mid"
    run_quietly(["compose", run["music"], "--steps", "12", "--seed", "1", "--out", str(tune)])
    grammar = (Path(elman.__code__.co_filename).parents[1] / "data" / "grammar" / "prepositions.grammar").read_bytes()
    plugin = b"from elman.network.cells.cell import Driven\nNUMBER = 5\nELMAN = {}\n"
    digest = "0" * 64
    registry = (
        f'[small]\ntitle = "t"\nkind = "text"\nparameters = 5\nlicence = "x"\ndata = "d"\n[small.archive]\n'
        f'urls = ["a.zip"]\nbytes = 10\nsha256 = "{digest}"\n[small.files]\n"model.safetensors" = "{digest}"\n'
    ).encode()
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with (
        zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive,
        tarfile.open(fileobj=tarred, mode="w:gz") as tar,
    ):
        for name in ("train", "valid", "test"):
            part = (base / "text-data" / f"{name}.txt").read_bytes()
            archive.writestr(f"{name}.txt", part)
            info = tarfile.TarInfo(f"{name}.txt")
            info.size = len(part)
            tar.addfile(info, io.BytesIO(part))
    whole_trees, whole_text = str(base / "trees-data" / "trees.ptb"), str(base / "text-data" / "test.txt")
    compose = ("compose", run["music"], "--prompt-midi", "FILE", "--steps", "4", "--seed", "1", "--out", "OUT.mid")
    look = ("data", "info", "FILE", "--json")
    return [
        Case("trees", "a.ptb", trees, ("evaluate", run["trees"], "--data", "FILE", "--json")),
        Case("trees to parse", "a.ptb", trees[:2000].rpartition(b"\n")[0], ("parse", run["trees"], "FILE", "--given")),
        Case(
            "trees to measure",
            "a.ptb",
            trees,
            ("metrics", "FILE", whole_trees, "--kind", "trees"),
        ),
        Case("series", "a.csv", series, ("evaluate", run["series"], "--data", "FILE", "--json")),
        Case("series to look at", "a.csv", series, look),
        Case("tags", "a.tsv", columns, look),
        Case("tagged trees", "a.ptb", trees, ("evaluate", run["tags"], "--data", "FILE", "--json")),
        Case("pairs", "a.tsv", pairs, ("evaluate", run["pairs"], "--data", "FILE", "--json")),
        Case("rolls", "a.npz", rolls, ("evaluate", run["music"], "--data", "FILE", "--json")),
        Case("MIDI", "a.mid", tune.read_bytes(), compose),
        Case("ARPA", "a.arpa", arpa.read_bytes(), ("ngram", "score", "FILE", whole_text, "--json")),
        Case("ARPA facts", "a.arpa", arpa.read_bytes(), ("ngram", "info", "FILE", "--json")),
        Case("gz", "a.txt.gz", gzip.compress(text, mtime=0), ("score", run["text"], "FILE", "--json")),
        Case("zst", "a.txt.zst", zstd.compress(text), ("score", run["text"], "FILE", "--json")),
        Case("zip", "a.zip", zipped.getvalue(), look),
        Case("tar", "a.tar.gz", tarred.getvalue(), look),
        Case("plug-in", "a.py", plugin, ("--plugin", "FILE", "recipes", "--json")),
        Case("registry", "a.toml", registry, ("models", "list", "--registry", "FILE", "--json")),
        Case("n-best", "a.tsv", nbest, ("rescore", run["text"], "FILE")),
        Case("stimuli", "a.tsv", table, ("score", run["text"], "FILE", "--by", "word", "--json")),
        Case("minimal pairs", "a.tsv", minimal, ("minimal-pairs", run["text"], "--pairs", "FILE", "--json")),
        Case("BLiMP", "a.jsonl", blimp, ("minimal-pairs", run["text"], "--pairs", "FILE", "--json")),
        Case("grammar", "a.grammar", grammar, ("grammar", "generate", "FILE", "--sentences", "20", "--seed", "1")),
        Case("text", "a.txt", text, ("score", run["text"], "FILE", "--json")),
        Case("text to measure", "a.txt", few.encode(), ("metrics", "FILE", str(base / "few.txt"), "--json")),
        Case(
            "recipe",
            "a.toml",
            (base / "text" / "recipe.toml").read_bytes(),
            ("train", "FILE", "--dry-run", "--out", "OUT", "--data", str(base / "text-data")),
        ),
        *(page_cases(run["text"], package, base / "page") if package else ()),
    ]


def run_quietly(line: list[str]) -> None:
    """Run a command that must succeed."""
    outcome = ended(tuple(line), 60)
    assert outcome.status == 0, (line, outcome)


def ended(line: tuple[str, ...], limit: float) -> Outcome:
    """Run a command in a fork of this process, killed after a number of seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            _become(line, out.fileno(), err.fileno())
        end, status = time.monotonic() + limit, None
        while status is None and time.monotonic() < end:
            found, code = os.waitpid(pid, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if found else time.sleep(0.005)
        if status is None:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        texts = [one.seek(0) or one.read().decode(errors="replace") for one in (out, err)]
    return Outcome(status, *texts)


def _become(line: tuple[str, ...], out: int, err: int) -> None:
    """Be the process of a command; what it leaves is an exit status, 70 of a traceback."""
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    status = 70
    try:
        if line[0] == "node":
            os.execvp("node", line)
        status = elman(line)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def fault(outcome: Outcome) -> str | None:
    """What is wrong with how a command ended."""
    lines = [line for line in outcome.err.strip().split("\n") if not line.startswith("  --encoding ")]  # readings
    last = lines[-1]
    if outcome.status is None:
        return "no answer in time"
    if outcome.status < 0 or outcome.status == 70:
        return f"status {outcome.status}: {last[:160]}"
    if outcome.status and not (outcome.status == 2 and last.startswith("elman: ")):
        return f"status {outcome.status} without a line: {last[:160]!r}"
    return None


def main() -> int:
    """Damage, read, print."""
    options = options_of(__doc__, 10.0)
    torch.set_num_threads(1)
    os.environ["ELMAN_JOBS"] = "1"
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    faults, same = [], []
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        (base / "few.txt").write_text("a b\n" * 6)
        every, usual = cases(base), dict[str, Outcome]()
        for number in range(options.count) if options.only is None else [options.only]:
            draw = random.Random(f"{options.seed} {number}")
            case, folder = every[number % len(every)], base / f"case-{number}"
            if case.beside:
                shutil.copytree(case.beside, folder, copy_function=os.link)
                (folder / case.name).unlink()
            else:
                folder.mkdir()
            file = folder / case.name
            names = {"FILE": str(file), "HERE": str(folder)}
            line = tuple(names.get(one, one.replace("OUT", str(folder / "out"))) for one in case.command)
            if case.kind not in usual:
                file.write_bytes(case.data)
                usual[case.kind] = ended(line, 60)
                if usual[case.kind].status not in ((0,) if case.beside else (0, 2)):  # whole archives are refused too
                    raise SystemExit(f"{case.kind}: undamaged, {usual[case.kind].err}")
            ways = damage.BYTES | MORE
            way = draw.choice(list(ways))
            damaged = ways[way](case.data, draw)
            file.write_bytes(damaged)
            outcome = ended(line, options.limit)
            row, what = (number, case.kind, way), fault(outcome)
            if case.beside and what is None and not outcome.status and outcome.out != usual[case.kind].out:
                what = f"in silence another answer: {outcome.out[:80]}"  # a page has the digests of its files
            if what is not None:
                table[case.kind]["fault"] += 1
                faults.append([*row, what])
                sys.stderr.write(f"{number} | {case.kind} | {way} | {what}\n")
            elif outcome.status:
                table[case.kind]["refused"] += 1
            else:
                told = len(outcome.err) > len(usual[case.kind].err) + 10
                alike = outcome.out == usual[case.kind].out
                how = (
                    "unchanged"
                    if damaged == case.data
                    else "told"
                    if told
                    else "the same"
                    if alike
                    else "another answer"
                )
                table[case.kind][how] += 1
                if how == "the same":
                    same.append(row)
            shutil.rmtree(folder)
    if options.json:
        print(json.dumps({"faults": faults, "same": same, "table": {kind: dict(row) for kind, row in table.items()}}))
    else:
        for kind, counts in table.items():
            print(f"{kind:20} {dict(counts)}")
        print(f"the same answer from other bytes: {collections.Counter((kind, way) for _, kind, way in same)}")
        print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
