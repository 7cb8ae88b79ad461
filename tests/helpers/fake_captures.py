"""Captures of a CUDA driver that is not there: what each launch of a graph waits for, by streams and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from cuda.bindings import driver as real

from tests.helpers.fake_cuda_driver import OK, WRONG, Driver

UNJOINED = real.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
ISOLATION = real.CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION


class Node(NamedTuple):
    """A launch of a graph: its number, the kernel, the stream, and the numbers of all launches that it waits for."""

    number: int
    kernel: int
    stream: int
    before: frozenset[int]


@dataclass
class Captures(Driver):
    """``origins``: the captured streams, each with the one whose capture it is; ``after``: what a stream waits for.

    ``contexts``: the context in which each stream was made; ``failing``: the number of the launch that fails.
    """

    origins: dict[int, int] = field(default_factory=dict)
    after: dict[int, frozenset[int]] = field(default_factory=dict)
    events: dict[int, tuple[int, frozenset[int]] | None] = field(default_factory=dict)
    nodes: dict[int, list[Node]] = field(default_factory=dict)
    graphs: list[list[Node]] = field(default_factory=list)
    contexts: dict[int, int] = field(default_factory=dict)
    destroyed: list[int] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(100))
    failing: int = 0

    def cuStreamCreate(self, flags: int) -> tuple[Any, int]:
        made = next(self.numbers)
        self.contexts[made] = self.context
        return OK, made

    def cuStreamDestroy(self, stream: int) -> tuple[Any]:
        self.destroyed.append(stream)
        return (WRONG,) if stream in self.origins else (OK,)

    def cuEventCreate(self, flags: int) -> tuple[Any, int]:
        return OK, next(self.numbers)

    def cuPointerGetAttribute(self, what: Any, pointer: int) -> tuple[Any, int]:
        return OK, self.context - 1

    def cuStreamIsCapturing(self, stream: int) -> tuple[Any, int]:
        return OK, int(stream in self.origins)

    def cuStreamGetCaptureInfo(self, stream: int) -> tuple[Any, ...]:
        captured = stream in self.origins
        return OK, int(captured), real.cuuint64_t(self.origins.get(stream, 0)), None, [], 0

    def cuStreamBeginCapture(self, stream: int, mode: Any) -> tuple[Any]:
        if stream in self.origins:
            return (WRONG,)
        self.origins[stream], self.after[stream], self.nodes[stream] = stream, frozenset(), []
        return (OK,)

    def cuStreamEndCapture(self, stream: int) -> tuple[Any, Any]:
        if self.origins.get(stream) != stream:
            return WRONG, None
        for other in [s for s, origin in self.origins.items() if origin == stream]:
            del self.origins[other]
        nodes = self.nodes.pop(stream)
        if {n.number for n in nodes} - self.after[stream]:
            return UNJOINED, None
        self.graphs.append(nodes)
        return OK, len(self.graphs)

    def cuEventRecord(self, event: int, stream: int) -> tuple[Any]:
        self.log.append(("cuEventRecord", event, stream))
        self.events[event] = (self.origins[stream], self.after[stream]) if stream in self.origins else None
        return (OK,)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> tuple[Any]:
        self.log.append(("cuStreamWaitEvent", stream, event))
        recorded = self.events.get(event)
        if recorded is None:
            return (ISOLATION,) if stream in self.origins else (OK,)
        origin, before = recorded
        if self.origins.get(stream, origin) != origin or self.contexts.get(stream, self.context) != self.context:
            return (ISOLATION,)
        self.after[stream] = before | (self.after[stream] if stream in self.origins else frozenset())
        self.origins[stream] = origin
        return (OK,)

    def cuLaunchKernel(self, kernel: Any, *rest: Any) -> tuple[Any]:
        self.failing -= 1
        status = WRONG if self.failing == 0 else super().cuLaunchKernel(kernel, *rest)[0]
        stream = rest[7]
        if status == OK and stream in self.origins:
            node = Node(next(self.numbers), kernel, stream, self.after[stream])
            self.nodes[self.origins[stream]].append(node)
            self.after[stream] |= {node.number}
        return (status,)
