"""The program around a codelet, compiled by gcc and run up to the codelet's first call, whose arguments are recorded.

    a copy of the sources, a hook at the start of each body ─▶ gcc ─▶ run ─▶ RecordedCall

    hook ── which codelet, its scalars ──▶  ── bytes of each array ──▶ hook ── the arrays ──▶  ── go on, or end ──▶ hook

The sizes of arrays follow from the scalars, so they are computed while the program waits. The copy mirrors the folders
of the sources: relative includes work, and a name given with -D keeps its value as it does in looptune.

If gcc has AddressSanitizer, the program runs with it, since it knows where each block of memory ends: on the heap, on
the stack and at file scope. Otherwise, and if the program does not run with it, these ends are not known.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from looptune.core import cache_folder
from looptune.core.errors import UsageError
from looptune.ir.c_printer import C_TYPES, expression_text
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Array, Assign, Scalar
from looptune.ir.rewrite import walk
from looptune.runtime.c_program import without_macros
from looptune.runtime.pipe import Link, PipeClosed, PipeTimeout
from looptune.runtime.problem_sizes import problem, shapes

if TYPE_CHECKING:
    from looptune.frontend import FunctionPart, Unit

Number = int | float

OUTSIDE = 86
"""The exit status of a program that accessed memory outside of its arrays."""
STACK_KIB = 8 << 20
COMPILE_S = 300.0
"""Nothing that looptune can read takes gcc this long."""

_HOOK = """
#include <errno.h>
#include <unistd.h>

extern void *__asan_region_is_poisoned(void *, size_t) __attribute__((weak));

/* How many of so many bytes belong to the block; all of them where that is not known. */
static unsigned long long room(const void *at, unsigned long long bytes)
{
  const char *end = __asan_region_is_poisoned && bytes ? __asan_region_is_poisoned((void *)at, bytes) : 0;
  return end ? (unsigned long long)(end - (const char *)at) : bytes;
}

/* What the bounds of guarded accesses reach may end before they do: nothing is read there, and zeros are sent. A write
   of which a part is not there may send nothing at all. */
static void put(const char *next, unsigned long long bytes, unsigned long long held)
{
  static const char zeros[4096];
  unsigned long long most = held;
  while (bytes) {
    if (most > held) most = held;
    ssize_t sent = most ? write(TO_LOOPTUNE, next, most)
                        : write(TO_LOOPTUNE, zeros, bytes < sizeof zeros ? bytes : sizeof zeros);
    if (sent >= 0) { bytes -= sent; if (most) { next += sent; held -= sent; } }
    else if (errno == EFAULT && most) most /= 2;
    else if (errno != EINTR) _exit(1);
  }
}

static void get(void *at, unsigned long long bytes)
{
  char *next = at;
  while (bytes) {
    ssize_t got = read(FROM_LOOPTUNE, next, bytes);
    if (got > 0) { next += got; bytes -= got; }
    else if (got == 0 || errno != EINTR) _exit(1);
  }
}

/* The rows to which a table of pointers leads, and then the pointers: of those that the table does not have, zeros. */
static void put_rows(const void *const *table, unsigned long long row, unsigned long long bytes)
{
  static const char zeros[4096];
  unsigned long long rows = row ? bytes / row : 0, held = room(table, rows * sizeof *table) / sizeof *table;
  for (unsigned long long r = 0; r < rows; r++)
    put(r < held ? table[r] : zeros, row, r < held ? room(table[r], row) : 0);
  put((const char *)table, rows * sizeof *table, held * sizeof *table);
}

