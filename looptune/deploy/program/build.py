"""The work of ``looptune cc``: from the command line of a C compiler to a program with codelets for a GPU.

app.c ─▶ its codelets ─▶ generated C, machine code ┐
  └────▶ app.c with calls of these ────────────────┴▶ cc -c, each ─▶ cc -r: one object ─▶ cc: the program
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from looptune.core import cache_folder
from looptune.core.errors import LooptuneError, ResourceError, UnsupportedError, UsageError
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.source import caret
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.deploy.build import CPU, GPU
from looptune.deploy.c_source import best_on
from looptune.deploy.program.arguments import call_arguments
from looptune.deploy.program.codelet_text import CodeletFile, CodeletRequest, codelet_file
from looptune.deploy.program.command_line import CompilerCommand, library_files
from looptune.deploy.program.edited_headers import EditedHeader, check_copied, edited_headers, mentions_codelets
from looptune.deploy.program.edited_source import ReplacedCodelet, codelet_edits, edited_source
from looptune.deploy.program.file_names import digest, identifier
from looptune.deploy.program.library import cmake_text, header_text, library_name, pkg_config_text
from looptune.deploy.program.machine_code import KernelCompiler
from looptune.deploy.runtime.cpu_function import this_cpu
from looptune.frontend import ProgramCodelets, Unit, load_each
from looptune.frontend.codelet_calls import CodeletCalls, codelet_calls
from looptune.frontend.predefined_macros import macros_of
from looptune.frontend.signature import Head
from looptune.frontend.source_text import encoding, exact_text, read_source
from looptune.runtime.problem_sizes import integers
from looptune.runtime.targets import CACHE
from looptune.tune.store.store import Store

if TYPE_CHECKING:
    from looptune.deploy.text_replacement import Edit
    from looptune.frontend.codelet_selection import CodeletFunction
    from looptune.frontend.program import Program

RUNTIME = "looptune_runtime.c"
LIBRARIES = ("-lpthread", "-ldl", "-lm")

_INSIDE = "LOOPTUNE_CC_INSIDE"
"""The variable of the environment that has a 1 for each of these commands that runs another one."""

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """The options of ``looptune cc`` that are not those of the C compiler.

    ``kernels`` name codelets, as --kernel does; ``keep`` is a folder for the generated files, None for none;
    ``openmp``: generate loops for the cores of the host; ``predict``: where nothing was tuned, and the file has no
    directives, take a version that is predicted to be fast; ``library``: "shared" or "static" for a library of the
    codelets, "" for a program.
    """

    kernels: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    db: Path | None = None
    keep: Path | None = None
    openmp: bool = True
    predict: bool = True
    library: Literal["", "shared", "static"] = ""
    floats: Floats = DEFAULT


@dataclass(frozen=True, slots=True)
class GeneratedSource:
    """A source file of the program with calls of codelets, and the generated files that define these.

    ``headers`` are copies of the program's own, with calls of the codelets in them.
    """

    path: Path
    text: str
    header_name: str
    header: str
    codelets: tuple[CodeletFile, ...]
    headers: tuple[EditedHeader, ...] = ()


@dataclass(slots=True)
class ProgramBuild:
    """A run of the C compiler on a program. ``warn`` and ``note`` are called with messages for the user."""

    command: CompilerCommand
    options: ProgramOptions
    warn: Say
    note: Say
    missing: list[Mapping[str, UsageError]] = field(default_factory=list)

    def run(self) -> int:
        """Build the program or the library and return the exit code of the C compiler.

        Raises UsageError for files that are not there and options that do not fit each other.
        """
        self._check()
        if self.command.stops == "-S":
            self.warn(
                "-S shows the assembly of the files as they are: nothing is replaced, --keep DIR keeps what is made"
            )
            return self.compile_plain()
        if "-" in self.command.inputs:
            self.warn("nothing of the standard input is replaced: write it into a file")
        command = (*_cc(), *self.command.with_first_files(dict.fromkeys(self.command.first_files, "")))
        with _inside():
            begin = macros_of(command) if self.command.sources else {}
        if self.command.sources and not begin:
            self.warn(f"nothing is replaced: the C compiler does not list its macros ({shlex.join(command)} -dM -E)")
            return _execute([*_cc(), *self.command.arguments])
        if self.options.openmp and self.command.sources and not _has_openmp():
            self.warn(f"the C compiler {_cc()[0]} has no library for OpenMP: the original loops run on one core")
            self.options = replace(self.options, openmp=False)
        made = {source: self._generated(source, begin) for source in self.command.sources}
        found = {path: g for path, g in made.items() if g is not None}
        for kernel in self.options.kernels:
            if self.missing and all(kernel in file for file in self.missing):
                raise self.missing[-1][kernel]
        with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as temporary:
            folder = Path(temporary) if self.options.keep is None else self.options.keep
            folder.mkdir(parents=True, exist_ok=True)
            if self.options.library:
                return self._library([c for g in found.values() for c in g.codelets], folder, Path(temporary))
            return self._compiled(found, folder, Path(temporary))

    def compile_plain(self) -> int:
        """Compile the program as it is, without codelets, and return the exit code of the C compiler."""
        links = not self.command.stops and any(map(_has_runtime, library_files(self.command)))
        needed = ["-x", "none", *self._libraries()] if links else []
        return _execute([*_cc(), *self.command.arguments, *needed])

    def _check(self) -> None:
        for source in self.command.sources:
            if not Path(source).is_file():
                raise UsageError(f"no such file: {source}")
        if self.command.stops and self.options.library:
            raise UsageError(f"{self.command.stops} and --{self.options.library} exclude each other")
        if self.command.stops and self.command.output and len(self.command.sources) > 1:
            raise UsageError("-o names one object: compile one file with -c, or leave -o out")

    # -- generating ---------------------------------------------------------------------------------------------------

    def _generated(self, source: str, begin: Mapping[str, str]) -> GeneratedSource | None:
        """Return what a source file becomes, None if nothing of it is replaced; ``begin`` are the compiler's macros."""
        path = Path(source)
        why = self._other_meaning(path, begin)
        if why:
            self.warn(f"{why}: nothing of {path} is replaced")
            return None
        try:
            found = self._found(path, begin)
        except LooptuneError as error:
            texts = (path, *self.command.first_files.values())
            if self.options.kernels or any(mentions_codelets(p, self.command.include_dirs) for p in texts):
                self.warn(f"{error}\nnothing of {path} is replaced")
            return None
        self.missing.append(found.missing)
        compiler = KernelCompiler(
            self.options.architectures, self.options.floats.contract, CACHE, f"{digest(path)[:4]}_"
        )
        read = [member for member, unit in found.codelets if isinstance(unit, Unit)]
        calls = CodeletCalls() if self.options.library else codelet_calls(found.program, read)
        transfers = any(c.present or c.deferred or c.asynchronous for c in calls.calls) or bool(calls.transfers)
        raw = exact_text(read_source(path))
        replaced: list[ReplacedCodelet] = []
        codelets: list[CodeletFile] = []
        members: list[CodeletFunction] = []
        for member, unit in found.codelets:
            if isinstance(unit, LooptuneError):
                self.warn(f"{unit}\n{_place(member)} is not replaced")
                continue
            made = self._codelet(found.program, (member, unit), compiler, transfers)
            if made is not None:
                codelets.append(made[0])
                replaced.append(made[1])
                members.append(member)
        if not replaced:
            return None
        if not transfers and not self.options.library:
            calls = codelet_calls(
                found.program, [m for m, one in zip(members, replaced, strict=True) if _is_plain(one.unit)]
            )
            for held in calls.resident:
                self.note(caret(held.span, "between these calls of codelets nothing is copied to or from the GPU"))
        for message in calls.warnings:
            self.warn(message)
        name = f"looptune_{identifier(path.stem)}_{digest(path)}.h"
        if self.options.library:
            return GeneratedSource(path, "", name, declarations(codelets), tuple(codelets))
        outside: dict[str, list[Edit]] = {}
        for one in replaced:
            if one.unit.path != found.program.path:
                outside.setdefault(one.unit.path, []).extend(codelet_edits(one.unit.path, one.unit.text, one))
        headers, includes = edited_headers(found.program.source, found.program.path, outside)
        text = edited_source(source, raw, replaced, name, calls, includes)
        return GeneratedSource(path, text, name, declarations(codelets), tuple(codelets), headers)

    def _other_meaning(self, path: Path, begin: Mapping[str, str]) -> str:
        """Return why the compiler gives the types of a file other values than kernels do, "" if it does not."""
        if begin.get("__SIZEOF_POINTER__", "8") != "8" or begin.get("__SIZEOF_LONG__", "8") != "8":
            return "pointers or long are not of 64 bits"
        if "-fsingle-precision-constant" in self.command.compiling:
            return "-fsingle-precision-constant makes constants float"
        char = re.compile(r"(?<!signed)\s+char\b|[(,;{}]char\b|^char\b", re.MULTILINE)
        if "__CHAR_UNSIGNED__" in begin and char.search(exact_text(read_source(path))):
            return "char is unsigned for this compiler, and signed in kernels: write signed char or unsigned char"
        return ""

    def _found(self, path: Path, begin: Mapping[str, str]) -> ProgramCodelets:
        found = load_each(
            path, kernels=self.options.kernels, include_dirs=self.command.include_dirs, begin=begin,
            first=tuple(self.command.first_files.values()),
        )  # fmt: skip
        for name, error in found.unread.items():
            self.warn(f"{error}\n{name} is not replaced")
        of_units = (m for _, u in found.codelets if isinstance(u, Unit) for m in u.warnings)
        for message in (*found.warnings, *of_units):
            self.warn(message)
        return found

    def _codelet(
        self, program: Program, found: tuple[CodeletFunction, Unit], compiler: KernelCompiler, transfers: bool
    ) -> tuple[CodeletFile, ReplacedCodelet] | None:
        """Return the generated file of a codelet, and what calls it; None, with a warning, if it is not replaced."""
        member, unit = found
        (part,) = unit.parts
        facts = (unit.path, part.function, part.body, *self.command.compiling)
        name = f"looptune_{identifier(part.function)}_{digest(Path(program.path), *facts)}"
        if self.options.library:
            name = unit.codelet.name
        line = unit.text.count("\n", 0, part.body[0]) + 1 if part.region else unit.codelet.span.line
        place = f"{Path(unit.path).name}:{line}"
        try:
            if not self.options.library and unit.path != program.path:
                check_copied(program.source, unit)
            if self.options.library and part.nonnull:
                what = f"{part.function} tests {', '.join(part.nonnull)} for being null, which a library does not"
                raise UnsupportedError(what, unit.codelet.span)
            one = ReplacedCodelet(unit, name, {} if self.options.library else call_arguments(unit))
            if not self.options.library:
                codelet_edits(unit.path, unit.text, one)
            made = codelet_file(
                CodeletRequest(
                    unit,
                    name,
                    place,
                    self._measured(unit),
                    compiler,
                    self.options.floats,
                    self.options.openmp,
                    self.options.library != "",
                    transfers,
                    self._tuned_on_host(unit) if self.options.openmp else None,
                    self.options.predict,
                )
            )
        except (UnsupportedError, ResourceError) as error:
            self.warn(f"{error}\n{_place(member)} is not replaced")
            return None
        for said in made.notes:
            self.warn(caret(unit.codelet.span, said))
        return made, one

    def _measured(self, unit: Unit) -> tuple[BestVersion, ...]:
        return self._best(unit, GPU) if self.options.architectures else ()

    def _tuned_on_host(self, unit: Unit) -> BestVersion | None:
        """Return what was tuned for the cores of this machine, at the sizes of the program or the nearest ones."""
        rows = self._best(unit, CPU)
        nearest = dict(rows[-1].sizes) if rows else {}
        match, best = best_on(rows, this_cpu(), nearest | integers(unit.codelet, unit.values))
        return best if match.level in ("exact", "same device") else None

    def _best(self, unit: Unit, target: str) -> tuple[BestVersion, ...]:
        db = self.options.db
        if db is None or not db.exists():
            return ()
        with Store.read(db) as store:
            return best_versions(store, unit, target, self.options.floats)

    # -- compiling ----------------------------------------------------------------------------------------------------

    def _compiled(self, made: Mapping[str, GeneratedSource], folder: Path, temporary: Path) -> int:
        """Compile the sources, the generated ones in ``folder``, and link them. Return the C compiler's exit code."""
        if not made:
            return self.compile_plain()
        _write_runtime(folder)
        objects: dict[str, str] = {}
        for source in self.command.sources:
            own = made.get(source)
            target = self._object(Path(source), temporary)
            code = self._plain(source, target) if own is None else self._source(own, folder, temporary, target)
            code = code or self._dependencies(source, target)
            if code:
                return code
            objects[source] = str(target)
        if self.command.stops:
            return 0
        inputs = [objects.get(i, i) for i in self.command.inputs]
        output = ["-o", self.command.output] if self.command.output else []
        return _execute([*_cc(), *self.command.compiling, *self.command.linking, *inputs, *self._libraries(), *output])

    def _library(self, codelets: Sequence[CodeletFile], folder: Path, temporary: Path) -> int:
        """Compile the codelets into a library, with its header and what pkg-config and CMake read beside it."""
        kind = self.options.library
        if not codelets:
            raise UsageError("there is no codelet for a library: mark a function with `#pragma hmpp NAME codelet` or "
                             "`#pragma scop`, or name it with --kernel")  # fmt: skip
        suffix = "so" if kind == "shared" else "a"
        output = Path(self.command.output or f"lib{identifier(Path(self.command.sources[0]).stem)}.{suffix}")
        name = library_name(output, kind)
        _write_runtime(folder)
        options = [*self.command.code_options, *self._generated_options(), "-fPIC", "-fvisibility=hidden"]
        header = folder / f"{name}.h"
        header.write_text(header_text(name, codelets))
        objects: list[str] = []
        for text in (*(self._written(c, folder, f'#include "{name}.h"\n') for c in codelets), folder / RUNTIME):
            objects.append(str(temporary / f"{text.stem}.o"))
            if code := _execute([*_cc(), *options, "-c", str(text), "-o", objects[-1]]):
                return code
        if kind == "shared":
            linked = [*_cc(), "-shared", *self.command.linking, *objects, *self._libraries(), "-o", str(output)]
        else:
            output.unlink(missing_ok=True)
            linked = ["ar", "rcs", str(output), *objects]
        if code := _execute(linked):
            return code
        openmp = self.options.openmp
        for file, content in (
            (f"{name}.h", header_text(name, codelets)),
            (f"{name}.pc", pkg_config_text(name, kind, openmp=openmp)),
            (f"{name}Config.cmake", cmake_text(name, output.name, kind, openmp=openmp)),
        ):
            output.with_name(file).write_text(content)
        return 0

    def _generated_options(self) -> list[str]:
        return ["-std=gnu11", *(["-fopenmp"] if self.options.openmp else [])]

    def _libraries(self) -> list[str]:
        return [*LIBRARIES, *(["-fopenmp"] if self.options.openmp else [])]

    def _written(self, codelet: CodeletFile, folder: Path, before: str = "") -> Path:
        """Write the files of a codelet, and return its C file."""
        (folder / codelet.code_name).write_text(codelet.machine_code)
        (folder / f"{codelet.name}.cu").write_text(codelet.cuda)
        text = folder / f"{codelet.name}.c"
        text.write_text(before + codelet.text)
        return text

    def _object(self, path: Path, temporary: Path) -> Path:
        if self.command.stops == "-c":
            return Path(self.command.output) if self.command.output else Path(path.with_suffix(".o").name)
        return temporary / f"{identifier(path.stem)}_{digest(path)}.o"

    def _plain(self, source: str, target: Path) -> int:
        return _execute([*_cc(), *self.command.compiling, "-x", "c", "-c", source, "-o", str(target)])

    def _dependencies(self, source: str, target: Path) -> int:
        """Write the rules for make that -MD or -MMD asks for, of the source as the user has it."""
        asked = self.command.dependencies
        if not {"-MD", "-MMD"} & {*asked}:
            return 0
        made = self.command.output if self.command.stops or self.command.output else "a.out"
        name = target if self.command.stops else Path(f"{Path(made).stem}-{Path(source).stem}")
        options = [o for o in asked if o not in ("-MD", "-MMD")]
        options += [] if "-MF" in asked else ["-MF", str(name.with_suffix(".d"))]
        options += [] if {"-MT", "-MQ"} & {*asked} else ["-MT", str(target if self.command.stops else made)]
        kind = "-MM" if "-MMD" in asked else "-M"
        return _execute([*_cc(), *self.command.compiling, kind, *options, "-x", "c", source])

    def _source(self, own: GeneratedSource, folder: Path, temporary: Path, target: Path) -> int:
        """Compile a source file, its codelets and the runtime into one object."""
        source = folder / f"{own.path.stem}.looptune.c"
        source.write_bytes(own.text.encode(encoding(read_source(own.path)), errors="backslashreplace"))
        (folder / own.header_name).write_text(own.header)
        for header in own.headers:
            (folder / header.name).write_bytes(header.content)
        options = ["-iquote", str(own.path.parent), *self._user_options(own, folder), "-iquote", str(folder)]
        jobs = [(options, source)]
        generated = [*self.command.code_options, *self._generated_options()]
        jobs += [(generated, self._written(codelet, folder)) for codelet in own.codelets]
        jobs.append((generated, folder / RUNTIME))
        parts: list[str] = []
        whole = [] if not any(o.startswith("-flto") for o in self.command.compiling) else ["-fno-lto"]
        for options, text in jobs:
            parts.append(str(temporary / f"{identifier(own.path.stem)}_{len(parts)}.o"))
            code = _execute([*_cc(), *options, *whole, "-c", str(text), "-o", parts[-1]])
            if code:
                return code
        return _execute([*_cc(), *_machine(self.command.code_options), "-r", "-nostdlib", *parts, "-o", str(target)])

    def _user_options(self, own: GeneratedSource, folder: Path) -> list[str]:
        """Return the options for the edited source, with the copies of headers that ``-include`` names."""
        copies = {header.path: str((folder / header.name).absolute()) for header in own.headers}
        named = {name: path.resolve() for name, path in self.command.first_files.items()}
        instead = {name: copies[path] for name, path in named.items() if path in copies}
        declared = ["-include", str((folder / own.header_name).absolute())] if instead else []
        return [*declared, *self.command.with_first_files(instead)]


