"""Every operation of torch.distributed over the backend "tutti"."""

import threading
import time
from datetime import timedelta

import pytest
from ranks import meet, run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import tutti.torch  # noqa: E402

MOVED = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
         torch.float8_e4m3fnuz]
SHAPES = [(0,), (), (1,), (7,), (3, 5), (1000,)]


def filled(shape, value, dtype):
    return torch.full(shape, value, dtype=torch.float32).to(dtype)


def same(a, b):
    return torch.equal(a.to(torch.complex128), b.to(torch.complex128))


def moves(rank, size):
    dist.init_process_group("tutti")
    root = size - 1
    for dtype in MOVED:
        for shape in SHAPES:
            mine = filled(shape, rank + 1, dtype)
            every = [filled(shape, r + 1, dtype) for r in range(size)]
            x = mine.clone()
            dist.broadcast(x, root)
            assert same(x, every[root]), (dtype, shape)
            outs = [torch.zeros_like(mine) for _ in range(size)]
            dist.all_gather(outs, mine)
            assert all(map(same, outs, every)), (dtype, shape)
            outs = [torch.zeros_like(mine) for _ in range(size)]
            dist.gather(mine, outs if rank == root else None, root)
            assert rank != root or all(map(same, outs, every))
            out = torch.zeros_like(mine)
            dist.scatter(out, every if rank == root else None, root)
            assert same(out, mine)
            outs = [torch.zeros_like(mine) for _ in range(size)]
            dist.all_to_all(outs, [mine] * size)
            assert all(map(same, outs, every))
            if shape:
                whole = torch.zeros((size * shape[0], *shape[1:]), dtype=dtype)
                dist.all_gather_into_tensor(whole, mine)
                assert same(whole, torch.cat(every))
                crossed = torch.zeros_like(whole)
                dist.all_to_all_single(crossed, torch.cat([mine] * size))
                assert same(crossed, torch.cat(every))
            if size == 1:
                continue
            to, source = (rank + 1) % size, (rank - 1) % size
            request = dist.isend(mine, to)
            out = torch.zeros_like(mine)
            assert dist.recv(out, source) == source
            request.wait()
            assert same(out, every[source])
    dist.destroy_process_group()


