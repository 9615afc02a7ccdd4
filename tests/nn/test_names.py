"""The public names of elman and elman.nn, with their signatures, beside a recorded list.

What is removed or changed there breaks programs: it needs a new major version, what is added a new minor one
(docs/python.md). The list is written again by `PYTHONPATH=src python tests/nn/test_names.py`.
"""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import elman
from elman import nn as enn

RECORD = Path(__file__).with_name("public_names.txt")


def signature_of(thing):
    """Names, kinds and defaults of the arguments; of a default that is an object, that there is one."""
    found = inspect.signature(thing)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values() if one.name != "self"]
    plain = [one if isinstance(one.default, SIMPLE) else one.replace(default=...) for one in plain]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty)).replace("Ellipsis", "...")


SIMPLE = bool | int | float | str | tuple | type | None  # no default is the type inspect.Parameter.empty


def members_of(name, kind, listed):
    """The methods and properties of a class, without those of a base that is listed itself, or is not elman's."""
    inherited = {base for other in listed - {kind} if issubclass(kind, other) for base in other.__mro__}
    bases = [one for one in kind.__mro__ if one.__module__.startswith("elman") and one not in inherited]
    members = {member for one in bases for member in vars(one)}
    for member in sorted(members):
        found = inspect.getattr_static(kind, member)
        if member.startswith("_") or (issubclass(kind, torch.nn.Module) and member in {"train", "extra_repr"}):
            continue
        if isinstance(found, property):
            yield f"{name}.{member}"
        elif inspect.isfunction(found):
            yield f"{name}.{member}{signature_of(found)}"


def public(package):
    """What a package lists, or the functions that a module defines."""
    own = [name for name, thing in vars(package).items() if getattr(thing, "__module__", "") == package.__name__]
    return sorted(getattr(package, "__all__", [name for name in own if name.islower() and name[0] != "_"]))


def names_of(package, prefix):
    listed = {thing for thing in map(vars(package).get, public(package)) if inspect.isclass(thing)}
    for name in public(package):
        thing, full = getattr(package, name), f"{prefix}.{name}"
        if inspect.ismodule(thing):
            yield from names_of(thing, full)
        elif inspect.isclass(thing):
            own = thing.__module__.startswith("elman") and not issubclass(thing, Exception)
            yield full + (signature_of(thing) if own else "")
            yield from members_of(full, thing, listed)
        else:
            yield full + (signature_of(thing) if inspect.isfunction(thing) else "")


def listing():
    return "\n".join([*names_of(elman, "elman"), *names_of(enn, "elman.nn")]) + "\n"


def test_public_names_and_signatures_are_those_recorded():
    recorded, found = RECORD.read_text().splitlines(), listing().splitlines()
    gone, new = sorted({*recorded} - {*found}), sorted({*found} - {*recorded})
    assert recorded == found, "\n".join(
        ["", "gone, which breaks programs:", *gone, "new:", *new, "if this is meant: PYTHONPATH=src python " + __file__]
    )


def test_every_public_name_of_parts_is_documented():
    for name in enn.__all__:
        thing = getattr(enn, name)
        if inspect.isclass(thing) or inspect.isfunction(thing) or inspect.ismodule(thing):
            assert (inspect.getdoc(thing) or "").strip(), name


@pytest.mark.slow
def test_importing_the_parts_loads_torch_without_its_compiler():
    code = "import sys, elman.nn; sys.exit(any(name in sys.modules for name in ('torch._dynamo', 'sympy', 'rich')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


if __name__ == "__main__":
    RECORD.write_text(listing())
