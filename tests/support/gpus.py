"""The GPUs that tests run on: the pretended one everywhere, and the machine's own where torch finds one."""

from contextlib import nullcontext

import torch

from support.pretended import Pretended

GPUS = {"pretended": Pretended} | ({"real": nullcontext} if torch.cuda.is_available() else {})
"""Within the block of one of them, `support.pretended.CUDA` names it."""
