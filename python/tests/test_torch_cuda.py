"""Tensors of a GPU over the backend "tutti": the bits of the same calls on the host, and the order of streams."""

import hashlib
import os
import time

import pytest
from ranks import Ranks, meet, run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2]
COUNTS = [0, 1, 7, 1000, 100003]


def joined(rank):
    """The GPU of this rank; ranks share one where there are fewer."""
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("tutti")
    return torch.device("cuda", torch.cuda.current_device())


def drawn(count, dtype, rank):
    draw = torch.Generator().manual_seed(1000 * count + rank)
    if dtype in INTEGERS:
        return torch.randint(0, 100, (count,), generator=draw).to(dtype)
    return torch.randn(count, generator=draw, dtype=torch.float32).to(dtype)


def bits(tensor):
    return tensor.cpu().view(torch.uint8)


def operations(rank, size):
    """What each operation writes, by name: a function of the rank's input."""
    root = size - 1

    def in_place(call):
        def made(x):
            call(x)
            return x
        return made

    def into(factor, call):
        def made(x):
            out = x.new_zeros(int(x.numel() * factor))
            call(out, x)
            return out
        return made

    def gathered(x):
        outs = [torch.zeros_like(x) for _ in range(size)]
        dist.gather(x, outs if rank == root else None, root)
        return torch.cat(outs)

    def scattered(x):
        out = torch.zeros_like(x)
        dist.scatter(out, [x + x if r % 2 else x.clone() for r in range(size)] if rank == root else None, root)
        return out

    def messages(x):
        out = torch.zeros_like(x)
        request = dist.isend(x, (rank + 1) % size)
        dist.recv(out, (rank - 1) % size)
        request.wait()
        return out

    def uneven(x):
        """Rank r sends r + 1 elements to each."""
        out = x.new_zeros(size * (size + 1) // 2)
        mine = x.new_ones(size * (rank + 1)) if x.numel() == 0 else x.repeat(size * size)[:size * (rank + 1)]
        dist.all_to_all_single(out, mine, [r + 1 for r in range(size)], [rank + 1] * size)
        return out

    def listed(x):
        outs = [torch.zeros_like(x) for _ in range(size)]
        dist.all_gather(outs, x)
        return torch.cat(outs)

    moved = {
        "broadcast": in_place(lambda x: dist.broadcast(x, root)),
        "all_gather": listed,
        "all_gather_into_tensor": into(size, dist.all_gather_into_tensor),
        "all_to_all_single": uneven,
        "gather": gathered,
        "scatter": scattered,
        "isend and recv": messages,
    }
    ops = dist.ReduceOp
    reduced = {f"all_reduce {op}": in_place(lambda x, op=op: dist.all_reduce(x, op))
               for op in (ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX, ops.AVG)}
    reduced["reduce"] = in_place(lambda x: dist.reduce(x, root))
    reduced["reduce_scatter_tensor"] = lambda x: into(1 / size, dist.reduce_scatter_tensor)(x.repeat(size))
    reduced["premul_sum"] = in_place(lambda x: dist.all_reduce(x, dist._make_nccl_premul_sum(0.5)))
    return moved, reduced


def gives_the_bits_of_the_host(rank, size):
    device = joined(rank)
    moved, reduced = operations(rank, size)
    for dtype in INTEGERS + FLOATS:
        for count in COUNTS:
            for name, call in (moved | reduced).items():
                if name == "premul_sum" and dtype in INTEGERS:
                    continue
                if name == "scatter" and dtype in FLOATS and dtype.itemsize == 1:
                    continue  # its input is a sum, and PyTorch adds no 8-bit floats
                on_host = call(drawn(count, dtype, rank))
                on_device = call(drawn(count, dtype, rank).to(device))
                assert on_device.is_cuda
                assert torch.equal(bits(on_host), bits(on_device)), (name, dtype, count)
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("size", [2, 3])
def test_every_operation_gives_the_bits_of_the_host(size, transport):
    run(size, gives_the_bits_of_the_host, TUTTI_TRANSPORT=transport)


def follows_the_streams(rank, size):
    device = joined(rank)
    cycles = 4_000_000_000  # two seconds and more
    # Whatever a first call makes, and the first use of a kernel, may wait for the device.
    x = torch.zeros(1 << 20, device=device)
    x += 1
    torch.cuda._sleep(1000)
    for asynchronous in (False, True):
        work = dist.all_reduce(x, async_op=asynchronous)
        if asynchronous:
            work.wait()
    assert torch.equal((x * 2).cpu(), torch.full((1 << 20,), 2.0 * size * size))
    torch.cuda.synchronize()
    for asynchronous in (False, True):
        for stream in (torch.cuda.default_stream(device), torch.cuda.Stream(device)):
            with torch.cuda.stream(stream):
                x = torch.zeros(1 << 20, device=device)
                torch.cuda.synchronize()
                torch.cuda._sleep(cycles)
                x += rank + 1
                begun = time.perf_counter()
                work = dist.all_reduce(x, async_op=asynchronous)
                returned = time.perf_counter() - begun
                if asynchronous:
                    assert not work.is_completed()
                    work.wait()
                y = x * 2  # after the call
                assert not stream.query()
                stream.synchronize()
                assert returned < 1, returned
                assert torch.equal(y.cpu(), torch.full((1 << 20,), float(size * (size + 1))))
    # The memory of a tensor that is gone is not given to another before the call is over.
    for _ in range(20):
        torch.cuda._sleep(cycles // 2000)
        work = dist.all_reduce(torch.ones(1 << 18, device=device), async_op=True)
        other = torch.full((1 << 18,), 7.0, device=device)
        work.wait()
        assert (other == 7).all()
    dist.destroy_process_group()


def test_calls_are_in_the_order_of_streams():
    run(2, follows_the_streams)


def messages_both_ways(rank, size):
    """Longer than any transport takes before the other rank receives."""
    device = joined(rank)
    other = 1 - rank
    for count in (100003, 16 << 20):
        x = torch.full((count,), rank + 1.0, device=device)
        y = torch.zeros_like(x)
        request = dist.isend(x, other)
        dist.recv(y, other)
        request.wait()
        assert (y == other + 1).all()
        y.zero_()
        for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]):
            request.wait()
        assert (y == other + 1).all()
        # Before the sends: CUDA may wait for a send when it allocates memory or loads a kernel.
        first, second, doubled = torch.zeros_like(x), torch.zeros_like(x), x * 2
        torch.cuda.synchronize()
        requests = [dist.isend(x, other, tag=1), dist.isend(doubled, other, tag=2)]
        dist.recv(second, other, tag=2)  # in the other order
        dist.recv(first, other, tag=1)
        for request in requests:
            request.wait()
        assert (first == other + 1).all() and (second == 2 * (other + 1)).all()
    dist.destroy_process_group()


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_messages_go_both_ways_at_once(transport):
    run(2, messages_both_ways, TUTTI_TRANSPORT=transport)


