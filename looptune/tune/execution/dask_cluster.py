"""A Dask cluster: its scheduler, its workers, and the connection to both.

    scheduler ◀── Cluster ──▶ members: the workers that run the same looptune, and the devices on which they measure

``connect`` takes the address of a scheduler, or ``local`` / ``local:N`` for a cluster of one or N worker processes on
this machine, which ends with the connection. TargetError is raised if no scheduler answers, if it disappears, or if the
versions of a worker differ from ours.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from distributed import Client, Nanny, Scheduler, SpecCluster
from distributed.client import ClosedClientError
from distributed.comm.addressing import get_address_host_port

from looptune.core.errors import TargetError, UsageError
from looptune.tune.execution.dask_members import (
    RESOURCES,
    ClusterWorker,
    gpus,
    missing_files,
    probe,
    resource,
    version_mismatch,
    versions,
)
from looptune.tune.execution.dask_worker import DaskWorkerPool
from looptune.tune.execution.pool import default_jobs

if TYPE_CHECKING:
    from looptune.tune.execution.process import Setup

CONNECT_S = 10.0
APPEAR_S = 30.0
"""The seconds that workers may take to appear."""
LOST = (OSError, TimeoutError, RuntimeError, CancelledError, asyncio.CancelledError, ClosedClientError)
"""The exceptions of Dask's client if the scheduler is gone."""


class Cluster:
    """A connected cluster. ``members``: its workers by address; ``warn`` is called for workers that are left out."""

    def __init__(self, client: Client, address: str, warn: Callable[[str], None]) -> None:
        self.client, self.address = client, address
        self.members: dict[str, ClusterWorker] = {}
        self._warn = warn
        self._refused: dict[str, str] = {}

    def check(self) -> None:
        if self.client.status != "running":
            raise TargetError(
                f"the scheduler at {self.address} went away; the measurements are saved: "
                "run the same command again to continue"
            )

    def refresh(self) -> tuple[ClusterWorker, ...]:
        """Update the members, and return those that have gone; a worker that comes late and differs is left out."""
        self.check()
        try:
            there = set(self.client.nthreads())
        except LOST:
            self._gone()
        gone = tuple(member for address, member in self.members.items() if address not in there)
        self.members = {a: m for a, m in self.members.items() if a in there}
        self._refused = {a: why for a, why in self._refused.items() if a in there}
        for address, found in self._run(probe, sorted(there - self.members.keys() - self._refused.keys())).items():
            match found:
                case ClusterWorker() if not _unfit(found):
                    self.members[address] = found
                case ClusterWorker():
                    self._refuse(address, f"{found.named}: {_unfit(found)}")
                case _:
                    self._refuse(address, f"{address} does not run the same versions: {found}")
        return gone

    def _refuse(self, address: str, why: str) -> None:
        self._refused[address] = why
        if self.members:
            self._warn(f"a worker is not used: {why}")

    def wait_for(self, target: str) -> str:
        """Wait for workers, one of which can measure; return the target, which is chosen here if it is "auto".

        Raises TargetError after APPEAR_S, or for a worker that cannot take part.
        """
        deadline = time.monotonic() + APPEAR_S
        self._check_scheduler()
        while True:
            self.refresh()
            if self._refused:
                misfits = "; ".join(self._refused.values())
                raise TargetError(f"no worker of the cluster at {self.address} can be used: {misfits}")
            wanted = RESOURCES if target == "auto" else (target,)
            found = next((t for t in wanted if any(m.measured(t) for m in self.members.values())), None)
            if found is not None:
                return found
            if time.monotonic() > deadline:
                name = resource("numba-cuda" if target == "auto" else target)
                raise TargetError(
                    f"no worker of the cluster at {self.address} declares {name}: there are {len(self.members)}; start "
                    f"one with: dask worker {self.address} --nthreads 2 --resources {name}=1"
                )
            time.sleep(0.2)

    def measuring_hosts(self, target: str) -> set[str]:
        return {member.host for member in self.members.values() if member.measured(target)}

    def has_spare_hosts(self, target: str) -> bool:
        """Return whether some machine can compile while every machine that measures does nothing else."""
        return any(member.host not in self.measuring_hosts(target) for member in self.members.values())

    def require(self, paths: Sequence[Path], target: str) -> None:
        """Raise TargetError if a worker that measures lacks one of the files."""
        measuring = [m.address for m in self.members.values() if m.measured(target)]
        for address, lacks in self._run(missing_files, measuring, paths=list(paths)).items():
            match lacks:
                case [first, *_]:
                    raise TargetError(
                        f"the worker {self.members[address].named} has no {first}: it measures with that file, "
                        "so both need one file system"
                    )

    @contextmanager
    def bench(self, setups: dict[str, Setup], limit_s: float) -> Iterator[str]:
        """Yield a name under which every worker, including later ones, has a process, until the context ends."""
        name = f"looptune-{uuid.uuid4().hex[:12]}"
        self.check()
        try:
            self.client.register_plugin(DaskWorkerPool(name, setups, limit_s), name=name)
        except LOST:
            self._gone()
        try:
            yield name
        finally:
            if self.client.status == "running":
                with suppress(*LOST):
                    self.client.unregister_worker_plugin(name)

    def _gone(self) -> NoReturn:
        """Raise the error of a failed call: the scheduler is gone, or what the client's own state says."""
        self.check()
        raise TargetError(f"the scheduler at {self.address} does not answer; the measurements are saved")

    def _check_scheduler(self) -> None:
        """Check that the scheduler has the same looptune, since it reads the tasks that it hands on."""
        try:
            differs = version_mismatch(versions(), self.client.run_on_scheduler(versions))
        except ImportError as error:
            differs = str(error)
        except LOST:
            self._gone()
        if differs:
            raise TargetError(
                f"the scheduler at {self.address} does not run the same versions: {differs}; install the same versions"
            )

    def _run(self, function: Callable[..., Any], addresses: list[str], **given: Any) -> dict[str, Any]:
        """Return what the function gives on each worker, or the exception it ended in."""
        if not addresses:
            return {}
        try:
            answers: dict[str, Any] = self.client.run(function, workers=addresses, on_error="return", **given)
            there = set(self.client.nthreads())
        except LOST:
            self._gone()
        # A worker that went away meanwhile is missed at the next look.
        return {address: answer for address, answer in answers.items() if address in there}