def reductions(rank, size):
    dist.init_process_group("tutti")
    R = dist.ReduceOp
    integers = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
    floats = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2]
    for dtype in integers + floats:
        for shape in SHAPES:
            def check(op, value, call=dist.all_reduce):
                x = filled(shape, rank + 1, dtype)
                call(x, op=op)
                assert same(x, filled(shape, value, dtype)), (dtype, shape, op, x)

            check(R.SUM, size * (size + 1) // 2)
            check(R.PRODUCT, {1: 1, 2: 2, 3: 6, 4: 24}[size])
            check(R.MAX, size)
            check(R.MIN, 1)
            if dtype in integers:
                check(R.BAND, {1: 1, 2: 0, 3: 0, 4: 0}[size])
                check(R.BOR, {1: 1, 2: 3, 3: 3, 4: 7}[size])
                check(R.BXOR, {1: 1, 2: 3, 3: 0, 4: 4}[size])
            x = filled(shape, 2, dtype)
            dist.all_reduce(x, op=R.AVG)
            assert same(x, filled(shape, 2, dtype))
            rows = [filled(shape, r + 1, dtype) for r in range(size)]
            out = torch.zeros(shape, dtype=torch.float32).to(dtype)
            dist.reduce_scatter(out, rows)
            assert same(out, filled(shape, size * (rank + 1), dtype))
            if shape:
                dist.reduce_scatter_tensor(out, torch.cat([row.reshape(shape) for row in rows]))
                assert same(out, filled(shape, size * (rank + 1), dtype))
            x = filled(shape, rank + 1, dtype)
            dist.reduce(x, size - 1)
            assert same(x, filled(shape, size * (size + 1) // 2 if rank == size - 1 else rank + 1, dtype))
    for dtype in (torch.complex64, torch.complex128):
        x = torch.tensor([1 + 2j, 3 - 1j], dtype=dtype)
        dist.all_reduce(x)
        assert torch.equal(x, size * torch.tensor([1 + 2j, 3 - 1j], dtype=dtype))
        with pytest.raises((TypeError, ValueError)):
            dist.all_reduce(x, op=R.MAX)
    x = torch.tensor([True, False, rank == 0])
    dist.all_reduce(x)
    assert x.tolist() == [True, False, True]
    x = torch.tensor([True, False, rank == 0])
    dist.all_reduce(x, op=R.MIN)
    assert x.tolist() == [True, False, size == 1]
    x = torch.full((3,), float(rank + 1))
    dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
    assert torch.equal(x, torch.full((3,), size * (size + 1) / 4))
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        for factor in (0.5, 2.0):
            x = torch.full((3,), float(rank % 2 + 1)).to(dtype)
            dist.all_reduce(x, op=dist._make_nccl_premul_sum(factor))
            assert same(x, torch.full((3,), factor * (size + size // 2)).to(dtype)), (dtype, factor)
    with pytest.raises(TypeError):
        dist.all_reduce(torch.zeros(3).to(torch.float8_e4m3fnuz))
    indices = torch.tensor([[rank, size]])
    sparse = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0]), (size + 1,))
    dist.all_reduce(sparse)
    assert torch.equal(sparse.to_dense(), torch.tensor([1.0] * size + [2.0 * size]))
    dist.barrier()
    dist.destroy_process_group()


def shapes_of_memory(rank, size):
    dist.init_process_group("tutti")
    base = torch.zeros(6, 8)
    view = base[:, ::2]
    view.fill_(rank + 1)
    work = dist.all_reduce(view, async_op=True)
    work.wait()
    assert (view == size * (size + 1) / 2).all() and (base[:, 1::2] == 0).all()
    transposed = torch.arange(6.0).reshape(2, 3).t()
    outs = [torch.empty(3, 2) for _ in range(size)]
    dist.all_gather(outs, transposed)
    assert all(torch.equal(out, transposed) for out in outs)
    stretched = torch.ones(1).expand(5)
    out = torch.empty(5 * size)
    dist.all_gather_into_tensor(out, stretched)
    assert torch.equal(out, torch.ones(5 * size))
    # One buffer in one piece: nothing is copied
    whole = torch.empty(size, 4)
    dist.all_gather(list(whole.unbind()), torch.full((4,), float(rank)))
    assert torch.equal(whole, torch.arange(float(size)).repeat_interleave(4).reshape(size, 4))
    # Rows of different lengths, none at all among them
    sizes = [(rank + r) % 3 for r in range(size)]
    sent = torch.cat([torch.full((n, 2), float(rank)) for n in sizes])
    got = torch.empty(sum(sizes), 2)
    dist.all_to_all_single(got, sent, sizes, sizes)
    assert torch.equal(got, torch.cat([torch.full((n, 2), float(r)) for r, n in enumerate(sizes)]))
    outs = [torch.empty(r) for r in range(size)]
    dist.all_gather(outs, torch.full((rank,), float(rank)))
    assert all((out == r).all() for r, out in enumerate(outs))
    negative = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag  # ones, and a bit that says to negate them
    assert negative.is_neg()
    dist.all_reduce(negative)
    assert (negative == -size).all()
    with pytest.raises(ValueError, match="tags from 0 to 65535"):
        dist.isend(torch.ones(1), (rank + 1) % size, tag=65536)
    with pytest.raises(TypeError, match="of one type"):
        dist.GroupMember.WORLD.allreduce_coalesced([torch.ones(2), torch.ones(2, dtype=torch.float64)])
    for call in (lambda: dist.all_gather_into_tensor(torch.empty(3 * size + 1), torch.empty(3)),
                 lambda: dist.all_gather([torch.empty(3)] * (size + 1), torch.empty(3)),
                 lambda: dist.all_gather([torch.empty(3, dtype=torch.int32)] * size, torch.empty(3)),
                 lambda: dist.all_to_all_single(torch.empty(size * 2 + 1), torch.empty(size * 2 + 1))):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            call()
    dist.barrier()
    dist.destroy_process_group()


def messages_of_whoever_sends(rank, size):
    dist.init_process_group("tutti")
    others = set(range(1, size))
    for tag in (0, 5):
        if rank == 0:
            whole = torch.zeros(1000)
            seen = set()
            for _ in others:
                sender = dist.recv(whole, tag=tag)
                assert (whole == sender + tag).all()
                seen.add(sender)
            assert seen == others
        else:
            dist.send(torch.full((1000,), float(rank + tag)), 0, tag=tag)
        dist.barrier()
    # Several at once, polled; and of several threads, which wait.
    for polls in (True, False):
        if rank == 0:
            tensors = [torch.zeros(1) for _ in others]
            works = [dist.irecv(tensor) for tensor in tensors]
            if polls:
                while not all(work.is_completed() for work in works):
                    time.sleep(0.001)
            else:
                threads = [threading.Thread(target=work.wait) for work in works]
                for thread in threads:
                    thread.start()
                time.sleep(0.05)
                works[0].is_completed()  # does not wait for the other threads: nobody sends before the barrier
                dist.barrier()
                for thread in threads:
                    thread.join(30)
                    assert not thread.is_alive()
            assert {work.source_rank() for work in works} == others and all(work.is_success() for work in works)
            assert all(tensor == 10 * work.source_rank() for tensor, work in zip(tensors, works))
        else:
            if not polls:
                dist.barrier()
            time.sleep(0.1 * rank)
            dist.send(torch.full((1,), 10.0 * rank), 0)
        dist.barrier()
    if rank == 0:
        late = dist.irecv(torch.zeros(1))
        with pytest.raises(RuntimeError, match="nobody has sent within the timeout"):
            late.wait(timedelta(milliseconds=20))
        assert not late.is_completed()
    meet("before the abort")  # so that no rank is still in a barrier
    if rank == 0:
        with pytest.raises(RuntimeError, match="enough"):
            late.wait(timedelta(seconds=30))
        assert late.is_completed() and not late.is_success() and "enough" in str(late.exception())
    elif rank == 1:
        time.sleep(0.1)
        dist.GroupMember.WORLD.native.abort("enough")
    meet("after the abort")


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_messages_of_whoever_sends(transport):
    run(3, messages_of_whoever_sends, TUTTI_TRANSPORT=transport)


def works_and_futures(rank, size):
    dist.init_process_group("tutti")
    for n in (2, 1 << 20):
        x = torch.ones(n)
        work = dist.all_reduce(x, async_op=True)
        assert work.get_future().then(lambda done: done.value()[0][0].item()).wait() == size
        assert work.is_completed() and work.is_success() and work.exception() is None and work.result()[0] is x
    # A function that follows a future makes a call by itself
    x = torch.ones(1 << 18)
    followed = dist.all_reduce(x, async_op=True).get_future().then(
        lambda done: dist.all_reduce(torch.ones(3), async_op=True))
    followed.wait().wait()
    # A callback waits for one that is chained behind it
    chained = threading.Event()
    later = []

    def waits(done):
        chained.wait(20)
        return later[0].wait()

    first = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(waits)
    later.append(dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda done: 5))
    chained.set()
    assert first.wait() == 5
    # Nobody looks, and the call completes
    x = torch.ones(1 << 16)
    work = dist.all_reduce(x, async_op=True)
    until = time.monotonic() + 20
    while x[-1] != size and time.monotonic() < until:
        time.sleep(0.001)
    assert x[-1] == size
    work.wait()
    # Dropped works
    for i in range(20):
        dist.all_reduce(torch.ones(1 << 12), async_op=True)
    dist.isend(torch.ones(3), (rank + 1) % size)
    x = torch.zeros(3)
    dist.recv(x, (rank - 1) % size)
    with dist._coalescing_manager(async_ops=True) as cm:
        tensors = [torch.full((4,), float(i)) for i in range(10)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    cm.wait()
    assert all((tensor == i * size).all() for i, tensor in enumerate(tensors))
    # Messages with tags are found in whatever order they come
    to, source = (rank + 1) % size, (rank - 1) % size
    sends = [dist.isend(torch.full((2,), float(tag)), to, tag=tag) for tag in (1, 2, 3)]
    for tag in (3, 1, 2):
        x = torch.zeros(2)
        dist.recv(x, source, tag=tag)
        assert (x == tag).all()
    for send in sends:
        send.wait()
    ops = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), to), dist.P2POp(dist.irecv, x, source)]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    assert (x == source).all()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    things = [["a", 1], {"b": 2}] if rank == 0 else [None, None]
    dist.broadcast_object_list(things, 0)
    assert things == [["a", 1], {"b": 2}]
    dist.destroy_process_group()


