"""The backend "tutti" of torch.distributed.

`torch.distributed.init_process_group("tutti")` finds it by itself, through the entry points of the package; so does
`torchrun`. This module is for what goes beyond. Two communication hooks of DistributedDataParallel: with `leaves()` the
weights do not depend on the number of ranks; `shared_buckets()` is quicker within a host. And `adopt()` shares a tensor's
memory with the ranks of its host. The guide "PyTorch" says the rest.
"""

import torch

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15):
    raise ImportError(f"tutti.torch needs PyTorch 2.15 or a later one, and this is {torch.__version__}")

from tutti.torch._adopt import adopt
from tutti.torch._group import Group
from tutti.torch._leaves import leaves
from tutti.torch._register import register
from tutti.torch._shared_buckets import shared_buckets

__all__ = ["Group", "adopt", "leaves", "register", "shared_buckets"]
