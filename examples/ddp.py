#!/usr/bin/env python3
"""Trains a small network with PyTorch's DistributedDataParallel, over tutti or any other backend.

    torchrun --nproc_per_node 2 examples/ddp.py                        trains, and prints a hash of the weights
    torchrun --nproc_per_node 2 examples/ddp.py --backend gloo         the same over Gloo
    torchrun --nproc_per_node 4 examples/ddp.py --leaves 8             the same hash for 1, 2, 4 and 8 processes
    torchrun --nproc_per_node 2 --max-restarts 3 examples/ddp.py --checkpoint /tmp/ddp.pt
                                                                       goes on from there when a process has died

The network learns y = x^3 - x on 4096 points. With the backend tutti the hash depends on neither --bucket-cap-mb nor
TUTTI_TRANSPORT (shm, tcp) nor which host a process runs on, as long as the number of processes is the same. With
--leaves it does not depend on that number either.
"""

import argparse
import hashlib
import os
import time

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

POINTS = 4096
BATCH = 256  # points of a step, of all processes together


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--bucket-cap-mb", type=float, default=25)
    parser.add_argument("--leaves", type=int, metavar="N", help="micro-batches of a step, over all processes (tutti)")
    parser.add_argument("--checkpoint", metavar="FILE", help="written every 50 steps; read where it is there")
    parser.add_argument("--step-ms", type=float, default=0, help="wait so long in each step, so that one can watch")
    return parser.parse_args()


def save(path: str, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Writes a file that is whole whenever it is read, also if this process dies."""
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
    os.replace(path + ".new", path)


def main() -> None:
    options = parse()
    torch.set_num_threads(1)  # the number of threads decides in which order a layer adds
    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                                torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    first = 0
    if options.checkpoint and os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
        if rank == 0:
            print(f"goes on from step {first} of {options.checkpoint}", flush=True)

    parallel = DistributedDataParallel(model, bucket_cap_mb=options.bucket_cap_mb)
    leaves, mine = size, range(rank, rank + 1)
    if options.leaves:
        import tutti.torch

        hook = tutti.torch.leaves(options.leaves)
        parallel.register_comm_hook(None, hook)
        leaves, mine = options.leaves, hook.mine

    x = torch.linspace(-1.5, 1.5, POINTS).unsqueeze(1)
    y = x**3 - x
    for step in range(first, options.steps):
        batch = torch.randperm(POINTS, generator=torch.Generator().manual_seed(step))[:BATCH].chunk(leaves)
        loss = torch.zeros(())
        for leaf in mine:
            loss = mse_loss(parallel(x[batch[leaf]]), y[batch[leaf]])
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if options.step_ms:
            time.sleep(options.step_ms / 1000)
        if rank == 0 and (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.6f}", flush=True)
        if rank == 0 and options.checkpoint and (step + 1) % 50 == 0:
            save(options.checkpoint, step + 1, model, optimizer)

    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    if rank == 0:
        print(f"{size} processes over {dist.get_backend()}: weights {digest.hexdigest()[:16]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