def trained(rank, size, cap, hook):
    import tutti.torch

    device = joined(rank)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 1)).to(device)
    parallel = DistributedDataParallel(model, device_ids=[device], bucket_cap_mb=cap)
    if hook:
        parallel.register_comm_hook(None, tutti.torch.shared_buckets())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    draw = torch.Generator().manual_seed(rank)
    for _ in range(30):
        x = torch.randn(32, 64, generator=draw).to(device)
        optimizer.zero_grad()
        (parallel(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()
    digest = hashlib.sha256(b"".join(bits(p.detach().flatten()).numpy().tobytes() for p in model.parameters()))
    dist.destroy_process_group()
    return digest.hexdigest()


def test_training_ends_in_the_same_bits_whatever_the_buckets():
    ways = ((25, False, "shm"), (0.1, False, "tcp"), (0.01, False, "shm"), (25, True, "shm"))
    found = {digest for cap, hook, transport in ways
             for digest in run(2, trained, cap, hook, TUTTI_TRANSPORT=transport)}
    assert len(found) == 1


def sharded(rank, size):
    from torch.distributed.fsdp import fully_shard

    device = joined(rank)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)).to(device)
    whole = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)).to(device)
    whole.load_state_dict(model.state_dict())
    mesh = dist.device_mesh.init_device_mesh("cuda", (size,))
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh)
    x = torch.randn(32, 64, generator=torch.Generator().manual_seed(rank)).to(device)
    model(x).square().mean().backward()
    whole(x).square().mean().backward()
    for mine, other in zip(model.parameters(), whole.parameters()):
        dist.all_reduce(other.grad, dist.ReduceOp.AVG)
        torch.testing.assert_close(mine.grad.full_tensor(), other.grad)
    dist.destroy_process_group()


def test_fully_sharded_parameters():
    run(2, sharded)


def is_left(rank, size):
    device = joined(rank)
    x = torch.ones(1 << 20, device=device)
    with pytest.raises(RuntimeError, match=f"rank {size - 1}"):
        for _ in range(1000):
            dist.all_reduce(x)
            torch.cuda.synchronize()
            if rank == size - 1:
                os._exit(3)  # another rank may still be in its first call
    meet("failed", range(size - 1))  # else one may blame the other, which has ended


def test_a_rank_that_dies_is_named():
    ranks = Ranks(3, is_left)
    for process in ranks.processes[:2]:
        process.join(60)
        assert process.exitcode == 0
    assert ranks.processes[2].exitcode == 3
