"""The call is harmless, and large blocks come back without the system having to make new pages."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from elman.kernels.allocator import keep_freed_blocks
assert {keep} is False or keep_freed_blocks()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(16 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print([faults() for _ in range(4)][-1])
"""


def page_faults(keep: bool) -> int:
    command = [sys.executable, "-c", PROGRAM.format(keep=keep)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_blocks_are_reused():
    assert page_faults(True) < page_faults(False) // 10
