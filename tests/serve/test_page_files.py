"""The page without a server uses no file that differs from what was exported: its own code says which does."""

import json
import zlib

import numpy as np
import pytest

from elman.serve.static import write_list
from support.javascript import modules, needs_node, run

pytestmark = [pytest.mark.slow, needs_node]

HOST = """
    import { existsSync } from "node:fs";
    import * as files from "./files.js";
    globalThis.document = { body: { dataset: {} }, getElementById: (id) => (said[id] ??= {}) };
    const said = {};
    const asked = [];
    globalThis.fetch = async (address, { cache }) => {
      asked.push(`${address} ${cache}`);
      if (given.offline) throw new TypeError("no network");
      const stale = given.stale && cache === "default" && address !== "files.json";
      return new Response(stale ? "old" : existsSync(address) ? readFileSync(address) : null,
        { status: existsSync(address) ? 200 : 404 });
    };
    const answered = async (work) => {
      try { return [...new Uint8Array(await work())]; }
      catch (error) { return [error.constructor.name, error.message]; }
    };
"""
AGAIN = "; copy the whole folder again, or export it again"


@pytest.fixture
def page(tmp_path):
    modules(tmp_path)
    (tmp_path / "model-1").mkdir()
    (tmp_path / "model-1" / "model.onnx").write_bytes(bytes(range(200)))
    write_list(tmp_path)
    return tmp_path


def read(page, *names, **given):
    code = f"{HOST}\nreturn Promise.all(given.names.map((name) => answered(() => files.file(name))));"
    return run(page, code, {"names": names, **given})


def test_the_checksum_is_that_of_zlib(page):
    draw = np.random.default_rng(0)
    blocks = [b"", b"\0", b"123456789", *(draw.bytes(size) for size in (1, 255, 256, 5000))]
    code = f"{HOST}\nreturn given.map((one) => files.crc32(Uint8Array.from(one)));"
    assert run(page, code, [list(one) for one in blocks]) == [zlib.crc32(one) for one in blocks]


def test_every_file_is_listed_but_the_list(page):
    listed = json.loads((page / "files.json").read_text())
    assert listed["model-1/model.onnx"] == [200, zlib.crc32(bytes(range(200)))]
    found = {path.relative_to(page).as_posix() for path in page.rglob("*") if path.is_file()}
    assert set(listed) == found - {"files.json"}


def test_a_whole_file_is_read(page):
    assert read(page, "model-1/model.onnx") == [list(range(200))]


@pytest.mark.parametrize("size", [200, 199, 0])
def test_a_damaged_file_is_named(page, size):
    (page / "model-1" / "model.onnx").write_bytes(bytes([1, *range(1, 200)])[:size])
    how = "its bytes are others" if size == 200 else f"{size} bytes instead of 200"
    assert read(page, "model-1/model.onnx") == [["Refused", f"model-1/model.onnx is damaged ({how}){AGAIN}"]]


def test_a_missing_file_is_named(page):
    (page / "model-1" / "model.onnx").unlink()
    assert read(page, "model-1/model.onnx") == [["Refused", f"model-1/model.onnx is missing (status 404){AGAIN}"]]
    assert read(page, "local.js", offline=True) == [["Refused", f"files.json cannot be fetched (no network){AGAIN}"]]


def test_a_file_that_is_not_listed_is_not_used(page):
    (page / "model-1" / "new.onnx").write_bytes(b"new")
    assert read(page, "model-1/new.onnx") == [["Refused", f"model-1/new.onnx is not listed in files.json{AGAIN}"]]


@pytest.mark.parametrize("text", ["", "5", "{}", "null", "[[", '{"a": null}', '{"a": [1]}', '{"a": [1, "2"]}', "\0"])
def test_a_damaged_list_is_named(page, text):
    (page / "files.json").write_text(text)
    assert read(page, "local.js") == [["Refused", f"files.json is damaged{AGAIN}"]]


def test_a_stale_copy_of_the_browser_is_fetched_anew(page):
    code = f"{HOST}\nreturn [await answered(() => files.file('model-1/model.onnx')), asked];"
    found, asked = run(page, code, {"stale": True})
    assert found == list(range(200))
    assert asked == ["files.json no-cache", "model-1/model.onnx default", "model-1/model.onnx reload"]