def _is_plain(unit: Unit) -> bool:
    """Tell whether a call reads nothing of the host but what it passes.

    It reads no fields of structs, and no scalars outside of the function that a codelet may have written.
    """
    (part,) = unit.parts
    own = {*unit.head.names} if isinstance(unit.head, Head) else set()
    return (
        not (part.texts or part.rows or part.element_names or part.result)
        and {p.name for p in unit.codelet.params} <= own
    )


def _has_runtime(path: Path) -> bool:
    """Tell whether an object or an archive contains the runtime of programs, which needs libraries."""
    return path.suffix in (".o", ".a") and path.is_file() and b"looptune_call" in path.read_bytes()


def _write_runtime(folder: Path) -> None:
    """Write the C files of the runtime, of which RUNTIME includes the others."""
    for file in files("looptune.deploy.program").joinpath("runtime").iterdir():
        if file.name.endswith((".c", ".h")):
            (folder / file.name).write_text(file.read_text())


@contextmanager
def _inside() -> Iterator[None]:
    """Let what is run know that this command runs it: a script that CC names may run this command again."""
    before = os.environ.get(_INSIDE, "")
    os.environ[_INSIDE] = f"{before}1"
    try:
        yield
    finally:
        os.environ[_INSIDE] = before


def _cc() -> list[str]:
    """Return the C compiler: CC, unless that is this command, as in ``CC="looptune cc" make``; else gcc, else cc.

    Raises UsageError if there is none, or if it runs this command.
    """
    inside = len(os.environ.get(_INSIDE, ""))
    if inside > 1:
        raise UsageError("the C compiler that looptune cc runs is looptune cc: set CC to another one")
    given = shlex.split(os.environ.get("CC", "")) if not inside else []
    if given and not any(Path(word).name == "looptune" for word in given):
        return given
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        raise UsageError("no C compiler was found: install gcc, or set CC")
    return [found]


