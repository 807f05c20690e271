"""DistributedDataParallel over the backend "tutti": the same bits, and what happens when a process dies."""

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from datetime import timedelta
from pathlib import Path

import pytest
from ranks import Ranks, free_port, meet, run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ddp.py"


def example(processes: int, *arguments: str, launcher: tuple[str, ...] = (), **environment: str) -> str:
    """What examples/ddp.py says, started by torchrun."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--master_port",
               str(free_port()), *launcher, str(EXAMPLE), "--steps", "40", *arguments]
    done = subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1", **environment), capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def weights(said: str) -> str:
    found = re.search(r"weights (\w{16})", said)
    assert found, said
    return found[1]


def test_weights_depend_on_neither_buckets_nor_transports():
    first = weights(example(3))
    assert weights(example(3, "--bucket-cap-mb", "0.001")) == first
    assert weights(example(3, "--bucket-cap-mb", "0.01", launcher=("--rdzv_backend", "c10d", "--rdzv_endpoint",
                                                                   f"127.0.0.1:{free_port()}"),
                           TUTTI_TRANSPORT="tcp")) == first


def test_the_example_runs_over_gloo_unchanged():
    # Seldom a process of Gloo dies as it ends, of a thread of its own that it destroys.
    for attempt in range(3):
        try:
            said = example(2, "--backend", "gloo")
            break
        except AssertionError as failure:
            if attempt == 2 or "terminate called without an active exception" not in str(failure):
                raise
    assert "over gloo" in said


def test_leaves_make_weights_that_do_not_depend_on_the_number_of_processes():
    hashes = {weights(example(n, "--leaves", "4", "--bucket-cap-mb", cap))
              for n, cap in ((1, "25"), (2, "0.001"), (4, "0.001"))}
    assert len(hashes) == 1


def leaves_of_halves(rank, size):
    """Gradients of 16 bits: the library accumulates them in 32, and so must a rank its own."""
    import tutti.torch

    dist.init_process_group("tutti")
    torch.manual_seed(1)
    model = torch.nn.Linear(64, 3, dtype=torch.bfloat16)
    parallel = DistributedDataParallel(model)
    hook = tutti.torch.leaves(4)
    parallel.register_comm_hook(None, hook)
    assert list(hook.mine) == list(range(rank * 4 // size, (rank + 1) * 4 // size))
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(4, 8, 64, generator=draw).to(torch.bfloat16)
    for leaf in hook.mine:
        parallel(x[leaf]).square().mean().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    for leaf in hook.mine:
        if size < 4:
            with parallel.no_sync():
                parallel(x[leaf]).square().mean().backward()
    if size < 4:
        parallel(x[0]).square().mean().backward()
        with pytest.raises(RuntimeError, match="no_sync"):
            list(hook.mine)
        for parameter, saved in zip(model.parameters(), gradients):
            parameter.grad = saved
    with pytest.raises(ValueError, match="power of two times the number of ranks"):
        tutti.torch.leaves(3 * size)
    dist.destroy_process_group()
    return [parameter.grad.view(torch.int16).tolist() for parameter in model.parameters()]


def test_leaves_of_16_bit_gradients():
    assert run(1, leaves_of_halves) == run(2, leaves_of_halves)[:1] == run(4, leaves_of_halves)[:1]


def hooks_over_gloo(rank, size):
    import tutti.torch

    dist.init_process_group("gloo")
    with pytest.raises(ValueError, match='backend "tutti"'):
        tutti.torch.leaves(4)
    with pytest.raises(ValueError, match='backend "tutti"'):
        tutti.torch.shared_buckets()
    dist.destroy_process_group()


def test_hooks_need_the_backend():
    run(1, hooks_over_gloo)


def weights_by_hook(rank, size, shared, view):
    """The weights after some steps; and whether after each of them just the buckets of the last one are adopted."""
    import tutti.torch
    from tutti.torch import _shared_buckets

    dist.init_process_group("tutti")
    kept, living = [], []
    real = _shared_buckets.adopt

    class Counted:
        def __init__(self, kept, address):
            self.kept, self.address = kept, address
            living.append(address)

        def release(self):
            living.remove(self.address)
            self.kept.release()

    _shared_buckets.adopt = lambda tensor, group: Counted(real(tensor, group), tensor.data_ptr())
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 300), torch.nn.Tanh(), torch.nn.Linear(300, 300), torch.nn.Tanh(),
                                torch.nn.Linear(300, 1))
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.1, gradient_as_bucket_view=view)
    seen = []
    if shared:
        hook = tutti.torch.shared_buckets()

        def noted(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
            seen.append(bucket.buffer().data_ptr())
            return hook(state, bucket)

        parallel.register_comm_hook(None, noted)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01, momentum=0.9)
    draw = torch.Generator().manual_seed(rank)
    for step in range(4):
        seen.clear()
        for accumulated in range(2):
            x = torch.randn(8, 64, generator=draw)
            if accumulated == 0:
                with parallel.no_sync():
                    parallel(x).square().mean().backward()
            else:
                parallel(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(sorted(living) == sorted(seen) and len(seen) > min(step, 1))  # the first step has one bucket
    bits = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).view(torch.int32).tolist()
    dist.destroy_process_group()
    return bits, kept


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_shared_buckets_change_no_bit(transport, view):
    plain = run(2, weights_by_hook, False, view, TUTTI_TRANSPORT=transport)
    shared = run(2, weights_by_hook, True, view, TUTTI_TRANSPORT=transport)
    assert [bits for bits, _ in plain] == [bits for bits, _ in shared]
    for _, kept in shared:
        assert all(kept), kept


def trains_where_nothing_is_adopted(rank, size):
    import tutti.torch
    from tutti.torch import _shared_buckets

    dist.init_process_group("tutti")

    def refuse(tensor, group):
        raise tutti.Error("no memory", tutti.ErrorCode.SYSTEM)

    if rank == 1:
        _shared_buckets.adopt = refuse
    parallel = DistributedDataParallel(torch.nn.Linear(300, 300), bucket_cap_mb=0.1)
    parallel.register_comm_hook(None, tutti.torch.shared_buckets())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            parallel(torch.ones(4, 300)).sum().backward()
    dist.destroy_process_group()
    return [str(warning.message) for warning in told]


def test_shared_buckets_go_on_where_memory_cannot_be_shared():
    said = run(2, trains_where_nothing_is_adopted)
    assert said[0] == [] and len(said[1]) == 1 and "no memory" in said[1][0], said


def trains_until_a_rank_dies(rank, size, shared):
    import tutti.torch

    dist.init_process_group("tutti")
    parallel = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 4000), torch.nn.Linear(4000, 1)),
                                       bucket_cap_mb=0.05)
    if shared:
        parallel.register_comm_hook(None, tutti.torch.shared_buckets())
    if rank == 1:
        for _ in range(5):
            parallel(torch.ones(4, 8)).sum().backward()
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            parallel(torch.ones(4, 8)).sum().backward()
            last = time.monotonic()
    except RuntimeError as error:
        took = time.monotonic() - last
        meet("failed", [0, 2])  # else one may blame the other, which has ended
        return took, str(error)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_rank_that_is_killed_is_named_on_all_others(transport, shared):
    ranks = Ranks(3, trains_until_a_rank_dies, shared, TUTTI_TRANSPORT=transport)
    said = [ranks._results.get(timeout=60) for _ in range(2)]
    for process in ranks.processes:
        process.join(30)
    assert sorted(rank for rank, _, _ in said) == [0, 2]
    for _, good, (took, text) in said:
        assert good and "rank 1" in text and "no word from it" not in text, said  # so not by its silence
        assert took < 20, said  # a moment; but this machine is shared


def late_for_training(rank, size):
    dist.init_process_group("tutti")
    parallel = DistributedDataParallel(torch.nn.Linear(8, 1))
    parallel(torch.ones(4, 8)).sum().backward()
    meet("trained")
    if rank == 1:
        meet("failed")
        return ""
    dist.group.WORLD.set_timeout(timedelta(seconds=2))  # not before: all of that may take long
    with pytest.raises(RuntimeError) as raised:  # not: gradients of this rank only
        parallel(torch.ones(4, 8)).sum().backward()
    meet("failed")
    return str(raised.value)


def test_backward_raises_where_a_rank_is_late():
    said, _ = run(2, late_for_training)
    assert "rank 1 has not entered all_reduce" in said


def compressed(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

    dist.init_process_group("tutti")
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(4)))
    parallel = DistributedDataParallel(model, bucket_cap_mb=0.001)  # a bucket for each layer
    state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, orthogonalization_epsilon=1e-8)
    parallel.register_comm_hook(state, powerSGD_hook)
    for step in range(8):
        torch.manual_seed(size * step + rank)
        parallel(torch.randn(4, 16)).square().mean().backward()
    dist.destroy_process_group()
    return [parameter.grad.tolist() for parameter in model.parameters()]


def test_powersgd_calls_in_callbacks():
    first, *others = run(3, compressed)
    assert all(torch.allclose(torch.tensor(a), torch.tensor(b), atol=1e-5)
               for other in others for a, b in zip(first, other))


def test_torchrun_starts_a_job_again_from_its_checkpoint(tmp_path):
    checkpoint = tmp_path / "weights.pt"
    whole = weights(example(2, "--steps", "200"))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port()),
               "--max-restarts", "3", str(EXAMPLE), "--steps", "200", "--step-ms", "40", "--checkpoint", str(checkpoint)]
    job = subprocess.Popen(command, env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < until:
        time.sleep(0.05)
    workers = subprocess.run(["pgrep", "-P", str(job.pid), "-f", "ddp.py"], capture_output=True, text=True).stdout.split()
    assert len(workers) == 2
    os.kill(int(workers[1]), signal.SIGKILL)
    said, errors = job.communicate(timeout=120)
    assert job.returncode == 0, said + errors
    assert re.search(r"goes on from step (50|100|150|200)", said), said
    assert weights(said) == whole  # as if nothing had happened
