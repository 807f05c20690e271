"""What PyTorch does between a group and its backend: hooks, and the check for NaN."""

import threading

import pytest
from ranks import run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch._C import _distributed_c10d as c10d  # noqa: E402

NAN = float("nan")


def ones(*shape):
    return torch.ones(*shape)


def calls(rank, size):
    """(what makes a call, its name, its root, how many inputs and outputs a hook sees)"""
    every = [ones(2) for _ in range(size)]
    at_root = every if rank == 0 else None
    many = size if rank == 0 else 0
    return [
        (lambda: dist.all_reduce(ones(2)), "ALLREDUCE", -1, 1, 0),
        (lambda: dist.all_reduce(ones(2), dist.ReduceOp.MAX), "ALLREDUCE", -1, 1, 0),
        (lambda: dist.all_reduce(ones(2).to_sparse()), "ALLREDUCE", -1, 1, 0),
        (lambda: dist.all_reduce_coalesced([ones(2), ones(3)]), "ALLREDUCE_COALESCED", -1, 2, 0),
        (lambda: dist.reduce(ones(2), 0), "REDUCE", 0, 1, 0),
        (lambda: dist.broadcast(ones(2), 0), "BROADCAST", 0, None, None),
        (lambda: dist.all_gather(every, ones(2)), "ALLGATHER", -1, 1, size),
        (lambda: dist.all_gather_into_tensor(ones(2 * size), ones(2)), "ALLGATHER_BASE", -1, 1, 1),
        (lambda: dist.group.WORLD.allgather_into_tensor_coalesced([ones(2 * size)], [ones(2)]),
         "ALLGATHER_INTO_TENSOR_COALESCED", -1, 1, 1),
        (lambda: dist.gather(ones(2), at_root, 0), "GATHER", 0, 1, many),
        (lambda: dist.group.WORLD.gather_single(ones(2 * size) if rank == 0 else None, ones(2), root_is(0)),
         "GATHER", 0, 1, many),
        (lambda: dist.scatter(ones(2), at_root, 0), "SCATTER", 0, many, 1),
        (lambda: dist.reduce_scatter(ones(2), every), "REDUCE_SCATTER", -1, size, 1),
        (lambda: dist.reduce_scatter_tensor(ones(2), ones(2 * size)), "REDUCE_SCATTER_BASE", -1, 1, 1),
        (lambda: dist.group.WORLD.reduce_scatter_tensor_coalesced([ones(2)], [ones(2 * size)],
                                                                  c10d.ReduceScatterOptions()),
         "REDUCE_SCATTER_TENSOR_COALESCED", -1, 1, 1),
        (lambda: dist.all_to_all(every, [ones(2)] * size), "ALLTOALL", -1, size, size),
        (lambda: dist.all_to_all_single(ones(2 * size), ones(2 * size)), "ALLTOALL_BASE", -1, 1, 1),
        (lambda: dist.group.WORLD.alltoall_base(ones(2 * size), ones(2 * size), [], []), "ALLTOALL_BASE", -1, 1, 1),
        (lambda: dist.barrier(), "BARRIER", -1, 0, 0),
    ]


def root_is(rank):
    options = c10d.GatherOptions()
    options.rootRank = rank
    return options


def hooks_see_each_call(rank, size):
    dist.init_process_group("tutti")
    group = dist.group.WORLD
    before, after = [], []
    group.register_pre_hook(1, lambda call: before.append(call))
    group.register_post_hook(1, lambda call: after.append(call))
    for call, name, root, inputs, outputs in calls(rank, size):
        before.clear()
        after.clear()
        done = call()
        assert done is None or done.wait()
        assert [seen.name.name for seen in before] == [name] == [seen.name.name for seen in after], (name, before)
        assert before[0].op_id == after[0].op_id
        assert before[0].root == root and after[0].work is not None, name
        if inputs is not None:
            assert (len(before[0].input_tensors), len(before[0].output_tensors)) == (inputs, outputs), name
    before.clear()
    x = ones(2)
    work = dist.all_reduce(x, async_op=True)
    assert before[0].async_op and before[0].input_tensors[0].data_ptr() == x.data_ptr()
    assert work.wait() and work.is_completed() and work.is_success() and work._get_sequence_number() > 0
    assert work.get_future().wait()[0].data_ptr() == x.data_ptr()
    assert torch.equal(x, torch.full((2,), float(size)))
    dist.destroy_process_group()


