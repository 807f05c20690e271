"""PyTorch's registry of works: wait_tensor() of an output waits for the call that writes it."""

import pytest
from ranks import run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch._C import _distributed_c10d as c10d  # noqa: E402
from torch.distributed import _functional_collectives as functional  # noqa: E402

ones = torch.ones


def functional_collectives(rank, size, has_hooks):
    dist.init_process_group("tutti")
    group = dist.group.WORLD
    seen = []
    if has_hooks:
        group.register_pre_hook(1, lambda call: seen.append(call.name.name))
    works = c10d._get_work_registry_size
    total = functional.all_reduce(ones(3), "sum", group)
    assert works() == 1, works()
    assert torch.equal(functional.wait_tensor(total), torch.full((3,), float(size))) and works() == 0
    whole = functional.wait_tensor(functional.all_gather_single(torch.full((2,), float(rank)), 0, group))
    assert torch.equal(whole, torch.arange(float(size)).repeat_interleave(2)) and works() == 0
    assert seen == (["ALLREDUCE", "ALLGATHER_INTO_TENSOR_COALESCED"] if has_hooks else []), seen
    dist.destroy_process_group()


@pytest.mark.parametrize("has_hooks", [False, True])
def test_functional_collectives_wait(has_hooks):
    run(2, functional_collectives, has_hooks)


def works_in_flight(rank, size, has_hooks):
    dist.init_process_group("tutti")
    if has_hooks:
        dist.group.WORLD.register_pre_hook(1, lambda call: None)
    works = c10d._get_work_registry_size
    x, whole = ones(3), ones(3 * size)
    with functional.allow_inflight_collective_as_graph_input_ctx():
        work = dist.all_reduce(x, async_op=True)
        assert works() == 1, works()
        work.wait()
        assert works() == 0
        work = dist.all_gather_into_tensor(whole, x, async_op=True)
        assert works() == 1, works()
        assert torch.equal(functional.wait_tensor(whole), torch.full((3 * size,), float(size)))
        assert works() == 0 and work.is_completed()
        work.wait()  # once more
        lists = [torch.zeros(3), torch.zeros(3)]
        work = dist.all_gather(lists, x, async_op=True)
        assert works() == 2
        work.wait()
        assert works() == 0
        dist.all_reduce(x)  # waits
        assert works() == 0
        if rank == 0:
            dist.send(x, 1)
        else:
            dist.recv(x)
        assert works() == 0
    dist.all_reduce(x, async_op=True).wait()
    assert works() == 0
    dist.destroy_process_group()


@pytest.mark.parametrize("has_hooks", [False, True])
def test_a_work_in_flight_is_in_the_registry_until_it_is_waited_for(has_hooks):
    run(2, works_in_flight, has_hooks)