def groups(rank, size):
    dist.init_process_group("tutti", timeout=timedelta(seconds=30))
    ends = dist.new_group([0, size - 1])
    middle = dist.new_group([1], use_local_synchronization=True) if rank == 1 else None
    if rank in (0, size - 1):
        x = torch.ones(3)
        dist.all_reduce(x, group=ends)
        assert (x == 2).all()
    if middle is not None:
        dist.barrier(middle)
    # Two groups in opposite orders
    first, second = dist.new_group(list(range(size))), dist.new_group(list(range(size)))
    for turn in range(20):
        pair = (first, second) if rank % 2 else (second, first)
        works = [dist.all_reduce(torch.ones(1 << 14), group=group, async_op=True) for group in pair]
        for work in works:
            work.wait()
    part = dist.split_group(split_ranks=[[0], list(range(1, size))])
    assert dist.get_world_size(part) == (1 if rank == 0 else size - 1)
    x = torch.ones(3)
    dist.all_reduce(x, group=part)
    assert (x == dist.get_world_size(part)).all()
    many = [dist.new_group(list(range(size))) for _ in range(50)]
    for group in many:
        x = torch.ones(1)
        dist.all_reduce(x, group=group)
        assert x == size
    dist.destroy_process_group(ends) if rank in (0, size - 1) else None
    dist.monitored_barrier()
    dist.destroy_process_group()
    # And once more, over the same store
    dist.init_process_group("tutti")
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_moves(size):
    run(size, moves)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_reductions(size):
    run(size, reductions)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_shapes_of_memory(transport):
    run(3, shapes_of_memory, TUTTI_TRANSPORT=transport)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_works_and_futures(transport):
    run(2, works_and_futures, TUTTI_TRANSPORT=transport)