void looptune_hook(int which, int scalars, const unsigned long long *bytes, int arrays, const void *const *at)
{
  static int calls[] = {CALLS};
  unsigned long long extent[arrays + 1];
  char more;
  if (!calls[which]) return;
  calls[which]--;
  put((const char *)&which, sizeof which, sizeof which);
  for (int k = 0; k < scalars; k++) put(at[k], bytes[k], bytes[k]);
  get(extent, arrays * sizeof *extent);
  for (int k = 0; k < arrays; k++) {
    unsigned long long place[2] = {(unsigned long long)(size_t)at[scalars + k], room(at[scalars + k], extent[k])};
    put((const char *)place, sizeof place, sizeof place);
    if (bytes[scalars + k]) put_rows(at[scalars + k], bytes[scalars + k], extent[k]);
    else put(at[scalars + k], extent[k], place[1]);
  }
  get(&more, 1);
  if (!more) _exit(0);
}
"""


@dataclass(frozen=True, slots=True)
class ArrayAllocation:
    """The address at which an array of the program begins, and the bytes from there that belong to its allocation.

    Only bytes that the loops may access count; all of them if the allocation is not known. Of an array of pointers,
    ``rows`` are the addresses of its rows.
    """

    address: int
    bytes: int
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The arguments of a recorded call by parameter name, and where its arrays are in the program."""

    scalars: Mapping[str, Number]
    arrays: Mapping[str, np.ndarray]
    allocations: Mapping[str, ArrayAllocation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Hook:
    """A function of the codelet's.

    ``parts[c]`` is what its call number c is, and the function's own names of all that any of them takes from it, with
    their types. ``rows`` are the bytes of the rows of arrays that consist of pointers, as C text; ``texts`` are those
    of fields of structs, of which an array is a pointer.
    """

    path: str
    at: int
    parts: tuple[int, ...]
    scalars: Mapping[str, str]
    arrays: tuple[str, ...]
    element_names: Mapping[str, str]
    rows: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


class _Outside(UsageError):
    """The program is wrong before the call: nothing that it would pass counts."""


Sizes = Callable[[Mapping[str, Number]], Mapping[str, tuple[int, ...]]]
"""The shapes of the arrays that are wanted, from the scalars known so far."""


def record(unit: Unit, include_dirs: Sequence[Path], limit_s: float = 60.0) -> RecordedCall:
    """Return the arguments with which the program calls ``unit``, read in the program's own types.

    Of a group, every parameter is what the first codelet that has it is called with. ``limit_s``: how long the program
    may go on without a call. UsageError where gcc is missing or refuses the program, and where the program crashes,
    hangs or ends before every codelet was called.
    """
    if shutil.which("gcc") is None:
        raise UsageError("--inputs-from-main compiles the program with gcc, which is not installed")
    codelet = unit.codelet
    if any(t.element for t in unit.parts[0].texts.values()) or (len(unit.parts) > 1 and _has_structs(unit)):
        raise UsageError(f"{codelet.name} takes fields of structs that --inputs-from-main does not record: "
                         "give the inputs with --data", codelet.span)  # fmt: skip
    if lengths := unit.parts[0].row_lengths:
        raise UsageError(f"{min(lengths)} is no variable of the program, so that --inputs-from-main does not know it: "
                         "give the inputs with --data", codelet.span)  # fmt: skip
    if len(unit.parts) == 1:
        found = _run(unit, include_dirs, limit_s, lambda scalars: shapes(codelet, problem(codelet, scalars)))
        scalars = dict(found.scalars)
        extents = shapes(codelet, problem(codelet, scalars))
    else:
        # an array may be as large as the largest of several codelets needs it: every scalar has to be known first
        scalars = {p.name: unit.values.get(p.name, 0) for p in codelet.params if isinstance(p, Scalar)}
        scalars |= _run(unit, include_dirs, limit_s, lambda _: {}).scalars
        extents = shapes(codelet, problem(codelet, scalars))
        found = _run(unit, include_dirs, limit_s, lambda _: extents)
    # What a function returns is passed to none.
    unused = {p.name: np.zeros(extents[p.name], p.dtype) for p in codelet.params if isinstance(p, Array)}
    return RecordedCall(scalars, {**unused, **found.arrays}, found.allocations)


def _run(unit: Unit, include_dirs: Sequence[Path], limit_s: float, sizes: Sizes) -> RecordedCall:
    try:
        return _once(unit, include_dirs, limit_s, sizes, sanitized=True)
    except _Outside:
        raise
    except UsageError:
        return _once(unit, include_dirs, limit_s, sizes, sanitized=False)


def _has_structs(unit: Unit) -> bool:
    return any(part.has_structs for part in unit.parts)


def _once(unit: Unit, include_dirs: Sequence[Path], limit_s: float, sizes: Sizes, *, sanitized: bool) -> RecordedCall:
    taken = _taken(unit)
    hooks = _hooks(unit, taken)
    with TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder, Link(limit_s) as link:
        program = _built(unit, hooks, include_dirs, Path(folder), link, sanitized=sanitized)
        link.start(["sh", "-c", _start(Path(folder), sanitized=sanitized), str(program)])
        try:
            return _conversation(unit, hooks, taken, link, sizes)
        except UsageError:
            if sanitized and link.status() == OUTSIDE:
                raise _Outside(_reported(unit, Path(folder))) from None
            raise


def _start(folder: Path, *, sanitized: bool) -> str:
    """Programs with large arrays on the stack are common, and need more than the usual 8 MiB.

    A stack without a limit is where the sanitizer keeps its own.
    """
    if not sanitized:
        return 'ulimit -s unlimited 2>/dev/null; exec "$0"'
    options = ":".join(
        (f"exitcode={OUTSIDE}", f"log_path={folder / 'report'}", "detect_leaks=0", "max_malloc_fill_size=0",
         "handle_segv=0", "handle_sigbus=0", "handle_sigfpe=0", "allocator_may_return_null=1")
    )  # fmt: skip
    stack = f"ulimit -s {STACK_KIB} 2>/dev/null || ulimit -s $(ulimit -H -s) 2>/dev/null"
    return f'{stack}; ASAN_OPTIONS={options} exec "$0"'


def _reported(unit: Unit, folder: Path) -> str:
    """Return what the sanitizer says of the program: the kind of access, and where."""
    said = "\n".join(path.read_text(errors="replace") for path in sorted(folder.glob("report*")))
    kind = re.search(r"AddressSanitizer: ([\w-]+)", said)
    named = {Path(path).resolve(): path for path in unit.sources}
    places = [(Path(m[1]), m[2]) for m in re.finditer(r"#\d+ .* in \S+ (\S+?):(\d+)", said)]
    own = next((f"{named[path.resolve()]}:{line}" for path, line in places if path.resolve() in named), _main(unit))
    missing = " and ".join(part.function for part in unit.parts)
    return (f"{own}: the program accesses memory outside of its arrays before it has called {missing} "
            f"({kind[1] if kind else 'AddressSanitizer'})")  # fmt: skip


def _taken(unit: Unit) -> list[dict[str, str]]:
    """For each part the parameters that no earlier one has, by the function's own name, without what it returns."""
    found: list[dict[str, str]] = []
    left = {p.name for p in unit.codelet.params} - {part.result for part in unit.parts}
    for part in unit.parts:
        here = left if len(unit.parts) == 1 else left & _names(unit, part)
        found.append({part.names.get(name, name): name for name in sorted(here)})
        left = left - here
    return found


def _names(unit: Unit, part: FunctionPart) -> set[str]:
    """Return what a part's statements name, and what the extents of its arrays are made of."""
    own = [s for s in unit.codelet.body if any(isinstance(n, Assign) and n.name in part.statements for n in walk(s))]
    used = names_in(tuple(own))
    extents = [p.shape for p in unit.codelet.params if isinstance(p, Array) and p.name in used]
    return used | names_in(tuple(e for shape in extents for e in shape if e is not None))


def _hooks(unit: Unit, taken: Sequence[Mapping[str, str]]) -> tuple[_Hook, ...]:
    places = dict.fromkeys((part.path, part.body[0]) for part in unit.parts)
    types = {p.name: p for p in unit.codelet.params}
    found = []
    for path, at in places:
        parts = tuple(k for k, part in enumerate(unit.parts) if (part.path, part.body[0]) == (path, at))
        params = {own: types[name] for k in parts for own, name in taken[k].items()}
        scalars = {own: p.dtype for own, p in params.items() if isinstance(p, Scalar)}
        held = {array: variable for k in parts for array, variable in unit.parts[k].element_names.items()}
        arrays = tuple(own for own in params if own not in scalars)
        texts = {own: text.passed for own, text in unit.parts[0].texts.items() if own in params}
        found.append(_Hook(path, at, parts, scalars, arrays, held, _rows(unit, params), texts))
    return tuple(found)


def _rows(unit: Unit, params: Mapping[str, Array | Scalar]) -> dict[str, str]:
    """Return the bytes of the rows of arrays that consist of pointers. Raises UsageError for more than two levels."""
    found = {}
    for own, p in params.items():
        dimensions = unit.rows.get(p.name, ())
        if isinstance(p, Array) and dimensions:
            if dimensions != (1,):
                raise UsageError(f"the rows of {own} consist of pointers: give the inputs with --data", p.span)
            extents = (f"(unsigned long long)({expression_text(e)}) * " for e in p.shape[1:] if e is not None)
            found[own] = f"{''.join(extents)}sizeof({C_TYPES[p.dtype]})"
    return found


def _conversation(
    unit: Unit, hooks: Sequence[_Hook], taken: Sequence[Mapping[str, str]], link: Link, sizes: Sizes
) -> RecordedCall:
    scalars: dict[str, Number] = {}
    arrays: dict[str, np.ndarray] = {}
    places: dict[str, ArrayAllocation] = {}
    waiting = [list(hook.parts) for hook in hooks]
    types = {p.name: p.dtype for p in unit.codelet.params}
    try:
        while any(waiting):
            which = int(np.frombuffer(link.read(4), np.int32)[0])
            hook, mine = hooks[which], taken[waiting[which].pop(0)]
            said = {own: _number(link, dtype) for own, dtype in hook.scalars.items()}
            scalars |= {mine[own]: number for own, number in said.items() if own in mine}
            wanted = sizes(scalars)
            held = {own: np.empty(wanted[mine[own]], types[mine[own]])
                    for own in hook.arrays if mine.get(own) in wanted}  # fmt: skip
            link.write(np.array([held[n].nbytes if n in held else 0 for n in hook.arrays], np.uint64).tobytes())
            for own in hook.arrays:
                address, room = np.frombuffer(link.read(16), np.uint64)
                if own in held:
                    link.read_into(held[own])
                    rows = np.zeros(len(held[own]) if own in hook.rows and held[own].size else 0, np.uint64)
                    link.read_into(rows)
                    found = ArrayAllocation(int(address), int(room), tuple(rows.tolist()) if own in hook.rows else None)
                    arrays[mine[own]], places[mine[own]] = held[own], found
            link.write(bytes([any(waiting)]))
    except (PipeClosed, PipeTimeout) as stop:
        missing = " and ".join(unit.parts[k].function for k in sorted(k for left in waiting for k in left))
        raise UsageError(f"{_main(unit)}: the program {_how(stop, link)} before it called {missing}") from None
    return RecordedCall(scalars, arrays, places)


def _number(link: Link, name: str) -> Number:
    dtype = np.dtype(name)
    number: Number = np.frombuffer(link.read(dtype.itemsize), dtype)[0].item()
    return number


def _how(stop: PipeClosed | PipeTimeout, link: Link) -> str:
    match stop, link.status():
        case PipeTimeout(), _:
            return f"ran for {link.limit_s:g} s"
        case _, int(code) if code < 0:
            return f"crashed ({signal.Signals(-code).name})"
        case _, int(code) if code > 0:
            return f"ended with exit status {code}"
        case _:
            return "ended"


def _main(unit: Unit) -> str:
    return next(iter(unit.sources))


# The copy of the sources, and its compilation.


def _built(
    unit: Unit, hooks: Sequence[_Hook], include_dirs: Sequence[Path], folder: Path, link: Link, *, sanitized: bool
) -> Path:
    """Return the program with its hooks; UsageError with gcc's first complaint, or with what is undefined."""
    macros = {name: value for name, value in unit.defines.items() if name not in unit.known_values}
    copies = {path: _copied(path, text, hooks, macros, folder) for path, text in unit.sources.items()}
    sanitizer = ["-fsanitize=address"] if sanitized else []
    flags = ["-O1", "-g1", "-w", "-std=gnu17", *sanitizer, *(f"-D{name}={value}" for name, value in macros.items())]
    for directory in include_dirs:
        mirrored = _mirrored(directory, folder)
        mirrored.mkdir(parents=True, exist_ok=True)
        flags += ["-I", str(mirrored), "-I", str(directory.resolve())]
    for directory in dict.fromkeys(Path(path).resolve().parent for path in unit.sources):
        flags += ["-iquote", str(directory)]
    hook, program = folder / "hook.c", folder / "program"
    hook.write_text(_HOOK)
    ends = [f"-DTO_LOOPTUNE={link.theirs[1]}", f"-DFROM_LOOPTUNE={link.theirs[0]}"]
    ends.append(f"-DCALLS={','.join(str(len(hook.parts)) for hook in hooks)}")
    objects = [_object(hook, ends, folder, 0), _object(copies[_main(unit)], flags, folder, 1)]
    complaint = _gcc([*sanitizer, *objects, "-lm", "-o", str(program)])
    beside = _beside(unit.sources)
    if complaint is not None and beside:
        objects += [_object(path, flags, folder, k) for k, path in enumerate(beside, 2)]
        complaint = _gcc([*sanitizer, *objects, "-lm", "-o", str(program)])
    if complaint is not None:
        raise UsageError(_unlinked(_main(unit), complaint, beside))
    return program


def _object(source: Path, flags: Sequence[str], folder: Path, number: int) -> str:
    made = str(folder / f"{number}.o")
    complaint = _gcc([*flags, "-c", str(source), "-o", made])
    if complaint is not None:
        errors = [line for line in complaint.splitlines() if " error: " in line]
        raise UsageError(f"gcc refuses the program: {(errors + complaint.splitlines())[0]}")
    return made


def _gcc(arguments: Sequence[str]) -> str | None:
    """None where gcc succeeds, else what it says."""
    try:
        # its messages are read, so they have to be in English
        done = subprocess.run(["env", "LC_ALL=C", "gcc", *arguments], capture_output=True, timeout=COMPILE_S)
    except subprocess.TimeoutExpired:
        return f"gcc took more than {COMPILE_S:g} s"
    said = done.stderr.decode(errors="replace").strip()
    return None if done.returncode == 0 else said if said else f"gcc ended with {done.returncode}"


def _beside(sources: Mapping[str, str]) -> list[Path]:
    """Return the .c files beside the headers that were read: ``utilities/polybench.c``."""
    own = {Path(path).resolve() for path in sources}
    found = dict.fromkeys(path.with_suffix(".c") for path in sorted(own) if path.suffix == ".h")
    return [path for path in found if path not in own and path.is_file()]


def _unlinked(main: str, complaint: str, beside: Sequence[Path]) -> str:
    undefined = list(dict.fromkeys(re.findall(r"undefined reference to [`'](\w+)'", complaint)))
    if "main" in undefined:
        return f"{main} has no main function, which is what --inputs-from-main runs: give the inputs with --data"
    if not undefined:
        return f"gcc cannot link the program: {complaint.splitlines()[-1]}"
    searched = "".join(f", {path.name}" for path in beside)
    return (
        f"the program does not define {', '.join(undefined)}: "
        f"neither {Path(main).name}{searched} nor a .c file beside a header it includes has it"
    )


def _copied(path: str, text: str, hooks: Sequence[_Hook], macros: Mapping[str, str], folder: Path) -> Path:
    own = [(hook.at, k, hook) for k, hook in enumerate(hooks) if hook.path == path]
    for at, k, hook in sorted(own, reverse=True):
        inside = at + (text[at] == "{")
        text = text[:inside] + _call(k, hook) + text[inside:]
    text = without_macros(text, macros)
    made = _mirrored(Path(path), folder)
    made.parent.mkdir(parents=True, exist_ok=True)
    shown = path.replace("\\", "\\\\").replace('"', '\\"')
    made.write_text(f'#line 1 "{shown}"\n{text}')
    return made


def _mirrored(path: Path, folder: Path) -> Path:
    real = path.resolve()
    return folder / "files" / real.relative_to(real.anchor)


def _call(number: int, hook: _Hook) -> str:
    """One line of C: a block that hands the addresses of the parameters to ``looptune_hook``."""
    sizes = "".join(f"{np.dtype(dtype).itemsize}," for dtype in hook.scalars.values())
    sizes += "".join(f"{hook.rows.get(own, '0')}," for own in hook.arrays)
    # a copy, because a parameter may be a register variable
    addresses = "".join(f"&({C_TYPES[dtype]}){{{hook.texts.get(own, own)}}}," for own, dtype in hook.scalars.items())
    addresses += "".join(
        f"&{hook.element_names[own]}," if own in hook.element_names else f"{hook.texts.get(own, own)},"
        for own in hook.arrays
    )
    return (
        "{extern void looptune_hook(int,int,const unsigned long long*,int,const void*const*);"
        f"looptune_hook({number},{len(hook.scalars)},(const unsigned long long[]){{{sizes}0}},"
        f"{len(hook.arrays)},(const void*const[]){{{addresses}0}});}}"
    )
