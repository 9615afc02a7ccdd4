import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("elman", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("elman")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
