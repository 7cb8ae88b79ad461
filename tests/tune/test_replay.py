"""Simulation: files read back as they were written, searches replayed with the costs and the seconds recorded."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import UsageError
from looptune.report import search_table
from looptune.report.figures import style
from looptune.report.figures.searches import searches
from looptune.runtime.outcome import Illegal, Timed
from looptune.tune.formats import files
from looptune.tune.replay import simulate
from looptune.tune.space.space import Configuration, parse
from looptune.tune.space.table_view import Table
from looptune.tune.store.searches import Measurement, Recording
from looptune.tune.store.store import Context, Row, Store
from looptune.tune.strategies import ALL, Strategy
from tests.helpers.synthetic_costs import SMALL, bowl, rugged

CONTEXT = Context("gemm", "h", "1", "{}", "sm_90", "GPU", "numba-cuda", "{}", "float32")


def timed(us: float, compile_s: float = 2.0) -> Timed:
    return Timed((us, us), us, us, us, "yes", (("compile_s", compile_s),))


def stored(path: Path, costs: dict[str, float | None], context: Context = CONTEXT) -> Path:
    """A store with these directives; None is refused."""
    with Store.open(path) as store:
        for k, (text, us) in enumerate(costs.items()):
            row = Row(context, text, "version" if text else "default", "s", f"source {k}")
            store.record(row, Illegal("no") if us is None else timed(us))
    return path


def recording(costs: dict[str, float | None], seconds: float = 1.0) -> Recording:
    table = Table(Configuration(tuple(text.splitlines())) for text in costs)
    measured = tuple(Measurement(us, () if us is None else (us,), seconds, t) for t, us in costs.items())
    return Recording("made up", "made up", "", table, measured)


class Scripted(Strategy):
    """Asks for unroll 1, 2, 3 … of loop k and notes what it is told."""

    name: ClassVar[str] = "scripted"
    window = 1
    told: ClassVar[list[float | None]] = []

    def ask(self) -> Configuration | None:
        at = len(self.told)
        return Configuration((f"loop k: unroll {at + 1}",)) if at < 4 else None

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        self.told.append(cost_us)


def test_the_trace_is_the_true_cost_of_the_incumbent():
    """Costs are told as recorded; a step for each improvement, with evaluations and seconds so far; then the end."""
    Scripted.told = []
    costs = {"loop k: unroll 1": 30.0, "loop k: unroll 2": None, "loop k: unroll 3": 10.0, "loop k: unroll 4": 20.0}
    book = simulate.RecordingIndex.of(recording(costs, 1.5))
    trace = simulate.search(book, Scripted, 0, None)
    assert trace.steps == (simulate.IncumbentChange(1, 1.5, 30.0), simulate.IncumbentChange(3, 4.5, 10.0))
    assert Scripted.told == [30.0, None, 10.0]
    assert trace.evaluations == 3
    assert trace.reached(10.5) == trace.steps[1]
    assert trace.reached(9.0) is None


def test_searches_of_a_large_recording_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Without a limit, a share of the versions of a large one and all of a small one; the command says so."""
    monkeypatch.setattr(simulate, "LARGE", 30)
    monkeypatch.setattr(simulate, "SHARE", 0.1)
    small, large = ({f"loop k: unroll {n}": 100.0 - n for n in range(1, count)} for count in (31, 42))
    assert simulate.evaluations_at_most(recording({**small}), None) is None
    assert simulate.evaluations_at_most(recording({**large}), None) == 5
    assert simulate.evaluations_at_most(recording({**large}), 7) == 7
    db = stored(tmp_path / "r.sqlite", {**large})
    result = CliRunner().invoke(cli, ["replay", str(db), "--strategy", "random", "--repeats", "2"])
    assert result.exit_code == 0, result.output
    assert "41 versions, searches end after 5 (see --budget)" in result.output