def _unfit(member: ClusterWorker) -> str:
    differs = version_mismatch(versions(), member.versions)
    return f"it has {differs}; install the same versions" if differs else member.trouble


@contextmanager
def connect(address: str, warn: Callable[[str], None]) -> Iterator[Cluster]:
    """Yield the cluster at ``address``; "local" starts a cluster here.

    ``warn`` is called for workers that are left out.
    """
    # Dask tells of every lost connection with a traceback; ours is one message.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        if address == "local" or address.startswith("local:"):
            at: Any = stack.enter_context(_local(_count(address)))
        else:
            at = _checked(address)
        try:
            client = stack.enter_context(Client(at, timeout=CONNECT_S, set_as_default=False))
        except (OSError, TimeoutError, ValueError) as error:
            raise TargetError(f"no Dask scheduler answers at {address}: {error}") from error
        yield Cluster(client, client.scheduler.address, warn)


def _checked(address: str) -> str:
    """Return the address if it has the form of one, since a client would report any other only after a long wait."""
    try:
        get_address_host_port(address)
    except ValueError as error:
        raise UsageError(f"--cluster {address}: expected a scheduler's address, as tcp://host:8786: {error}") from error
    return address


def _count(address: str) -> int:
    _, colon, count = address.partition(":")
    if not colon:
        return default_jobs()
    if not count.isdecimal() or not int(count):
        raise UsageError(f"--cluster {address}: expected local or local:N, N worker processes, at least one")
    return int(count)


@contextmanager
def _local(count: int) -> Iterator[SpecCluster]:
    """Yield a cluster of this machine: all workers compile, and the first one measures on every GPU or on the cores."""
    found, _ = gpus(None)
    resources = {"GPU": len(found)} if found else {"MEASURE": 1}
    scheduler = {
        "cls": Scheduler,
        "options": {"host": "127.0.0.1", "port": 0, "dashboard": False, "dashboard_address": ":0"},
    }
    common = {"host": "127.0.0.1", "dashboard": False, "silence_logs": logging.CRITICAL}
    first = {"nthreads": 1 + max(len(found), 1), "resources": resources}
    options = [{**common, **(first if n == 0 else {"nthreads": 1})} for n in range(count)]
    workers = {n: {"cls": Nanny, "options": given} for n, given in enumerate(options)}
    with SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL) as cluster:
        yield cluster
