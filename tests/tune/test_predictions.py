"""A search whose costs are predicted: it begins with the least, and learns what the prediction gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.runtime import targets
from looptune.runtime.device import Cpu
from looptune.runtime.targets import Model as DeviceModel
from looptune.tune.execution.local_executor import HERE
from looptune.tune.session.predicted_time import predict_spaces
from looptune.tune.session.prepare import TuningRequest, prepare
from looptune.tune.space.space import Configuration, Space, parse
from looptune.tune.strategies import ALL, Strategy

SPACE = parse("loop i: unroll {1..10}\nloop j: unroll {1..10}\ncodelet: {pack | }", "s")


def predicted(text: str) -> float:
    """Costs that rise with both numbers."""
    i, j = (int(line.rpartition(" ")[2]) for line in text.splitlines()[:2])
    return 10.0 + i + 2 * j


def asked(space: Space, known: Mapping[str, float], cost: Callable[[str], float | None], most: int) -> list[str]:
    """What the model asks for, with these predictions."""
    strategy, found = ALL["model"](space, 1).with_predictions(known), list[str]()
    while len(found) < most and (one := strategy.ask()) is not None:
        found.append(one.text)
        strategy.tell(one, cost(one.text))
    return found


def every(space: Space) -> dict[str, float]:
    return {c.text: predicted(c.text) for c in space}


def test_the_first_question_is_the_least_prediction() -> None:
    """And soon the best, where a flag of which the prediction knows nothing makes versions slower by a factor."""
    known = every(SPACE)
    best = "loop i: unroll 1\nloop j: unroll 1"
    found = asked(SPACE, known, lambda text: predicted(text) * (2.0 if "pack" in text else 1.0), 8)
    assert found[0] in (best, f"{best}\ncodelet: pack")
    assert best in found[:2]
    assert sum("pack" in text for text in found[2:]) <= 1


def test_a_search_goes_on_to_its_end() -> None:
    """Each version is asked for once, also what has no prediction, and what fails; a seed always asks the same."""
    known = {text: us for text, us in every(SPACE).items() if "unroll 7" not in text}
    small = parse("loop i: unroll {1..7}\nloop j: unroll {1..7}", "s")

    def cost(text: str) -> float | None:
        return None if "loop j: unroll 1" in text else predicted(text)

    found = asked(small, known, cost, 1000)
    assert sorted(found) == sorted(c.text for c in small)
    assert "unroll 7" not in "".join(found[:5])
    assert sum("loop j: unroll 1" in text for text in found[:6]) <= 3
    assert asked(small, known, cost, 20) == found[:20]


def test_others_have_no_use_for_predictions() -> None:
    """A strategy is what it was."""
    for name in ("random", "sections", "evolutionary"):
        strategy: Strategy = ALL[name](SPACE, 1)
        assert not strategy.predictable
        assert strategy.with_predictions(every(SPACE)) is strategy


@pytest.mark.wide
@pytest.mark.skipif(not targets.cuda_installed(), reason="needs numba-cuda")
def test_the_space_of_a_sweep_on_a_gpu_is_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By processes, before the first question; not in a budget of time, nor where the strategy learns nothing of it."""
    (tmp_path / "f.c").write_text(
        "void f(int n, float x[n][n]) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) x[i][j] += 1; }\n"
    )
    (tmp_path / "f.pragmas").write_text(
        "loop j: unroll {2, 4}, jam\nloop i: unroll {1, 2, 3}\ncodelet: { | grid blocksize 32x8}"
    )
    facts = replace(Cpu().facts, name="NVIDIA H200", arch="sm_90", target="numba-cuda")
    made = targets.target("numba-cuda", facts, (0,), tmp_path)
    monkeypatch.setattr(targets, "models", lambda *a, **k: (DeviceModel(made, facts),))
    request = TuningRequest(
        tmp_path / "f.c", defines={"n": "2000"}, sweep=True, strategy="model", jobs=1, db=tmp_path / "db"
    )
    prepared = prepare(request)
    (found,) = predict_spaces([prepared], [ALL["model"](prepared.space, 0)], HERE)
    assert isinstance(found, ALL["model"])
    texts = {c.text for c in prepared.space}
    known = found._predicted_us  # type: ignore[attr-defined]
    assert set(known) <= texts
    assert len(known) > len(texts) / 2
    first = found.ask()
    assert isinstance(first, Configuration)
    assert known[first.text] == min(known.values())
    limited = replace(prepared, budget=replace(prepared.budget, seconds=60.0))
    for one, name in ((limited, "model"), (prepared, "random")):
        plain = ALL[name](prepared.space, 0)
        assert predict_spaces([one], [plain], HERE) == (plain,)
