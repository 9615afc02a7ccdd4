"""Help as plain text: groups of two aligned columns, each option with its default and range, without colour codes."""

import textwrap
from typing import TYPE_CHECKING, Any

from cyclopts import App, Group

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

WIDTH, COLUMN = 100, 26  # the widest line, and where descriptions begin

ARGUMENTS, OPTIONS = Group("Arguments", sort_key=0), Group("Options", sort_key=1)


def family(name: str, epilogue: str) -> App:
    """The application of a command that has subcommands; `epilogue` stands below their list."""
    return App(name=name, help_epilogue=epilogue, group_arguments=ARGUMENTS, group_parameters=OPTIONS)


class PlainHelp:
    """The help formatter of all commands (a `cyclopts.help.HelpFormatter`)."""

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one group."""
        del options
        if not panel.entries:
            return
        _print(console, f"{panel.title}:")
        margin = " " * COLUMN
        for entry in panel.entries:
            label, text = f"  {_label(entry)}", _wrapped(console, _description(entry), margin) or margin
            _print(console, f"{label:<{COLUMN}}{text[COLUMN:]}" if len(label) <= COLUMN - 2 else f"{label}\n{text}")
        _print(console, "")

    def render_usage(self, console: "Console", options: "ConsoleOptions", usage: Any) -> None:
        """Print the usage."""
        del options
        _print(console, f"Usage: {str(usage).strip()}\n")

    def render_description(self, console: "Console", options: "ConsoleOptions", description: Any) -> None:
        """Print what the command does."""
        del options
        text = _plain(description)
        for paragraph in text.split("\n\n") if text else ():
            _print(console, _wrapped(console, " ".join(paragraph.split())) + "\n")


def _label(entry: "HelpEntry") -> str:
    names = ", ".join((*entry.positive_shorts, *entry.positive_names))
    if entry.positional_label:
        return entry.positional_label
    metavar = "" if not entry.metavar else "{" + ",".join(entry.choices) + "}" if entry.choices else entry.metavar
    return f"{names} {metavar}".strip()


def _description(entry: "HelpEntry") -> str:
    text = " ".join(_plain(entry.description).split())
    default = f"[default: {entry.default}]" if entry.default else ""
    required = "[required]" if entry.required and not entry.positional_label else ""
    return " ".join(part for part in (text, default, required) if part)


def _plain(renderable: Any) -> str:
    """Plain text, which `cyclopts` wraps for other formatters."""
    return str(getattr(renderable, "primary_renderable", renderable) or "").strip()


def _wrapped(console: "Console", text: str, margin: str = "") -> str:
    width = min(console.width, WIDTH)
    return textwrap.fill(text, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)


def _print(console: "Console", text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def shown_default(value: Any) -> str:
    """A default as help shows it; empty for what is switched off or absent."""
    if value is None or value is False or value in ("", ()):
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