def _execute(command: Sequence[str]) -> int:
    try:
        with _inside():
            return subprocess.run(command, check=False).returncode
    except OSError as error:
        raise UsageError(f"cannot run the C compiler {command[0]}: {error.strerror}") from error


def _has_openmp() -> bool:
    """Tell whether the compiler links programs with OpenMP: gcc does, clang needs a library that may be missing."""
    if not os.environ.get("CC", ""):
        return True
    with tempfile.TemporaryDirectory(prefix=cache_folder.process_prefix()) as folder:
        text = Path(folder) / "empty.c"
        text.write_text("int main(void) { return 0; }\n")
        command = [*_cc(), "-fopenmp", str(text), "-o", str(text.with_suffix(""))]
        with _inside():
            return subprocess.run(command, capture_output=True, check=False).returncode == 0


def execute_compiler(arguments: Sequence[str]) -> int:
    """Run the C compiler and return its exit code."""
    return _execute([*_cc(), *arguments])


def _machine(options: Sequence[str]) -> list[str]:
    """Return the options that a link of objects into one needs."""
    return [o for o in options if o.startswith(("-m", "-fuse-ld"))]


def _place(member: CodeletFunction) -> str:
    """Return the name of the function, with the line of the scop if it has several."""
    return member.function.name if member.mark is None else member.address


def declarations(codelets: Sequence[CodeletFile]) -> str:
    """Return the header of an edited source, which declares what its calls need and nothing else.

    It says nothing under any option of the compiler, and is C of every standard.
    """
    text = "".join(re.sub(r"\bbool\b", "_Bool", c.prototypes) for c in codelets)
    return (
        "#if defined(__GNUC__)\n#pragma GCC system_header\n#endif\n"
        "void looptune_hold(void);\nvoid looptune_give_back(void);\nvoid looptune_release(const void *host);\n"
        f"{text}"
    )
