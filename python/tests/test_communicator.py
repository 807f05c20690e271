"""Communicators over NumPy arrays and other buffers."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from ranks import Ranks, meet, run

import tutti


def every_collective(rank: int, size: int) -> None:
    with tutti.init() as world:
        assert (world.rank, world.size) == (rank, size)
        ones = np.arange(5, dtype=np.float32) + rank
        total = sum(np.arange(5, dtype=np.float32) + r for r in range(size))
        assert np.array_equal(world.all_reduce(ones.copy()), total)
        out = np.empty_like(ones)
        assert world.all_reduce(ones, out) is out and np.array_equal(out, total)
        assert np.array_equal(world.all_reduce(ones, out, tutti.MAX), np.arange(5) + size - 1)
        root = size - 1
        reduced = world.reduce(ones, out, root)
        assert np.array_equal(reduced, total) if rank == root else reduced is None
        assert np.array_equal(world.broadcast(ones.copy(), root), np.arange(5) + root)
        rows = np.empty((size, 5), np.float32)
        expected = np.stack([np.arange(5, dtype=np.float32) + r for r in range(size)])
        assert np.array_equal(world.all_gather(ones, rows), expected)
        gathered = world.gather(ones, rows if rank == root else None, root)
        assert np.array_equal(gathered, expected) if rank == root else gathered is None
        assert np.array_equal(world.scatter(expected if rank == root else None, out, root), expected[rank])
        assert np.array_equal(world.reduce_scatter(expected, out), size * expected[rank])
        crossed = world.all_to_all(np.full((size, 2), rank, np.int64), np.empty((size, 2), np.int64))
        assert np.array_equal(crossed, np.repeat(np.arange(size), 2).reshape(size, 2))
        assert np.array_equal(world.scan(ones, out), sum(expected[: rank + 1]))
        before = world.exclusive_scan(ones, np.full(5, -1, np.float32))
        assert np.array_equal(before, sum(expected[:rank]) if rank else np.full(5, -1))
        world.barrier()


def rows_of_different_lengths(rank: int, size: int) -> None:
    with tutti.init() as world:
        counts = [r for r in range(size)]  # rank 0 has nothing
        mine = np.full(rank, rank, np.int32)
        whole = np.concatenate([np.full(r, r, np.int32) for r in range(size)])
        assert np.array_equal(world.all_gather(mine, np.empty_like(whole), counts=counts), whole)
        out = world.gather(mine, np.empty_like(whole) if rank == 0 else None, counts=counts)
        assert rank != 0 or np.array_equal(out, whole)
        part = np.empty(rank, np.int32)
        assert np.array_equal(world.scatter(whole if rank == 0 else None, part, counts=counts), mine)
        assert np.array_equal(world.reduce_scatter(whole, part, counts=counts), size * mine)
        sent = np.concatenate([np.full(r, rank, np.int32) for r in range(size)])
        got = world.all_to_all(sent, np.empty(size * rank, np.int32), input_counts=counts, output_counts=[rank] * size)
        assert np.array_equal(got, np.repeat(np.arange(size), rank))


def types_and_buffers(rank: int, size: int) -> None:
    with tutti.init() as world:
        for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64):
            assert np.array_equal(world.all_reduce(np.ones(7, dtype)), np.full(7, size, dtype))
        assert world.all_reduce(np.array([rank == 0, False]), op=tutti.BOR).tolist() == [True, False]
        assert world.all_reduce(bytearray([1 << rank]), op=tutti.BOR) == bytearray([(1 << size) - 1])
        assert world.all_reduce(memoryview(bytearray(3)))[0] == 0
        assert world.all_reduce(np.empty(0, np.float32)).size == 0
        brain = np.full(4, 0x3F80, np.uint16)  # 1.0
        world.all_reduce(brain, dtype=tutti.DType.BFLOAT16)
        assert brain[0] == {1: 0x3F80, 2: 0x4000, 3: 0x4040, 4: 0x4080}[size]
        scaled = world.all_reduce(np.ones(3), op=world.premul_sum(0.5, tutti.DType.FLOAT64))
        assert np.array_equal(scaled, np.full(3, 0.5 * size))
        scaled = world.all_reduce(np.ones(3, np.float16), op=world.premul_sum(0.5, tutti.DType.FLOAT16))
        assert np.array_equal(scaled, np.full(3, 0.5 * size, np.float16))
        shared = world.allocate(4096)
        array = np.frombuffer(shared, np.float32)
        array[:] = rank
        world.all_reduce(array)
        assert array[0] == size * (size - 1) / 2 and len(shared) == 4096
        own = np.full(30_000, rank, np.float32)
        with world.adopt(own) as adopted:
            assert own[0] == rank and world.all_reduce(own)[29_999] == size * (size - 1) / 2
        adopted.release()
        assert own[15_000] == size * (size - 1) / 2
        with pytest.raises(TypeError):
            world.adopt(b"not writable" * 1000)
        strided = np.ones((4, 4), np.float32)[:, ::2]
        with pytest.raises(TypeError, match="input must be a writable C-contiguous buffer"):
            world.all_reduce(strided)
        fixed = np.ones(3, np.float32)
        fixed.flags.writeable = False
        with pytest.raises(TypeError, match="writable"):
            world.all_reduce(fixed)
        with pytest.raises(TypeError, match='"h", which are no type'):
            world.all_reduce(np.ones(3, np.int16))
        for swapped in (np.ones(3, ">f4"), np.array([1, "b"], object)):
            with pytest.raises(TypeError, match="of the other byte order, or no numbers"):
                world.all_reduce(swapped, dtype=tutti.DType.FLOAT32)
        with pytest.raises(TypeError, match="input is INT32, and output is FLOAT32|input is FLOAT32, and output is INT32"):
            world.reduce(np.ones(3, np.float32), np.ones(3, np.int32), rank)
        with pytest.raises(TypeError, match="input is FLOAT32, and output is FLOAT64"):
            world.all_reduce(np.ones(3, np.float32), np.ones(3))
        with pytest.raises(ValueError, match=f"output must have {3 * size} elements, and has 1"):
            world.all_gather(np.ones(3), np.ones(1))
        with pytest.raises(tutti.Error, match="root") as error:
            world.broadcast(np.ones(3), root=size)
        assert error.value.code == tutti.ErrorCode.INVALID_ARGUMENT and error.value.peer is None
        world.barrier()  # it can still be used


def started_calls(rank: int, size: int) -> None:
    with tutti.init() as world:
        works = [world.start_all_reduce(np.full(3, i, np.float32)) for i in range(10)]
        for i, work in enumerate(works):
            assert np.array_equal(work.wait(), np.full(3, i * size)) and work.test()
        peer, source = (rank + 1) % size, (rank - 1) % size
        send = world.start_send(np.array([rank]), peer, tag=5)
        assert world.receive(np.array([-1]), source, tag=5)[0] == source
        send.wait()
        assert world.probe() is None
        world.barrier()
        if rank != 0:
            world.send(np.array([rank]), 0)
        else:
            senders = {int(world.receive(np.array([-1]), world.probe(timeout=20))[0]) for _ in range(size - 1)}
            assert senders == set(range(1, size)) and world.probe(timeout=0.02) is None
        told, event = [], threading.Event()
        world.start_all_reduce(np.ones(100)).add_done_callback(lambda error: (told.append(error), event.set()))
        assert event.wait(20) and told == [None]
        # Dropped at once, with its buffer: it goes on all the same, and frees both when it is over.
        for _ in range(10):
            world.start_all_reduce(np.ones(1 << 16))
        world.barrier()
        with tutti.group():
            asked = world.start_all_reduce(np.ones(3), timeout=20)
            with pytest.raises(tutti.Error, match="before the group has ended"):
                asked.test()
            world.start_all_reduce(np.ones(1 << 12))  # dropped
        assert asked.wait()[0] == size
        with tutti.group():
            sums = [world.start_all_reduce(np.full(2, i, np.float32)) for i in range(100)]
            sent = world.start_send(np.array([rank]), peer)
            got = world.start_receive(np.array([-1]), source)
        assert all(work.wait()[0] == i * size for i, work in enumerate(sums))
        assert got.wait()[0] == source and sent.wait() is None


def other_communicators(rank: int, size: int) -> None:
    with tutti.init() as world:
        halves = world.split(rank % 2)
        assert halves.all_reduce(np.ones(1))[0] == halves.size
        assert (world.split(-1 if rank == 0 else 0) is None) == (rank == 0)
        if rank != 1:  # rank 1 knows nothing of it
            ends = world.subgroup([r for r in range(size) if r != 1], "without 1")
            assert ends.all_reduce(np.ones(1))[0] == size - 1
            ends.destroy()
        world.barrier()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_collective(size):
    run(size, every_collective)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_rows_of_different_lengths(transport):
    run(3, rows_of_different_lengths, TUTTI_TRANSPORT=transport)


def test_types_and_buffers():
    run(2, types_and_buffers)


@pytest.mark.parametrize("progress", ["caller", "thread"])
def test_started_calls(progress):
    run(2, started_calls, TUTTI_PROGRESS=progress)


def test_other_communicators():
    run(3, other_communicators)


# --- failures


def a_rank_that_does_not_come(rank: int, size: int) -> str:
    with tutti.init() as world:
        world.barrier()
        meet("after the barrier")  # so that no rank is still in it when the call fails
        if rank == 1:
            meet("failed")
            world.destroy()
            return ""
        begun = time.monotonic()
        with pytest.raises(tutti.Error) as error:
            world.all_reduce(np.ones(3), timeout=2)
        assert time.monotonic() - begun < 20
        meet("failed")
        world.destroy()
        return f"{error.value.code.name} {error.value.peer} {error.value}"


def test_a_timeout_of_a_call_names_the_rank():
    text = run(2, a_rank_that_does_not_come)[0]
    assert text.startswith("TIMEOUT 1 ") and "rank 1 has not entered all_reduce" in text
    assert "TUTTI_TIMEOUT" not in text  # the caller named the time itself


def goes_on_without_a_dead_rank(rank: int, size: int) -> tuple[int, int, float]:
    world = tutti.init()
    if rank == 1:
        world.barrier()
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(tutti.Error) as error:
        world.barrier()  # rank 1 may leave it first, and die
        while True:
            world.all_reduce(np.ones(10))
    assert error.value.code == tutti.ErrorCode.PEER_LOST and error.value.peer == 1
    left = world.shrink()
    x = np.full(10, float(rank))
    left.all_reduce(x)
    meet("end", [0, 2])  # none dies while the other is in the call
    return left.rank, left.size, float(x[0])


def test_those_that_are_left_go_on_without_a_dead_rank():
    ranks = Ranks(3, goes_on_without_a_dead_rank)
    said = sorted(ranks._results.get(timeout=60) for _ in range(2))
    assert [value for _, _, value in said] == [(0, 2, 2.0), (1, 2, 2.0)], said
    for process in ranks.processes:
        process.join(30)


def different_calls(rank: int, size: int) -> None:
    world = tutti.init()
    with pytest.raises(tutti.Error) as error:
        world.all_reduce(np.ones(3 + rank))
        world.barrier()
    meet("failed")  # else one may hear first that the other has ended
    assert error.value.code == tutti.ErrorCode.MISMATCH and world.failure.code == error.value.code
    copy = pickle.loads(pickle.dumps(error.value))
    assert (str(copy), copy.code, copy.peer) == (str(error.value), error.value.code, error.value.peer)
    world.destroy()
    with pytest.raises(tutti.Error, match="was left"):
        world.barrier()


def test_different_calls_are_a_mismatch():
    run(2, different_calls)


def is_interrupted(rank: int, size: int) -> float:
    world = tutti.init()
    if rank == 1:
        meet("interrupted")
        os._exit(0)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        world.all_reduce(np.ones(3))
    took = time.monotonic() - begun
    meet("interrupted")
    world.destroy()  # waits for the call, which rank 1's end ends
    return took


def test_ctrl_c_ends_a_wait():
    ranks = Ranks(2, is_interrupted)
    rank, good, took = ranks._results.get(timeout=60)
    assert (rank, good) == (0, True) and took < 20, took
    for process in ranks.processes:
        process.join(30)


def joins_alone(rank: int, size: int) -> float:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        os.environ["WORLD_SIZE"] = "2"
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        tutti.init()
    return time.monotonic() - begun


def test_ctrl_c_ends_a_join():
    ranks = Ranks(1, joins_alone)
    rank, good, took = ranks._results.get(timeout=40)
    assert good and took < 10, took
    ranks.processes[0].join(20)
    assert ranks.processes[0].exitcode == 0


WAITS_AS_PYTHON_ENDS = """
import threading, time, tutti
world = tutti.init()
for waiting in (world, world.split(0)):
    threading.Thread(target=waiting.probe, args=(60,), daemon=True).start()