def test_a_budget_is_kept():
    """No more evaluations than allowed."""
    Scripted.told = []
    book = simulate.RecordingIndex.of(recording({f"loop k: unroll {k}": 50.0 - k for k in range(1, 5)}))
    assert simulate.search(book, Scripted, 0, 2).evaluations == 2


def test_what_has_the_same_source_is_measured_once(tmp_path: Path):
    """A duplicate answers with the first one's cost and adds neither an evaluation nor seconds."""
    path = stored(tmp_path / "s", {"": 40.0, "loop k: unroll 2": 30.0, "loop k: unroll 3": 20.0})
    with Store.open(path) as store:
        first = next(r for r in store.rows() if r.directives.endswith("2"))
        twin = Row(CONTEXT, "loop k: unroll 2, contiguous", sweep="s", emitted=first.emitted)
        store.record_duplicate(twin, first.key)
    (found,) = files.read(path)
    assert (found.table.size, found.versions) == (4, 3)
    trace = simulate.search(simulate.RecordingIndex.of(found), ALL["exhaustive"], 0, None)
    assert trace.evaluations == 3
    assert trace.steps[-1].seconds == pytest.approx(6.0)


def test_few_trials_are_noise_and_cost_what_they_take():
    """gatlas-trials is told single runs; what it settles on is the best, which lies within its margin."""
    costs = {c.text: bowl(c) for c in parse("loop k: unroll {1..20}", "s")}
    made = recording(dict(costs))
    noisy = tuple(
        Measurement(m.cost_us, tuple(m.cost_us * f for f in (0.96, 1.0, 1.04)), 1.0, m.source) for m in made.measured
    )
    book = simulate.RecordingIndex.of(Recording("n", "n", "", made.table, noisy))
    traces = [simulate.search(book, ALL["gatlas-trials"], seed, None) for seed in range(5)]
    assert all(20 < t.evaluations <= 30 for t in traces)
    assert len({t.steps for t in traces}) > 1
    assert all(t.reached(min(costs.values()) * 1.05) is not None for t in traces)


def test_seconds_unknown_are_estimated_and_counted():
    """The median of those known, else the runs alone."""
    table = Table(Configuration((f"loop k: unroll {k}",)) for k in (1, 2, 3))
    rows = [Measurement(1.0, (1e6, 1e6), s, str(k)) for k, s in enumerate((4.0, None, 8.0))]
    some = Recording("x", "x", "", table, tuple(rows))
    assert (some.seconds(), some.estimated) == ([4.0, 6.0, 8.0], 1)
    none = Recording("x", "x", "", table, tuple(Measurement(1.0, (1e6, 1e6)) for _ in rows))
    assert (none.seconds(), none.estimated) == ([2.0] * 3, 3)


@pytest.mark.parametrize(
    ("values", "quartiles"),
    [([7], (7, 7, 7)), ([1, 2, 3, 4], (2, 1, 3)), ([5, 1, 3, 2, 4], (3, 2, 4)), ([1, inf, inf], (inf, 1, inf))],
)
def test_spread(values: list[float], quartiles: tuple[float, float, float]):
    """Median, first and third quartile, each one of the values."""
    assert simulate.quartiles(values) == simulate.Quartiles(*quartiles)


def test_a_store_gives_a_recording_for_each_context(tmp_path: Path):
    """Names tell contexts apart by no more than it takes; finals and other roles are no part of the space."""
    path = stored(tmp_path / "s", {"": 2.0, "loop k: unroll 2": 1.0})
    stored(path, {"": 3.0, "loop k: unroll 2": None, "loop k: unroll 4": 1.0}, Context(**vars_of(dtype="float64")))
    stored(path, {"": 5.0, "loop k: unroll 8": 1.0}, Context(**vars_of(device="other")))
    with Store.open(path) as store:
        store.record(Row(CONTEXT, "loop k: unroll 2", "final", "s"), timed(9.0))
    found = {r.name: [m.cost_us for m in r.measured] for r in files.read(path)}
    assert found == {"gemm float32 GPU": [2.0, 1.0], "gemm float32 other": [5.0, 1.0], "gemm float64": [3.0, None, 1.0]}


