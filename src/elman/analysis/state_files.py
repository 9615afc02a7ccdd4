"""Hidden states of a text as one file of arrays, written sentence by sentence, so that memory does not grow with it."""

import itertools
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from elman.errors import UserError

Array = npt.NDArray[Any]

LARGEST_HEADER = 100_000_000
"""Bytes of the header of a .safetensors file at most, which holds the tokens."""

_AT_ONCE = 1 << 14
_TYPES = {"int32": "I32", "float32": "F32"}


class Columns:
    """Arrays that grow row by row, each in a file of a folder, and the tokens of the rows."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, dict[str, IO[bytes]]()
        self._shapes, self._types = dict[str, tuple[int, ...]](), dict[str, np.dtype[Any]]()
        self._tokens = (folder / "tokens").open("w+", encoding="utf-8", errors="surrogateescape")
        self.rows, self._longest = 0, 1

    def add(self, tokens: Sequence[str], arrays: Mapping[str, Array]) -> None:
        """Add a row for each token, given the rows of every array."""
        for name, array in arrays.items():
            if name not in self._files:
                self._files[name] = (self._folder / f"column-{name}").open("w+b")
                self._shapes[name], self._types[name] = array.shape[1:], array.dtype
            self._files[name].write(np.ascontiguousarray(array).tobytes())
        self._tokens.writelines(f"{json.dumps(token)}\n" for token in tokens)
        self.rows += len(tokens)
        self._longest = max([self._longest, *map(len, tokens)])

    def write_npz(self, path: Path) -> None:
        """All arrays, the tokens among them, as `numpy.savez` writes them."""
        with zipfile.ZipFile(path, "w") as archive:
            kind = np.dtype(f"<U{self._longest}")
            tokens = self._read_tokens()
            parts = iter(lambda: list(itertools.islice(tokens, _AT_ONCE)), [])
            blocks = (np.array(part, dtype=kind).tobytes() for part in parts)
            self._add_member(archive, "tokens", kind, (self.rows,), blocks)
            for name in self._files:
                shape = (self.rows, *self._shapes[name])
                self._add_member(archive, name, self._types[name], shape, self._read(name))

    def write_safetensors(self, path: Path) -> None:
        """All arrays, and the tokens as JSON among the metadata.

        Raises UserError where they are too many for that.
        """
        tokens = json.dumps(list(self._read_tokens()), ensure_ascii=False)
        header: dict[str, Any] = {"__metadata__": {"tokens": tokens}}
        at = 0
        for name in self._files:
            size = self._files[name].tell()
            shape = [self.rows, *self._shapes[name]]
            header[name] = {"dtype": _TYPES[self._types[name].name], "shape": shape, "data_offsets": [at, at + size]}
            at += size
        data = json.dumps(header, ensure_ascii=False).encode("utf-8", "replace")
        if len(data) > LARGEST_HEADER:
            raise UserError(f"--out: the {self.rows:,} tokens do not fit into a .safetensors file; write .npz")
        data += b" " * (-len(data) % 8)
        with path.open("wb") as file:
            file.write(len(data).to_bytes(8, "little") + data)
            for name in self._files:
                file.writelines(self._read(name))

    def close(self) -> None:
        """Close the files of the columns."""
        for file in self._files.values():
            file.close()
        self._tokens.close()

    @staticmethod
    def _add_member(
        opened: zipfile.ZipFile, name: str, kind: "np.dtype[Any]", shape: tuple[int, ...], parts: Iterable[bytes]
    ) -> None:
        descr = np.lib.format.dtype_to_descr(kind)
        with opened.open(f"{name}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
            for part in parts:
                file.write(part)

    def _read_tokens(self) -> Iterator[str]:
        self._tokens.seek(0)
        return map(json.loads, self._tokens)

    def _read(self, name: str) -> Iterator[bytes]:
        file = self._files[name]
        file.seek(0)
        return iter(lambda: file.read(1 << 20), b"")