time.sleep(0.2)
print("ends", flush=True)
"""


def test_python_ends_while_daemon_threads_wait():
    done = subprocess.run([sys.executable, "-c", WAITS_AS_PYTHON_ENDS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


def forks(rank: int, size: int) -> None:
    with tutti.init() as world:
        started = world.start_all_reduce(np.full(1 << 20, 1.0))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                world.all_reduce(np.ones(3))
            except tutti.Error as error:
                code = 0 if "fork" in str(error) else 2
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert started.wait()[0] == size
        for _ in range(100):
            assert world.all_reduce(np.ones(3))[0] == size


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_forked_child_is_refused_and_disturbs_nobody(transport):
    run(2, forks, TUTTI_TRANSPORT=transport)


def aborts_what_holds_up_destroy(rank: int, size: int) -> None:
    world = tutti.init()
    if rank == 1:
        meet("aborted")  # does not come to split()
        world.destroy()
        return
    sys.setswitchinterval(60)  # a thread keeps Python until its call of the library is under way
    splitting = threading.Event()
    failed = []

    def splits():
        splitting.set()
        try:
            world.split(0)
        except tutti.Error as error:
            failed.append(error.code)

    threads = [threading.Thread(target=splits), threading.Thread(target=world.destroy)]
    for thread in threads:
        thread.start()
        splitting.wait()
        time.sleep(0.1)
    world.abort("somebody waits")
    for thread in threads:
        thread.join(20)
    assert failed == [tutti.ErrorCode.ABORTED]
    meet("aborted")


def test_abort_ends_a_call_for_which_destroy_waits():
    run(2, aborts_what_holds_up_destroy)


class FolderStore:
    """A store of files."""

    def __init__(self, folder: str):
        self.folder = folder

    def set(self, key: str, value: bytes) -> None:
        path = os.path.join(self.folder, key.replace("/", "."))
        with open(path + ".new" + str(os.getpid()), "wb") as file:
            file.write(value)
        os.rename(path + ".new" + str(os.getpid()), path)

    def get(self, key: str, timeout: float) -> bytes:
        until = time.monotonic() + timeout
        while True:
            try:
                with open(os.path.join(self.folder, key.replace("/", ".")), "rb") as file:
                    return file.read()
            except FileNotFoundError:  # the time is looked at after the file, so the file at least once
                if time.monotonic() > until:
                    raise TimeoutError(f"nobody has set {key}") from None
                time.sleep(0.01)

    def add(self, key: str, number: int) -> int:  # one rank a key: nobody else counts there
        try:
            total = int(self.get(key, 0.001)) + number
        except TimeoutError:
            total = number
        self.set(key, str(total).encode())
        return total


def join_twice(rank: int, size: int, folder: str) -> None:
    for _ in range(2):
        with tutti.from_store(FolderStore(folder), size, rank) as world:
            assert world.all_reduce(np.ones(1))[0] == size


def test_a_store_serves_any_number_of_joins(tmp_path):
    run(2, join_twice, str(tmp_path))
    run(2, join_twice, str(tmp_path))


class BrokenStore(FolderStore):
    def get(self, key: str, timeout: float) -> bytes:
        raise KeyError("the store is gone")


def join_broken(rank: int, size: int, folder: str) -> None:
    with pytest.raises(RuntimeError) as error:
        tutti.from_store(BrokenStore(folder), 2, 1)
    assert isinstance(error.value.__cause__, KeyError)


def test_what_a_store_raises_is_the_cause(tmp_path):
    run(1, join_broken, str(tmp_path))


def join_by_id(rank: int, size: int, folder: str) -> None:
    store = FolderStore(folder)
    if rank == 0:
        store.set("id", tutti.unique_id())
    with tutti.from_unique_id(store.get("id", 20), size, rank, timeout=20, transport="tcp") as world:
        assert world.all_reduce(np.ones(1))[0] == size


def test_a_unique_id(tmp_path):
    run(2, join_by_id, str(tmp_path))


def test_settings_are_checked():
    with pytest.raises(ValueError, match="progress is one of caller, thread"):
        tutti.init(progress="nobody")
    with pytest.raises(ValueError, match="a duration must be positive"):
        tutti.init(timeout=0)
    with pytest.raises(TypeError, match="colour"):
        tutti.init(colour="red")
    with pytest.raises(ValueError, match="128 bytes"):
        tutti.from_unique_id(b"short", 1, 0)
    with tutti.init() as alone:
        assert repr(alone) == "<tutti.Communicator: rank 0 of 1>"