def vars_of(**more: str) -> dict[str, str]:
    return {name: getattr(CONTEXT, name) for name in Context.__dataclass_fields__} | more


T4 = {
    "schema_version": "1.1.0",
    "metadata": {"device": "A100", "timeunit": "milliseconds"},
    "results": [
        {"configuration": {"x": 16, "pad": True, "how": "a"}, "objectives": ["time"], "invalidity": "correct",
         "correctness": 1, "times": {"compilation_time": 500, "runtimes": [2.0, 4.0, 3.0]},
         "measurements": [{"name": "time", "value": 3.0, "unit": "ms"}]},
        {"configuration": {"x": 32, "pad": False, "how": "a"}, "invalidity": "correct", "correctness": 1,
         "times": {"compilation_time": 500, "runtimes": [1.0]}},
        {"configuration": {"x": 64, "pad": False, "how": "b"}, "invalidity": "compile", "correctness": 0,
         "times": {"compilation_time": 100, "runtimes": []}},
    ],
}  # fmt: skip
CACHE = {
    "device_name": "A100", "kernel_name": "conv", "tune_params_keys": ["x", "y"], "objective": "time",
    "cache": {
        "16,1": {"x": 16, "y": 1, "time": 2.0, "times": [2.0, 2.0], "compile_time": 100, "benchmark_time": 50},
        "32,1": {"x": 32, "y": 1, "time": 1.0, "times": [1.0, 1.0], "compile_time": 100, "benchmark_time": 50},
        "32,2": {"x": 32, "y": 2, "time": "RuntimeFailedConfig", "compile_time": 100},
        "64,2": {"x": 64, "y": 2, "time": 1e20},
    },
}  # fmt: skip


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_t4_results(tmp_path: Path, version: str):
    """Cost from the objective or the runs, units from the file, failures None, parameters as axes."""
    path = tmp_path / "k.json"
    path.write_text(json.dumps(T4 | {"schema_version": version}))
    (found,) = files.read(path)
    assert [m.cost_us for m in found.measured] == [3000.0, 1000.0, None]
    assert found.measured[0].seconds == pytest.approx(0.509)
    assert (found.kernel, found.device) == ("k", "A100")
    assert {a.name: (list(a.values), a.numeric) for a in found.table.axes(0)} == {
        "x": ([16, 32, 64], True), "pad": ([0, 1], True), "how": (["a", "b"], False),
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["", "}}"], ids=["closed", "still being written"])
def test_a_kernel_tuner_cache(tmp_path: Path, ending: str):
    """Milliseconds, named errors and 1e20 as failures; a file that lacks its last braces is read all the same."""
    path = tmp_path / "c.json"
    path.write_text(json.dumps(CACHE).removesuffix(ending) + ("," if ending else ""))
    (found,) = files.read(path)
    assert [m.cost_us for m in found.measured] == [2000.0, 1000.0, None, None]
    assert [m.seconds for m in found.measured] == [pytest.approx(0.15), pytest.approx(0.15), pytest.approx(0.1), None]
    assert found.kernel == "conv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int main;", "is neither a results database nor JSON"),
        ("[1]", "is neither T4 results, a Kernel Tuner cache, results of KTT nor Kernel Launcher wisdom"),
        ('{"results": [1]}', r"results\[0\]: expected an object, found 1"),
        ('{"results": [{"configuration": {}}]}', r"results\[0\]: the key 'times' is missing"),
        ('{"cache": {"1": {"x": 1}}, "tune_params_keys": ["x"]}', r'cache\["1"\]: the key \'time\' is missing'),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str, message: str):
    """UsageError with the file and what is wrong with it."""
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        files.read(path)


