"""onnxruntime-web, which runs the models of a page without a server: two files of its npm package."""

import base64
import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from elman.data.archives import Archive
from elman.errors import UserError, first_line, notice
from elman.files import cache_folder, replacing

PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
INTEGRITY = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""SHA-512 of the npm package of that version, as the registry states it."""

RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")  # files of the package that the page loads


def cached() -> Path:
    """Where the npm package is in elman's cache, or will be."""
    return cache_folder() / "npm" / f"{PACKAGE}-{VERSION}.tgz"


def fetched(say: Callable[[str], None] = notice) -> Path:
    """The npm package in elman's cache, fetched by npm where it is not there; raises UserError where that fails."""
    path = cached()
    if path.is_file():
        return path
    npm = shutil.which("npm")
    advice = f"get it with `npm pack {PACKAGE}@{VERSION}` and name the file with --package"
    if npm is None:
        raise UserError(f"the page needs the npm package {PACKAGE} {VERSION}, and there is no npm here; {advice}")
    say(f"fetching {PACKAGE} {VERSION} with npm")
    with replacing(path) as temporary:  # npm writes the archive under its own name, piece by piece
        command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--pack-destination", str(temporary.parent), "--silent"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            temporary.with_name(path.name).replace(temporary)
        except (subprocess.SubprocessError, OSError) as error:
            raise UserError(f"npm could not fetch {PACKAGE} {VERSION} ({first_line(error)}); {advice}") from None
    return path


def write_runtime(folder: Path, package: Path) -> None:
    """The files that the page loads; raises UserError where the package is not the expected one."""
    digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if digest != INTEGRITY:
        raise UserError(
            f"{package}: not {PACKAGE} {VERSION} (its SHA-512 differs); give that package, or delete the file"
        )
    archive = Archive(package)
    found = set()
    for name, file in archive.tar_members():
        last = name.rsplit("/", 1)[-1]
        if last in RUNTIME:
            with (folder / last).open("wb") as opened:
                opened.writelines(archive.blocks(file))
            found.add(last)
    if missing := set(RUNTIME) - found:
        raise UserError(f"{package}: no {', '.join(sorted(missing))} inside; give {PACKAGE} {VERSION}")
