"""The HTML templates of the pages."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """Those that lie in this package; what is missing is an error, and text is escaped."""
    return Environment(
        loader=PackageLoader("elman.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