def test_every_strategy_runs_on_every_kind_of_recording(tmp_path: Path):
    """All that is installed, on a store, a T4 file and a cache: each finds the best of so few."""
    (tmp_path / "t4.json").write_text(json.dumps(T4))
    (tmp_path / "kt.json").write_text(json.dumps(CACHE))
    space = parse("loop i: { | unroll {2, 4, 8} }\nloop j: { | tile j:{2, 4} }", "s")
    stored(tmp_path / "s", {c.text: rugged(c) for c in space})
    kinds, _ = simulate.select_strategies(["all"])
    for made in files.select([tmp_path / n for n in ("t4.json", "kt.json", "s")]):
        compared = simulate.compare(made, kinds, 3, 0, None)
        assert all(compared.score(k.name, 1.0).found == 1.0 for k in kinds if k.name != "gatlas-trials")


def test_chance_needs_what_the_hypergeometric_says():
    """Random search for one in 101 needs a median of 51."""
    costs = {f"loop k: unroll {k}": 100.0 + k for k in range(1, 102)}
    score = simulate.compare(recording(costs), [ALL["random"]], 400, 0, None).score("random", 1.0)
    assert 42 <= score.evaluations.median <= 60
    assert score.evaluations.q1 < score.evaluations.median < score.evaluations.q3


def test_the_table_and_the_summary_say_how_soon():
    """Medians, quartiles, share, seconds; `never` where most seeds fail; a note where durations are estimates."""
    made = recording({f"loop k: unroll {k}": 50.0 - k for k in range(1, 5)}, 2.0)
    compared = simulate.compare(made, [ALL["exhaustive"], ALL["random"]], 9, 0, 3)
    text = search_table.plain(compared)
    assert "made up: 4 versions, best 46 us" in text
    line = next(line for line in text.splitlines() if line.startswith("exhaustive"))
    assert line.split()[1:4] == ["2", "[2,", "2]"]
    assert line.endswith("never [never, never]    -      never [never, never]  0%")
    assert "durations" not in text
    assert "exhaustive" in search_table.summary([compared])
    rows = list(search_table.records([compared]))
    assert {r["strategy"] for r in rows} == {"exhaustive", "random"}
    assert rows[0]["share"] == 0.5
    assert rows[1]["evaluations_median"] is None


@pytest.mark.wide
@pytest.mark.skipif(not style.available(), reason="matplotlib is missing")
def test_the_plot_is_made(tmp_path: Path):
    """A PNG and an SVG, with a panel for each recording."""
    made = recording({c.text: rugged(c) for c in list(SMALL)[:60]})
    compared = simulate.compare(made, [ALL["random"], ALL["model"]], 3, 0, None)
    paths = style.save(lambda: searches([compared] * 5), tmp_path / "searches")
    assert [p.suffix for p in paths] == [".png", ".svg"]
    assert paths[0].read_bytes()[:4] == b"\x89PNG"
    assert "</svg>" in paths[1].read_text()


def test_the_command(tmp_path: Path):
    """Prints a table a kernel; --json a record each; -o writes page, CSV and JSON; equal seeds print equal texts."""
    path = stored(tmp_path / "s", {c.text: rugged(c) for c in list(SMALL)[:40]})
    call = ["replay", str(path), "--strategy", "random,model", "--repeats", "4", "--seed", "3"]
    first = CliRunner().invoke(cli, [*call, "-o", str(tmp_path / "out")], standalone_mode=False)
    assert first.exception is None, first.exception
    assert "gemm float32, GPU: 40 versions" in first.output
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"searches.md", "searches.csv", "searches.json"}
    assert CliRunner().invoke(cli, call, standalone_mode=False).output == first.output
    found = json.loads(CliRunner().invoke(cli, [*call, "--json"], standalone_mode=False).output)
    assert [(r["strategy"], r["level"]) for r in found] == [
        (s, w) for s in ("random", "model") for w in ("within 5%", "within 1%")
    ]
    refused = CliRunner().invoke(cli, [*call, "--kernel", "no"], standalone_mode=False)
    assert "no search of no was recorded; there are gemm" in str(refused.exception)
