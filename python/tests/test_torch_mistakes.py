"""What a program gets that asks the backend "tutti" for what it cannot do."""

from datetime import timedelta

import pytest
from ranks import run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import tutti  # noqa: E402

ones = torch.ones


def premul(factor):
    return dist._make_nccl_premul_sum(factor)


def refused(rank, size):
    """Each call is refused on every rank, also where the tensor of one rank alone would be read."""
    dist.init_process_group("tutti")
    group, other = dist.group.WORLD, 1 - rank
    for odd in (torch.ones(2, device="meta"), ones(2).to_sparse()):
        for call in (lambda: dist.broadcast(odd, 0), lambda: dist.reduce(odd, 0), lambda: dist.send(odd, other),
                     lambda: dist.recv(odd, other), lambda: dist.all_gather([ones(2)] * 2, odd),
                     lambda: dist.scatter(ones(2), [odd] * 2, 0) if rank == 0 else dist.gather(odd),
                     lambda: dist.all_gather_into_tensor(odd, ones(1)),
                     lambda: dist.all_reduce(odd, op=dist.ReduceOp.MAX)):
            with pytest.raises(TypeError):
                call()
    with pytest.raises(TypeError, match="strided tensors .* on meta"):
        dist.all_reduce(torch.ones(2, device="meta"))
    with pytest.raises(TypeError, match="COO layout, .*sparse_csr"):
        dist.all_reduce(ones(2, 2).to_sparse_csr())
    with pytest.raises(ValueError, match="at least one tensor"):
        group.allreduce_coalesced([])
    for splits, what in (([-1, 5], "none negative"), ([1, 2], "whose sum is 4"), ([2.0, 2.0], "integer")):
        with pytest.raises((RuntimeError, TypeError), match=what):
            dist.all_to_all_single(ones(4), ones(4), splits, splits)
    with pytest.raises(ValueError, match="must be positive"):
        group.set_timeout(timedelta(0))
    for dtype, factor in ((torch.int32, 0.5), (torch.uint8, -1.0), (torch.int64, 2.0**63), (torch.int32, float("nan"))):
        with pytest.raises(ValueError, match="no integer that fits"):
            dist.all_reduce(ones(2, dtype=dtype), op=premul(factor))
    with pytest.raises(ValueError, match="not defined for booleans"):
        dist.all_reduce(ones(2, dtype=torch.bool), op=premul(1.0))
    dist.monitored_barrier()
    x = torch.full((2,), 2**62)
    dist.all_reduce(x, op=premul(-1.0))
    assert x.tolist() == [-2**63] * 2
    dist.destroy_process_group()


def test_calls_that_are_refused_leave_the_group_as_it_was():
    run(2, refused)


def operators_of_refused_calls(rank, size):
    dist.init_process_group("tutti")
    group, x = dist.group.WORLD, torch.arange(4.0)
    wrong = x[2 * (1 - rank):][:2]  # the row of the other rank
    for call in (lambda: dist.reduce_scatter_tensor(wrong, x, op=premul(2.0)),
                 lambda: dist.reduce_scatter(ones(3), [ones(2)] * 2, op=premul(2.0)),
                 lambda: group.reduce([x], root=size, op=premul(2.0)),
                 lambda: dist.all_reduce(ones(2, device="meta"), op=premul(2.0))):
        with pytest.raises((tutti.Error, ValueError, TypeError)):
            call()
    native = group.native
    made = native.premul_sum(2.0, tutti.DType.FLOAT32)  # takes the first place that is free
    native.destroy_operator(made)
    dist.all_reduce(x, op=premul(2.0))
    assert x.tolist() == [0, 4, 8, 12]
    dist.destroy_process_group()
    return made


def test_a_refused_call_leaves_no_operator_behind():
    assert run(2, operators_of_refused_calls) == [1000, 1000]


def inference_tensors(rank, size):
    dist.init_process_group("tutti")
    for finish in (lambda work: work.wait(), lambda work: work.get_future().wait()):
        with torch.inference_mode():
            view = torch.ones(4, 4)[:, ::2]  # its results are copied to it
            work = dist.all_reduce(view, async_op=True)
        finish(work)
        assert (view == size).all()
    dist.destroy_process_group()


def test_a_tensor_of_inference_mode_is_written_outside_of_it():
    run(2, inference_tensors)


def very_long_timeout(rank, size):
    dist.init_process_group("tutti")
    group = dist.new_group([0, 1], timeout=timedelta(days=999999))
    if rank == 0:
        dist.send(ones(1), 1, group=group)
    else:
        assert dist.recv(ones(1), group=group) == 0
    dist.monitored_barrier(group, timeout=timedelta(days=999999))
    dist.destroy_process_group()


def test_a_timeout_of_ages():
    run(2, very_long_timeout)


def left(rank, size):
    dist.init_process_group("tutti")
    group, x = dist.group.WORLD, ones(3)
    work = dist.all_reduce(x, async_op=True)
    dist.destroy_process_group()
    assert work.wait() and work.get_future().then(lambda done: done.value()[0]).wait() is not None
    assert x.tolist() == [2, 2, 2]
    for call in (lambda: group.allreduce([x]), lambda: group.barrier(), lambda: group.send([x], 1 - rank, 5),
                 lambda: group.recv_anysource([x], 0).wait(), lambda: group.monitored_barrier(),
                 lambda: group.split_group([0, 1])):
        with pytest.raises(tutti.Error, match=r"was left: .*destroy_process_group\(\)"):
            call()
    group.abort()
    group.shutdown()


def test_a_group_that_was_left_says_so():
    run(2, left)
