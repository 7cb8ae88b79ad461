"""Two pipes to a program of the user's; messages are read whole, and a time limit holds between two reads."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from typing import Self

import numpy as np


class PipeClosed(Exception):
    """The program closed its end, as it does when it ends."""


class PipeTimeout(Exception):
    """No data came for ``limit_s`` seconds."""


class Link:
    """A connection to a program; it reads from the first of ``theirs``, file descriptors, and writes to the second."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self.theirs = (theirs_in, theirs_out)
        self._program: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        program = self._program
        if program is None:
            self._close(*self.theirs)
        elif program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        self._close(self._in, self._out)

    @staticmethod
    def _close(*descriptors: int) -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    def start(self, command: Sequence[str]) -> None:
        """Start the program; its output is discarded, and its input is empty."""
        nothing = subprocess.DEVNULL
        self._program = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, pass_fds=self.theirs, start_new_session=True
        )
        self._close(*self.theirs)

    def status(self) -> int | None:
        """Return the program's exit status as subprocess gives it, or None if it is still running after a second."""
        assert self._program is not None, "the program was started"
        try:
            return self._program.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return None

    def read(self, count: int) -> bytes:
        """Return exactly ``count`` bytes; raises PipeClosed or PipeTimeout."""
        held = np.empty(count, np.uint8)
        self.read_into(held)
        return held.tobytes()

    def read_into(self, array: np.ndarray) -> None:
        """Fill all bytes of a contiguous array; raises PipeClosed or PipeTimeout."""
        left = array.reshape(-1).view(np.uint8).data
        while left:
            ready, _, _ = select.select([self._in], [], [], self.limit_s)
            if not ready:
                raise PipeTimeout
            got = os.readv(self._in, [left])
            if not got:
                raise PipeClosed
            left = left[got:]

    def write(self, data: bytes) -> None:
        try:
            os.write(self._out, data)
        except BrokenPipeError:
            raise PipeClosed from None
