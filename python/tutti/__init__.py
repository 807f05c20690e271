"""tutti: collective communication. The same bits always, never hangs.

    import numpy, tutti

    with tutti.init() as world:                      # started by `tutti run`, torchrun, mpirun or srun
        gradient = numpy.ones(1000, numpy.float32)
        world.all_reduce(gradient)                   # in place

With PyTorch, `torch.distributed.init_process_group("tutti")` needs no import. The guides "Python" and "PyTorch" say
the rest.
"""

from __future__ import annotations

from tutti import _native
from tutti._communicator import Buffer, Communicator, Work
from tutti._error import Error, ErrorCode
from tutti._joining import Store, from_store, from_unique_id, init
from tutti._types import DType, Op, Order

SUM, PROD, MAX, MIN, AVG = Op.SUM, Op.PROD, Op.MAX, Op.MIN, Op.AVG
BAND, BOR, BXOR = Op.BAND, Op.BOR, Op.BXOR

#: Memory that every rank of this host maps: Communicator.allocate() makes it. It has the buffer protocol.
Memory = _native.Memory
#: Memory that is shared in place: Communicator.adopt() makes it.
Adoption = _native.Adoption

__version__ = "{}.{}.{}".format(*divmod(_native.version() // 100, 100), _native.version() % 100)

__all__ = [
    "AVG", "Adoption", "BAND", "BOR", "BXOR", "Buffer", "Communicator", "DType", "Error", "ErrorCode", "MAX", "MIN",
    "Memory", "Op", "Order", "PROD", "SUM", "Store", "Work", "from_store", "from_unique_id", "group", "init",
    "unique_id",
]


def unique_id() -> bytes:
    """A new meeting place for one communicator: 128 bytes to be sent to the other ranks.

    It holds a secret. Rank 0 must join in the process that made it. See tutti_get_unique_id() in tutti/tutti.h.
    """
    return _native.unique_id()


class group:
    """`with tutti.group():` the calls that this thread starts inside begin together at its end.

    Sends and receives inside cannot deadlock, and many small all-reduces are done in one pass, with the same bits. Only
    started calls (`start_...`) belong there: the blocking ones would wait for what has not begun.
    """

    def __enter__(self) -> group:
        _native.group_start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        _native.group_end()