def test_a_list_that_came_too_late_is_asked_for_again(page):
    code = f"""{HOST}
    given.offline = true;
    const before = await answered(() => files.file("model-1/model.onnx"));
    given.offline = false;
    return [before[0], await answered(() => files.file("model-1/model.onnx"))];"""
    assert run(page, code, {}) == ["Refused", list(range(200))]


@pytest.mark.parametrize("name", ["main.js", "sampling.js", "text-model.js", "panels/write.js", "ort.bundle.mjs"])
def test_no_script_runs_where_one_is_damaged(page, name):
    """In main.js stands a line that would be seen."""
    (page / "main.js").write_text("document.getElementById('ran').textContent = 'yes';\n")
    (page / name).parent.mkdir(exist_ok=True)
    for other in ("panels/write.js", "ort.bundle.mjs"):
        (page / other).parent.mkdir(exist_ok=True)
        (page / other).write_text("export const one = 1;\n")
    write_list(page)
    code = f"{HOST}\nawait import(`${{process.cwd()}}/begin.js`);\nreturn said;"
    assert run(page, code, {}) == {"ran": {"textContent": "yes"}}
    (page / name).write_bytes((page / name).read_bytes() + b" ")
    found = run(page, code, {})
    assert found["title"] == {"textContent": "The model cannot be opened"}
    assert f"{name} is damaged (" in found["status"]["textContent"]
    assert "ran" not in found


@pytest.mark.parametrize("name", ["files.js", "backend.js"])
def test_the_scripts_that_check_are_named_where_they_do_not_load(page, name):
    for text in ("((", "5", None):
        (page / name).unlink() if text is None else (page / name).write_text(text)
        host = HOST.replace('import * as files from "./files.js";', "")
        found = run(page, f"{host}\nawait import(`${{process.cwd()}}/begin.js`);\nreturn said;", {})
        assert found["status"]["textContent"].startswith(f"{name} is missing or damaged (")


@pytest.mark.parametrize(("name", "said"), [("runs.json", "runs.json is damaged"), ("model-1/model.json", "model-1/m")])
def test_facts_of_models_are_checked(page, name, said):
    (page / "ort.wasm.bundle.min.mjs").write_text("export const env = { wasm: {} };\n")
    facts = {"facts": {"name": "a", "kind": "text"}, "folder": "model-1"}
    (page / "runs.json").write_text(json.dumps({"runs": [facts], "defaults": {}, "most_drawn": 5}))
    (page / "model-1" / "model.json").write_text('{"words": ["a", "b"]}')
    write_list(page)
    text = (page / name).read_text()
    (page / name).write_text(text.replace('"a"', '"c"'))
    code = f"""{HOST}
    const {{ Local }} = await import(`${{process.cwd()}}/local.js`);
    const local = new Local();
    return answered(async () => {{ await local.open(); return local.ask("score", {{ run: "a", text: "a" }}); }});"""
    kind, line = run(page, code, {})
    assert kind == "Refused"
    assert line.startswith(said)
    assert line.endswith(f"is damaged (its bytes are others){AGAIN}")


@pytest.mark.parametrize("name", [None, "ort-wasm-simd-threaded.wasm", "model-1/model.onnx"])
def test_a_graph_and_its_runtime_are_checked_before_they_are_used(page, name):
    (page / "ort.wasm.bundle.min.mjs").write_text("""
    export const env = { wasm: {} };
    export const InferenceSession = { create: async (bytes) => ({ size: bytes.length, runtime: env.wasm.wasmBinary }) };
    """)
    (page / "ort-wasm-simd-threaded.wasm").write_bytes(b"wasm")
    write_list(page)
    code = f"""{HOST}
    const {{ Network }} = await import(`${{process.cwd()}}/network.js`);
    return answered(async () => {{
      const {{ session }} = await Network.open("model-1/model.onnx");
      return [session.size, ...session.runtime];
    }});"""
    if name is None:
        assert run(page, code, {}) == [200, *b"wasm"]
    else:
        (page / name).write_bytes((page / name).read_bytes()[:-1] + b"x")
        assert run(page, code, {}) == ["Refused", f"{name} is damaged (its bytes are others){AGAIN}"]
