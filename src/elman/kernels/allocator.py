"""Large pages for large tensors.

A training step frees and takes the same large blocks again and again. The C library gives blocks of 32 MB
and more back to the system at every release, so that each is made of fresh pages again, at about a
microsecond for 4 kB. With pages of 2 MB that costs a tenth: a training step's softmax over 33 000 words
takes 0.8 of the time, an LSTM of 80 x 400 0.85. (Telling the C library to keep the blocks, by mallopt, is
as fast, but its heap fragments and grows.)
"""

import os


def use_large_pages() -> None:
    """Set the variable torch reads when it makes its first large tensor, unless it is set.

    A program calls it once, at its start. Elsewhere than on Linux it has no effect.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
