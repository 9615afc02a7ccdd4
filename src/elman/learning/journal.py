"""metrics.jsonl: one JSON object a line, cut back on resume to what the checkpoint has seen."""

import json
from pathlib import Path
from typing import Any

from elman.files import write_atomic


class Journal:
    """Appends records to a file.

    Args:
        path: the file.
        keep_until: on resume, the step of the checkpoint: later records are dropped, since they will come again.

    """

    def __init__(self, path: Path, keep_until: int | None = None) -> None:
        self.path = path
        if keep_until is not None and path.exists():
            write_atomic(path, "".join(f"{line}\n" for line in _until(path.read_text().splitlines(), keep_until)))

    def append(self, record: dict[str, Any]) -> None:
        """Write one record and hand it to the operating system."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _until(lines: list[str], step: int) -> list[str]:
    kept = []
    for line in lines:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if record["step"] <= step:
            kept.append(line)
    return kept
