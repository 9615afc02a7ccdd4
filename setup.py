"""The description of the package: README.md, in which links to pages of the repository are plain names."""

import re
from pathlib import Path

from setuptools import setup

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")

setup(
    long_description=re.sub(r"!?\[([^\]]+)\]\((?!\w+:)[^)]+\)", r"\1", re.sub(r"<img [^>]*>", "", README)),
    long_description_content_type="text/markdown",
)
