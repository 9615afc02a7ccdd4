"""A button of a page that plays notes with the sound synthesis of the browser, and the script behind it."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from markupsafe import Markup, escape

SCRIPT = Markup(files("elman").joinpath("drawing/templates/player.js").read_text(encoding="utf-8"))
"""The script of a page with such buttons, which it shows; without it they stay hidden."""

POLICY = f"sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}"
"""What the page's content security policy permits: this script and no other."""


def play_button(notes: Iterable[tuple[int, int, int]], step_seconds: float, name: str) -> Markup:
    """A button that plays notes (first step, end, MIDI pitch), about 9 bytes each, and stops them."""
    played = " ".join(f"{start},{end},{pitch}" for start, end, pitch in sorted(notes))
    return Markup(
        f'<button type="button" class="play" data-notes="{played}" data-step="{step_seconds:g}"'
        f' data-name="{escape(name)}" hidden></button>'
    )
