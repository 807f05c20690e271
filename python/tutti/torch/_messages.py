"""Send and receive."""

from __future__ import annotations

import threading
from typing import Any

import torch
import torch.distributed as dist

from tutti import _native
from tutti.torch._calls import Calls
from tutti.torch._tensors import copied, moved, ready, room
from tutti.torch._work import FromAnybody

# Tags that never get in each other's way. Others share one of these, and must then come in the order of their sends.
_TAGS = 64
_LAST_TAG = 65535


class Messages(Calls):
    """send and recv."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._of_tags: dict[int, _native.Communicator] = {}
        self._looking: dict[_native.Communicator, threading.Lock] = {}  # for a message of whoever sends

    def send(self, tensors: list[torch.Tensor], dstRank: int, tag: int = 0) -> dist.Work:
        tensor = tensors[0]
        source = ready(tensor)
        kind, many = moved(tensor.dtype)
        lane = self._lane(tag)
        return self._launch(
            None, [source], lambda stream: [
                lane.start_send(source.data_ptr(), source.numel() * many, kind, dstRank, tag, stream, source)
            ], tensors, way=("to", dstRank, tag % _TAGS))

    def recv(self, tensors: list[torch.Tensor], srcRank: int, tag: int = 0) -> dist.Work:
        tensor = tensors[0]
        target = room(tensor)
        kind, many = moved(tensor.dtype)
        lane = self._lane(tag)
        return self._launch(
            None, [target], lambda stream: [
                lane.start_receive(target.data_ptr(), target.numel() * many, kind, srcRank, tag, stream, target)
            ], tensors, copied([(tensor, target)]), srcRank, ("from", srcRank, tag % _TAGS))

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> dist.Work:
        lane = self._lane(tag)
        looking = self._looking.setdefault(lane, threading.Lock())

        def receive(source: int) -> dist.Work:
            return Messages.recv(self, tensors, source, tag)  # not what hooks see: they have seen this call

        return self._registered(FromAnybody(lane, looking, receive, tensors, self._timeout))

    def _lane(self, tag: int) -> _native.Communicator:
        """The communicator for messages with this tag: so that a receive finds its tag in whatever order they come."""
        if not 0 <= tag <= _LAST_TAG:
            raise ValueError(f"the backend tutti has tags from 0 to {_LAST_TAG}, not {tag}")
        place = tag % _TAGS
        if place == 0:
            return self.native
        if place not in self._of_tags:
            self._of_tags[place] = self._part(f"tag {place}")
        return self._of_tags[place]