@pytest.mark.parametrize("size", [1, 3])
def test_hooks_see_each_call(size):
    run(size, hooks_see_each_call)


def hooks_see_messages(rank, size):
    dist.init_process_group("tutti")
    before = []
    dist.group.WORLD.register_pre_hook(1, lambda call: before.append((call.name.name, call.root)))
    x = torch.full((3,), float(rank))
    if rank == 0:
        dist.send(x, 1)
        dist.send(x, 1)
        assert before == [("SEND", 1), ("SEND", 1)]
    else:
        dist.recv(x, 0)
        assert dist.recv(x) == 0 and torch.equal(x, torch.zeros(3))
        assert [name for name, _ in before] == ["RECV", "RECV"] and before[0][1] == 0
    dist.destroy_process_group()


def test_hooks_see_messages():
    run(2, hooks_see_messages)


def errors_of_hooks_reach_the_caller(rank, size):
    dist.init_process_group("tutti")
    group = dist.group.WORLD
    part = dist.new_group(list(range(size)))

    def refuse(call):
        raise KeyError("not this one")

    x = ones(2)
    group.register_pre_hook(1, refuse)
    with pytest.raises(KeyError, match="not this one"):
        dist.all_reduce(x)
    assert torch.equal(x, ones(2))  # the call was not made
    dist.all_reduce(x, group=part)  # a hook is of one group
    group.unregister_pre_hook(1)
    group.register_post_hook(1, refuse)
    with pytest.raises(KeyError, match="not this one"):
        dist.all_reduce(x)
    group.unregister_post_hook(1)
    dist.all_reduce(x)
    assert torch.equal(x, torch.full((2,), float(size)**3))
    with pytest.raises(ValueError, match="there must be"):  # an error of our own keeps its type
        dist.all_gather([ones(2)] * (size + 1), ones(2))
    part.register_pre_hook(1, lambda call: None)
    negated = torch._neg_view(ones(2))
    for call in (lambda: dist.all_reduce(negated, group=part),
                 lambda: dist.all_gather([negated] * size, x, group=part)):
        with pytest.raises(ValueError, match="negated"):
            call()
    outputs = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(outputs, negated, group=part)
    assert torch.equal(torch.cat(outputs), -ones(2 * size))
    dist.destroy_process_group()


def test_errors_of_hooks_reach_the_caller():
    run(2, errors_of_hooks_reach_the_caller)


def hooks_of_two_threads(rank, size):
    dist.init_process_group("tutti")
    groups = [dist.new_group(list(range(size))) for _ in range(2)]
    seen = [[], []]
    for group, calls_of in zip(groups, seen):
        group.register_post_hook(1, lambda call, calls_of=calls_of: calls_of.append(call.name.name))

    def use(place, results):
        for number in range(50):
            x = torch.full((4,), float(place * 100 + number))
            work = dist.all_reduce(x, group=groups[place], async_op=True)
            assert work.wait() and work.result()[0].data_ptr() == x.data_ptr()
            results.append(x[0].item() == size * (place * 100 + number))

    results = [[], []]
    threads = [threading.Thread(target=use, args=(place, results[place])) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [all(good) and len(good) for good in results] == [50, 50]
    assert seen == [["ALLREDUCE"] * 50] * 2
    dist.destroy_process_group()


def test_threads_get_their_own_works():
    run(2, hooks_of_two_threads)


def nan_checks(rank, size, from_the_start):
    dist.init_process_group("tutti")
    x = torch.tensor([1.0, NAN])
    if not from_the_start:
        dist.all_reduce(x.clone())
        check = c10d.NanCheckHook.attach(dist.group.WORLD)
    with pytest.raises(RuntimeError, match="NaN"):
        dist.all_reduce(x)
    out = torch.full((2 * size,), NAN)  # an output may hold anything
    dist.all_gather_into_tensor(out, ones(2))
    assert torch.equal(out, ones(2 * size))
    if not from_the_start:
        check.remove()
        dist.all_reduce(x)
    dist.destroy_process_group()


def test_a_nan_check_that_is_attached_sees_calls():
    run(2, nan_checks, False)


def test_the_nan_check_of_the_environment_sees_calls():
    run(2, nan_checks, True, TORCH_DIST_NAN_CHECK="1")
