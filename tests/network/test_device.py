"""The setting reaches torch: large blocks come in few pages, where the system has large ones on request."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from elman.network.device import use_large_pages

PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PROGRAM = """
import os, resource, torch
from elman.network.device import use_large_pages
for setting in ({}, {"THP_MEM_ALLOC_ENABLE": "0"}):
    if os.fork() == 0:
        os.environ.update(setting)
        use_large_pages()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(16 << 20)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(not PAGES.exists() or "[madvise]" not in PAGES.read_text(), reason="no large pages on request here")
def test_large_blocks_come_in_few_pages():
    environment = {key: value for key, value in os.environ.items() if key != "THP_MEM_ALLOC_ENABLE"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=environment)
    large, small = map(int, run.stdout.split())
    assert large < small // 2


def test_a_setting_of_the_user_stays(monkeypatch):
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    use_large_pages()
    assert os.environ["THP_MEM_ALLOC_ENABLE"] == "0"
