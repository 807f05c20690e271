"""What the library raises."""

import enum


class ErrorCode(enum.IntEnum):
    """What has gone wrong. The guide "Errors" has an example of each."""

    INVALID_ARGUMENT = 1  #: the caller's own arguments or settings are wrong
    UNSUPPORTED = 2  #: well formed, but this build, machine or algorithm cannot do it
    MISMATCH = 3  #: two ranks made different calls
    PEER_LOST = 4  #: a peer died, its connection closed, or it was silent for too long
    PEER_LEFT = 5  #: a peer finished and left while this rank still waits for it
    TIMEOUT = 6  #: a deadline passed
    UNREACHABLE = 7  #: joining only: rank 0 could not be reached
    REFUSED = 8  #: authentication or admission failed
    ABORTED = 9  #: a rank aborted the communicator, or exited
    SYSTEM = 10  #: the operating system, CUDA or an RDMA device refused something
    INTERNAL = 11  #: a mistake of the library
    PARTITIONED = 12  #: some ranks cannot be reached, and those that can are no majority
    EXPELLED = 13  #: the other ranks have given this one up


class Error(RuntimeError):
    """A call has failed. Its text says who, what, where, and what to do.

    After INVALID_ARGUMENT, UNSUPPORTED and SYSTEM before a call is made the communicator can still be used. Every other
    error is final: later calls on the communicator give the same error, on every rank.
    """

    code: ErrorCode
    #: The rank that the error is about, or that told this rank; None: there is none.
    peer: int | None

    def __init__(self, text: str, code: int, peer: int = -1):
        super().__init__(text)
        self.code = ErrorCode(code)
        self.peer = peer if peer >= 0 else None

    def __reduce__(self):  # so that it can be pickled, as multiprocessing does
        return Error, (self.args[0], int(self.code), -1 if self.peer is None else self.peer)