def test_groups():
    run(3, groups)


def adopted(rank, size):
    dist.init_process_group("tutti")
    tensor = torch.full((300, 1000), float(rank + 1))
    with tutti.torch.adopt(tensor[1:]):  # the storage, so all of it
        dist.all_reduce(tensor)
        dist.all_reduce(tensor.t())
    assert torch.equal(tensor, torch.full((300, 1000), size * size * (size + 1) / 2))
    kept = tutti.torch.adopt(tensor, dist.group.WORLD)
    with pytest.raises(tutti.Error, match="shared already"):
        tutti.torch.adopt(tensor)
    del tensor  # which `kept` keeps
    dist.barrier()
    dist.destroy_process_group()
    kept.release()


def test_adopted_memory():
    run(3, adopted)


# --- failures


def a_late_rank(rank, size):
    dist.init_process_group("tutti")
    group = dist.new_group(list(range(size)))
    dist.barrier()
    if rank == 1:
        meet("failed")
        return ""
    begun = time.monotonic()
    with pytest.raises(RuntimeError) as error:
        group.allreduce([torch.ones(3)], timeout=timedelta(seconds=2)).wait()
    assert time.monotonic() - begun < 20
    meet("failed")
    return str(error.value)


def test_a_timeout_names_the_rank():
    text = run(2, a_late_rank)[0]
    assert "rank 1 has not entered all_reduce" in text and "TUTTI_TIMEOUT" not in text


def a_barrier_without_two(rank, size):
    dist.init_process_group("tutti")
    dist.barrier()
    if rank in (1, 2):
        meet("failed")
        return ""
    with pytest.raises(RuntimeError) as error:  # rank 3 has 4 s to come
        dist.monitored_barrier(timeout=timedelta(seconds=4), wait_all_ranks=True)
    meet("failed")
    return str(error.value)


def test_a_monitored_barrier_names_all_that_are_missing():
    texts = run(4, a_barrier_without_two)
    assert "Ranks 1, 2 failed to pass monitoredBarrier" in texts[0] and "Ranks 1, 2 failed" in texts[3]


def different_calls(rank, size):
    dist.init_process_group("tutti")
    with pytest.raises(RuntimeError, match="made different calls"):
        dist.all_reduce(torch.ones(3 + rank))
        dist.barrier()
    meet("failed")


def test_different_calls_are_a_mismatch():
    run(2, different_calls)


def aborts(rank, size):
    dist.init_process_group("tutti")
    group = dist.GroupMember.WORLD
    dist.barrier()
    meet("before the abort")  # so that no rank is still in a barrier
    if rank == 0:
        threading.Timer(0.3, group.abort).start()
        with pytest.raises(RuntimeError, match="abort"):
            dist.recv(torch.ones(3), 1)
    else:
        with pytest.raises(RuntimeError, match="abort"):
            dist.all_reduce(torch.ones(3))
    meet("after the abort")


def test_an_abort_ends_the_calls_of_all():
    run(2, aborts)


def numbered(rank, size):
    dist.init_process_group("tutti")
    group = dist.group.WORLD
    assert group._get_sequence_number_for_group() == 0
    dist.all_reduce(torch.ones(1))
    work = dist.all_reduce(torch.ones(1), async_op=True)
    assert work._get_sequence_number() == group._get_sequence_number_for_group() == 2
    work.wait()
    with pytest.raises(ValueError, match="contiguous"):
        dist.all_to_all_single(torch.empty(size, size), torch.ones(size, size).t())
    dist.destroy_process_group()


def test_calls_are_numbered():
    run(2, numbered)
