"""A database that anything may have changed: each command ends well or with one error, and runs nothing of it.

python -m pytest tests/properties/test_fuzzed_databases.py --cases 2000          as many damaged databases as that
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.tune.results.result import Sources, to_record
from looptune.tune.results.studies import best_of_databases
from looptune.tune.store.store import Row, Store
from tests.helpers import report_database, synthetic_database
from tests.helpers.command_line import looptune

FEW = 8
C = "void f(int n, float A[n]) {\n  for (int i = 0; i < n; i++)\n    A[i] += 1;\n}\n"
COMMANDS = (
    "db show --json", "db show", "db dump --format jsonl", "db dump", "db failures --json --no-group", "db failures",
    "export --format t4 -o out", "export --format t1 -o out", "export --format kernel-tuner -o out",
    "export --format kernel-launcher -o out", "build f.c --target numba-cpu -o made.py",
    "build f.c --c --target numba-cpu -o made.c", "report --reports r",
)  # fmt: skip
CODE = '"""; open("ran", "w"); """'
ODD: tuple[Any, ...] = (
    None, "", "x", CODE, "*/ #error ran /*", "\0", "\x1b[2J", "loop i: unroll 2 # " + CODE,
    "loop i: unroll 99999999999",
    "loop zz: unroll 4", "nest i: permute q", "../../x", "{}", "[]", "null", "[" * 3000, '{"n": ' + "9" * 5000 + "}",
    '{"n": 1e999}', '{"n": "8"}', '{"n": true}', '{"status": "timed"}', '{"status": ["timed"]}',
    b"\xff\xfe", -1, 0, 2**62, 1e300, -1e300, 1e18, float("inf"), 0.5, "running", "timed", "illegal", "final",
    "looptune run 'f.c", "looptune run", "numba-cuda", "nonsense", "a\nb", "\udcff".encode("utf-8", "surrogatepass"),
)  # fmt: skip
DEEP: tuple[Any, ...] = (
    None, "", CODE, -1, 0, 10**400, float("nan"), float("inf"), 1e-320, [], {}, [1], {"a": 1}, True, "\ud800",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with finals, failures and a conclusion."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "f.c").write_text(C)
    unit = load(folder / "f.c")
    where = synthetic_database.this_cpu(unit, {"n": 100})
    with Store.open(folder / "db") as store:
        report_database.fill(
            store, where, times={"": 9.0, "loop i: unroll 2": 5.0}, finals={"": 9.0, "loop i: unroll 2": 5.0}
        )
        store.save_conclusion(
            where,
            "s1",
            to_record(report_database.result(directives="loop i: unroll 2"), Sources("a", "b", "c")),
        )
        store.begin(Row(replace(where, dtype="float64"), "", sweep="s2"))
    return folder


def damaged(path: Path, rng: random.Random) -> str:
    """Change one thing, and say what."""
    kind = rng.choice(("cell", "cell", "cell", "json", "json", "bit", "cut", "name"))
    if kind in ("bit", "cut"):
        held = bytearray(path.read_bytes())
        at = rng.randrange(len(held))
        if kind == "cut":
            held = held[:at]
        else:
            held[at] ^= 1 << rng.randrange(8)
        path.write_bytes(held)
        return f"{kind} {at}"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        if kind == "name":
            made = rng.choice((
                "ALTER TABLE runs ADD COLUMN \"x) VALUES (1); --\" TEXT", "CREATE VIEW v AS SELECT 1",
                "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "DROP TABLE results",
                "ALTER TABLE runs RENAME COLUMN kernel TO k", "PRAGMA user_version = -3", "PRAGMA user_version = 2",
            ))  # fmt: skip
            db.execute(made)
            return made
        table = rng.choice(("runs", "runs", "runs", "sweeps", "results"))
        names = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
        rows = db.execute(f"SELECT {names[0]} FROM {table}").fetchall()
        which = rng.sample(rows, rng.randint(1, len(rows)))
        if kind == "cell":
            name, value = rng.choice(names), rng.choice(ODD)
            change: Callable[[Any], Any] = lambda held: value  # noqa: E731
        else:
            table, name = rng.choice(
                (("runs", "outcome"), ("runs", "sizes"), ("runs", "options"), ("results", "record"))
            )
            which = db.execute(f"SELECT {'key' if table == 'runs' else 'context'} FROM {table}").fetchall()
            seed = rng.random()
            change, value = lambda held: mutated(held, random.Random(seed)), seed
        own = "key" if table == "runs" else "sweep" if table == "sweeps" else "context"
        for (key,) in which:
            (held,) = db.execute(f"SELECT {name} FROM {table} WHERE {own} = ?", (key,)).fetchone() or (None,)
            try:
                db.execute(f"UPDATE {table} SET {name} = ? WHERE {own} = ?", (change(held), key))
            except sqlite3.Error:
                continue
        return f"{table}.{name} = {ascii(value)[:60]}"


def mutated(text: Any, rng: random.Random) -> Any:
    """JSON with one of its values another one, or away."""
    if not isinstance(text, str):
        return text
    whole = json.loads(text)
    places = [*_places(whole)]
    if not places:
        return json.dumps(rng.choice(DEEP))
    holder, key = rng.choice(places)
    if rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(DEEP)
    return json.dumps(whole)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from _places(part)


@pytest.mark.wide
def test_a_damaged_database_is_one_error(base: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Exit code 0, or 2 and one ``error:``; the database stays, and nothing that it says has been run."""
    cases = request.config.getoption("--cases") or FEW
    seed = request.config.getoption("--hypothesis-seed") if cases != FEW else None
    seed = random.randrange(10**9) if seed is None else seed
    rng = random.Random(int(seed))
    for case in range(cases):
        folder = tmp_path / str(case)
        folder.mkdir()
        shutil.copy(base / "f.c", folder)
        shutil.copy(base / "db", folder)
        what = damaged(folder / "db", rng)
        before = (folder / "db").read_bytes()
        commands = COMMANDS if cases > FEW else rng.sample(COMMANDS[:-1], 6) + [COMMANDS[-1]] * (case % 4 == 0)
        for command in commands:
            ran = looptune(*command.split(), "--db", "db", cwd=folder)
            assert ran.code == 0 or (ran.code == 2 and ran.err.count("error: ") == 1), (seed, what, command, ran)
            assert not (folder / "ran").exists(), (seed, what, command)
            assert command.startswith(("db dump", "export")) or "\x1b" not in ran.out + ran.err, (seed, what, command)
        ran = looptune("replay", "db", "--repeats", "1", cwd=folder)
        assert ran.code in (0, 2), (seed, what, ran)
        with suppress(LooptuneError):
            best_of_databases((folder / "db",))
        if (folder / "made.py").exists():
            compile((folder / "made.py").read_bytes(), "made.py", "exec")
        assert (folder / "db").read_bytes() == before, (seed, what)
        shutil.rmtree(folder)
