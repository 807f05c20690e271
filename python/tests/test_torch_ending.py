"""How calls of the backend "tutti" end: by Ctrl-C, and while other threads make some."""

import signal
import threading
import time
import warnings

import pytest
from ranks import run

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import tutti  # noqa: E402


def interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def interrupt_another_thread():
    """Of a process that was just stopped the kernel may give Ctrl-C to a thread that does not wait."""
    signal.raise_signal(signal.SIGINT)


def interrupted(rank, size):
    """Rank 1 comes once rank 0 was interrupted in its wait."""
    dist.init_process_group("tutti")
    store = dist.group.WORLD.get_group_store()
    waits = (lambda future: future.wait(), lambda future: future.then(lambda done: done.value()).wait())
    cases = [(wait, stop) for wait in waits for stop in (interrupt, interrupt_another_thread)]
    for place, (wait, stop) in enumerate(cases):
        x = torch.ones(3)
        if rank == 1:
            store.wait([f"interrupted {place}"])
        future = dist.all_reduce(x, async_op=True).get_future()
        if rank == 0:
            begun = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                threading.Timer(0.2, stop).start()
                wait(future)
            assert time.monotonic() - begun < 20
            store.set(f"interrupted {place}", "")
        assert future.wait()[0] is x and x.tolist() == [2, 2, 2]  # the call has gone on
    # A program that handles the signal by itself is not disturbed.
    if rank == 1:
        store.wait(["handled"])
    future = dist.all_reduce(x, async_op=True).get_future()
    if rank == 0:
        signal.signal(signal.SIGINT, lambda number, frame: store.set("handled", ""))
        threading.Timer(0.2, interrupt).start()
    assert future.wait()[0].tolist() == [4, 4, 4]
    dist.destroy_process_group()


def test_ctrl_c_ends_the_wait_for_a_future():
    run(2, interrupted)


def left_beside_calls(rank, size):
    warnings.simplefilter("ignore")  # the ranks have made different numbers of calls
    dist.init_process_group("tutti")
    for _ in range(5):
        group = dist.new_group([0, 1])
        errors = []

        def call():
            try:
                while True:
                    dist.all_reduce(torch.ones(10), group=group, async_op=True)
            except (tutti.Error, ValueError) as error:
                errors.append(str(error))

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.01)
        dist.destroy_process_group(group)
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        assert len(errors) == 3
    dist.destroy_process_group()


def test_a_group_is_left_while_threads_make_calls():
    run(2, left_beside_calls)
