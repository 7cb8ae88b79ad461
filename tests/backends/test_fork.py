"""What a graph is told of launches that may run at the same time, on a driver that is made up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("cuda.bindings")
from looptune.backends.cuda import fork


class Driver:
    """Notes what is called; streams and events are names."""

    def __init__(self, success: object) -> None:
        self.told: list[str] = []
        self.success = success
        self.made = 0

    def __getattr__(self, name: str) -> Callable[..., tuple[object, ...]]:
        def call(*args: object) -> tuple[object, ...]:
            if name.endswith("Create"):
                self.made += 1
                return self.success, f"made {self.made}"
            if name == "cuStreamIsCapturing":
                return self.success, 0
            self.told.append(" ".join((name, *map(str, args[:2]))))
            return (self.success,)

        return call


def test_both_begin_together_and_what_follows_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = Driver(fork.driver.CUresult.CUDA_SUCCESS)
    monkeypatch.setattr(fork, "driver", made_up)
    side = fork.Fork()

    def launch(name: str) -> Callable[[object], None]:
        return lambda stream: made_up.told.append(f"{name} on {stream}")

    side.run("main", [launch("a"), launch("b")])
    side.run("main", [launch("c")])
    assert made_up.told == [
        "cuEventRecord made 2 main", "a on main", "cuStreamWaitEvent made 1 made 2", "b on made 1",
        "cuEventRecord made 3 made 1", "cuStreamWaitEvent main made 3", "c on main",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["a", "b"])
def test_the_streams_are_joined_where_a_launch_fails(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    made_up = Driver(fork.driver.CUresult.CUDA_SUCCESS)
    monkeypatch.setattr(fork, "driver", made_up)
    side = fork.Fork()

    def launch(name: str) -> Callable[[object], None]:
        def on(stream: object) -> None:
            made_up.told.append(f"{name} on {stream}")
            if name == wrong:
                raise RuntimeError(name)

        return on

    with pytest.raises(RuntimeError, match=wrong):
        side.run("main", [launch("a"), launch("b")])
    apart = "cuStreamWaitEvent made 1 made 2" in made_up.told
    assert apart == (made_up.told[-1] == "cuStreamWaitEvent main made 3") == (wrong == "b")
