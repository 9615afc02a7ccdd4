"""The JavaScript of the page without a server, run by node."""

import json
import shutil
import subprocess
from importlib import resources

import pytest

from elman.serve.page_files import page_files

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node, which runs the page's JavaScript here")


def modules(folder):
    """A folder with the files of the page as modules of node."""
    own = resources.files("elman.serve") / "web"
    found = dict(page_files()) | {one.name: one.read_bytes() for one in own.iterdir()}
    for name, body in found.items():
        if name.endswith(".js") and "/" not in name:
            (folder / name).write_bytes(body)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def run(folder, code, given):
    """What `code` returns, the body of an asynchronous function of `given`, after imports on lines of their own."""
    imports = [line for line in code.splitlines() if line.strip().startswith("import ")]
    body = [line for line in code.splitlines() if not line.strip().startswith("import ")]
    (folder / "given.json").write_text(json.dumps(given))
    text = "\n".join(
        [
            *imports,
            'import { readFileSync } from "node:fs";',
            'const given = JSON.parse(readFileSync("given.json"));',
            "const found = await (async () => {",
            *body,
            "})();",
            "process.stdout.write(JSON.stringify(found));",
        ]
    )
    done = subprocess.run([NODE, "--input-type=module", "-e", text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
