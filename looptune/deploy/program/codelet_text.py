"""The C file of one codelet of a program: the versions for GPUs, the loops for the host, and the function to call.

int looptune_gemm(int ni, …, void *C, const void *A, …)          0: done; else the caller runs its own loops
void looptune_gemm_compare(int ni, …)                            with LOOPTUNE_CHECK=1, after the caller's loops
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from looptune.backends import openmp
from looptune.backends.codegen.c import list_lines
from looptune.backends.cuda.cuda_c_writer import CudaCWriter
from looptune.core.errors import DirectiveError, IllegalTransform, ResourceError, UnsupportedError
from looptune.core.escape import comment, comment_lines, quote
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.short_floats import BFLOAT
from looptune.core.version import __version__
from looptune.deploy import plans
from looptune.deploy.asserted import size_conditions
from looptune.deploy.best_versions import BestVersion
from looptune.deploy.program.machine_code import KernelCompiler, cuda_text
from looptune.deploy.program.plan_text import PlanTexts, name_in_file
from looptune.deploy.program.untuned import guess, warning
from looptune.deploy.python_module import measurement_lines
from looptune.frontend import Unit
from looptune.frontend.hmpp import size_of
from looptune.ir.c_printer import expression_text
from looptune.ir.nodes import Array, Assign, Codelet, If, Loop, Node, Scalar, While, promoted_type
from looptune.ir.rewrite import rewrite, walk_stmts
from looptune.ir.simplify import is_integer
from looptune.lower.passes.openmp_scalars import accumulate_in_scalars
from looptune.poly.array_range import ElementRange, completely_written, element_ranges
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines

_BOOL = "#ifndef __cplusplus\n#include <stdbool.h>\n#endif\n"


@dataclass(frozen=True, slots=True)
class CodeletFile:
    """The generated text of a codelet.

    ``prototypes`` declare what the program calls; ``text`` is the C file, which includes ``machine_code`` as
    ``code_name``; ``cuda`` are its kernels, to read. ``notes`` say what was left out, and why.
    """

    name: str
    prototypes: str
    text: str
    code_name: str
    machine_code: str
    cuda: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CodeletRequest:
    """What the file of a codelet is made from.

    ``name`` is that of the function to call, unique in a program; ``measured`` are the versions of the database, the
    best for each device and sizes; ``place`` is where the codelet begins in the user's file; ``openmp``: the host runs
    parallel loops on all cores; ``library``: write the functions of a library, see ``library``, and not those that an
    edited source calls; ``transfers``: write the functions for data directives too; ``on_host`` is the version that was
    tuned for the cores of this machine, if one was; ``predict``: without a tuned version, take one that is predicted.
    """

    unit: Unit
    name: str
    place: str
    measured: tuple[BestVersion, ...]
    compiler: KernelCompiler
    floats: Floats = DEFAULT
    openmp: bool = True
    library: bool = False
    transfers: bool = False
    on_host: BestVersion | None = None
    predict: bool = True


def codelet_file(request: CodeletRequest) -> CodeletFile:
    """Return the generated text of a codelet.

    Raises UnsupportedError if the elements that it accesses do not follow from its parameters, ResourceError if even
    the version without directives does not fit any GPU.
    """
    return _File(request).made()


class _File:
    """The parts of the file; names of parameters are those of ``_name`` everywhere."""

    def __init__(self, request: CodeletRequest) -> None:
        self.request, self.unit, self.name = request, request.unit, request.name
        self.codelet: Codelet = request.unit.codelet
        self.analysis = Analysis(self.codelet, request.floats.reorder)
        self.arrays = [p for p in self.codelet.params if isinstance(p, Array)]
        self.scalars = [p for p in self.codelet.params if isinstance(p, Scalar)]
        self.sizes = [p.name for p in self.scalars if is_integer(p.dtype)]
        parts = () if request.library else self.unit.parts
        self.structs = [p.name for p in self.arrays for part in parts
                        if p.name in part.texts and part.texts[p.name].element]  # fmt: skip
        self.tables = [p.name for p in self.arrays for part in parts if p.name in part.rows]
        self.ranges = self._ranges()
        self.overwritten = completely_written(self.analysis.model)
        self.notes: list[str] = []

    def made(self) -> CodeletFile:
        texts = PlanTexts(self.request.compiler)
        default, versions, rows, predicted = "0", "", 0, ""
        if self.request.compiler.architectures:
            default = texts.add(plans.default(self.analysis, blocks=True), "the directives of the file, any sizes")
            versions, rows = self._versions(texts)
            predicted = self._predicted(texts)
        loops = "" if self.in_pieces else self._loops()
        code_name = f"{self.name}_code.h"
        parts = [
            self._arguments(), texts.text(), versions, predicted, loops, self._table(texts, default, rows, predicted),
            self._describe(texts.aligned), self._exported() if self.request.library else self._entry(bool(loops)),
            self._transfers() if self._has_transfers else "",
        ]  # fmt: skip
        text = "\n".join(
            [self._comment(), f'{_BOOL}#include "looptune_runtime.h"\n#include "{code_name}"\n', *filter(None, parts)]
        )
        prototypes = f"{self._head('int', self.name)};\n{self._head('void', f'{self.name}_after', 'int todo')};\n"
        if self.request.library:
            prototypes = self._declared_functions()
        if self._has_transfers:
            prototypes += "".join(f"{head};\n" for head in self._transfer_heads().values())
        cuda = cuda_text(texts.kernels)
        return CodeletFile(self.name, prototypes, text, code_name, texts.machine_code(), cuda, tuple(self.notes))

    @property
    def in_pieces(self) -> bool:
        """Return whether the program has an array in pieces, which the runtime copies into one."""
        return bool(self.structs or self.tables)

    @property
    def _has_transfers(self) -> bool:
        return self.request.transfers and not self.in_pieces

    def _ranges(self) -> dict[str, ElementRange]:
        found: dict[str, ElementRange] = {}
        known = element_ranges(self.analysis.model)
        for p in self.arrays:
            one = known[p.name] if known[p.name] is not None else self._declared(p)
            if one is None:
                raise UnsupportedError(
                    f"the accessed extent of {p.name} does not follow from the parameters: declare it, as in "
                    f"{p.name}[n], or write args[{p.name}].size={{n}} in an hmpp codelet line", p.span
                )  # fmt: skip
            found[p.name] = ElementRange(*map(self._spelled, (one.first, one.end, one.rows, one.row)))
        return found

    def _declared(self, p: Array) -> ElementRange | None:
        """Return the range that an ``args[A].size`` clause of the codelet gives, in terms of its parameters."""
        directive = self.unit.parts[0].directive
        clauses = () if directive is None else directive.clauses
        texts = size_of(clauses, [q.name for q in self.codelet.params].index(p.name), p.name)
        words = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
        if not texts or not words <= {*self.sizes} or any(re.search(r"[^\w\s+*()/-]", text) for text in texts):
            return None
        extents = [f"(long long)({text})" for text in texts]
        return ElementRange("0", " * ".join(extents), extents[0], " * ".join(extents[1:]) or "1")

    def _from_the_beginning(self) -> Iterator[tuple[str, str]]:
        """Yield the conditions that no array is accessed before its beginning: kernels count in unsigned numbers."""
        for p in self.arrays:
            if self.ranges[p.name].first != "0":
                yield f"{self.ranges[p.name].first} >= 0", f"elements before the first one of {p.name} are accessed"

    def _spelled(self, text: str) -> str:
        """Return C text about the parameters with their names in this file."""
        return re.sub(r"[A-Za-z_]\w*", lambda m: name_in_file(m[0]) if m[0] in self.sizes else m[0], text)

    # -- the versions for GPUs ----------------------------------------------------------------------------------------

    def _versions(self, texts: PlanTexts) -> tuple[str, int]:
        """Return the table of the versions that were measured, and the number of its rows."""
        arrays: list[str] = []
        rows: list[str] = []
        for best in self.request.measured:
            where = f"{best.context.device}, {_sizes(best.sizes)}"
            try:
                exact = texts.add(plans.exact(self.analysis, best), f"{where}: these sizes as constants")
            except (ResourceError, DirectiveError, IllegalTransform) as error:
                self.notes.append(f"what was tuned for {where} is left out: {error.message}")
                continue
            elsewhere = self._elsewhere(texts, best, where)
            sizes = ", ".join(f"{best.sizes[name]}LL" for name in self.sizes)
            array = f"sizes_{len(rows)}"
            arrays.append(f"static const long long {array}[] = {{{sizes or '0'}}};\n")
            number = best.context.capability.removeprefix("sm_")
            rows.append(
                f"    {{{quote(best.context.device)}, {best.cores}, {number if number.isdigit() else 0}, {array}, "
                f"{exact}, {elsewhere},\n     {quote('; '.join(best.directives.splitlines()))}}},\n"
            )
        if not rows:
            return "", 0
        head = f"static const struct looptune_version versions[{len(rows)}] = {{\n"
        return "".join([*arrays, head, *rows, "};\n"]), len(rows)

    def _predicted(self, texts: PlanTexts) -> str:
        """Return the version that the cost model predicts to be fastest, "" if something was tuned or none is."""
        request = self.request
        found = None
        if request.predict and not request.measured:
            found = guess(self.unit, self.analysis, request.compiler.architectures)
            directives = "" if found is None else found.directives
            slow = warning(self.unit, self.analysis, directives, request.compiler.architectures)
            self.notes += [slow] if slow else []
        if found is None:
            return ""
        try:
            plan = plans.default(self.analysis, found.directives, blocks=True)
            name = texts.add(plan, "predicted to be fastest, any sizes")
        except ResourceError:
            return ""
        times = f"{found.predicted_us:.4g} us, without directives {found.default_us:.4g} us, on {found.device}"
        return (
            f"/* Predicted, not measured: {times}. */\n"
            f"static const struct looptune_version predicted = {{\n    0, 0, 0, 0, 0, {name},\n"
            f"    {quote('; '.join(found.directives.splitlines()))}\n}};\n"
        )

    def _elsewhere(self, texts: PlanTexts, best: BestVersion, where: str) -> str:
        plan = plans.for_other_sizes(self.analysis, best)
        try:
            return "0" if plan is None else texts.add(plan, f"{where}: other sizes")
        except ResourceError:
            return "0"

    # -- the host -----------------------------------------------------------------------------------------------------

    def _loops(self) -> str:
        """Return the loops with OpenMP; sums keep their order.

        "" if none of them is parallel, since a program has its own loops; a library has not.
        """
        loops = self._tuned_loops()
        if loops is None:
            loops = schedule(Analysis(_without_directives(self.codelet), reassociate=False)).codelet
        parallel = any(isinstance(n, Loop) and n.mode == "parallel" for n in walk_stmts(loops.body))
        if not (parallel and self.request.openmp):
            if not self.request.library:
                return ""
            loops = plans.sequential(self.codelet)
        text = openmp.text(replace(loops, name="loops"), front="static ")
        given = ", ".join(f"given->{name_in_file(p.name)}" for p in self.codelet.params)
        return f"""#ifdef __cplusplus
#define on_host 0  /* the extents of arrays are parameters, which they cannot be in C++ */
#else
{text}
static void on_host(const void *arguments)
{{
    const struct arguments *given = (const struct arguments *)arguments;
    loops({given});
}}
#endif
"""

    def _tuned_loops(self) -> Codelet | None:
        """Return the loops as they were tuned for the cores of the host, None if they add up in another order."""
        best = self.request.on_host
        if best is None or best.slower is not None:
            return None
        lines = parse_lines(plans.size_independent(best.directives).splitlines(), "configuration")
        try:
            done = schedule(Analysis(self.codelet, reassociate=False), lines)
        except (DirectiveError, IllegalTransform):
            return None
        return accumulate_in_scalars(done.codelet)

    # -- the function to call -----------------------------------------------------------------------------------------

    def _head(self, result: str, name: str, first: str = "") -> str:
        params = [first] if first else []
        for p in self.codelet.params:
            kind = _scalar(p) if isinstance(p, Scalar) else f"{'const ' * (p.io == 'in')}void *"
            params.append(f"{kind}{' ' * isinstance(p, Scalar)}{name_in_file(p.name)}")
            if p.name in self.structs:
                params += [f"unsigned long long {p.name}__stride", f"const void *{p.name}__structs"]
        return list_lines(f"{result} {name}(", params or ["void"])

    def _arguments(self) -> str:
        fields = [f"    {_scalar(p)} {name_in_file(p.name)};\n" for p in self.scalars]
        for p in self.arrays:
            fields.append(f"    void *{name_in_file(p.name)};\n")
            if p.name in self.structs:
                fields += [f"    unsigned long long {p.name}__stride;\n", f"    void *{p.name}__structs;\n"]
        return f"struct arguments {{\n{''.join(fields) or '    char none;' + chr(10)}}};\n"

    def _table(self, texts: PlanTexts, default: str, rows: int, predicted: str) -> str:
        names = ", ".join(map(quote, self.sizes))
        errors = ", ".join(repr(texts.relative.get(p.name, 0.0)) for p in self.arrays)
        relative = f"static const double relative[] = {{{errors}}};\n" if texts.relative else ""
        last = f"{'&predicted' if predicted else '0'}, {'relative' if texts.relative else '0'}"
        return (
            f"{relative}static const char *const size_names[] = {{{names or '0'}}};\n"
            f"static struct looptune_codelet codelet = {{\n"
            f"    {quote(self.codelet.name)}, {quote(self.request.place)}, {'versions' if rows else '0'}, "
            f"{rows},\n    size_names, {len(self.sizes)}, {default}, 1.0, 0, {last}\n}};\n"
        )

    def _describe(self, aligned: set[str]) -> str:
        """Return the function that describes the arrays of a call to the runtime."""
        if not self.arrays:
            return ""
        words = {word for r in self.ranges.values() for word in re.findall(r"\w+", f"{r.end} {r.rows} {r.row}")}
        lines = [f"const {_scalar(p)} {name_in_file(p.name)} = given->{name_in_file(p.name)};" for p in self.scalars
                 if name_in_file(p.name) in words]  # fmt: skip
        for k, p in enumerate(self.arrays):
            lines += ["", *self._described(k, p, aligned)]
            lines += self._pieces(k, p) if self.in_pieces else ()
        body = "".join(f"    {line}".rstrip() + "\n" for line in lines)
        head = "struct arguments *given, struct looptune_array *arrays"
        head += ", struct looptune_pieces *pieces" if self.in_pieces else ""
        return f"static void describe({head})\n{{\n{body.lstrip(chr(10))}}}\n"

    def _described(self, k: int, p: Array, aligned: set[str]) -> Iterator[str]:
        one, item, place = self.ranges[p.name], f"sizeof({_type(p.dtype)})", f"given->{name_in_file(p.name)}"
        flags = ["LOOPTUNE_READ"] if p.io != "out" or p.name not in self.overwritten else []
        flags += ["LOOPTUNE_WRITTEN"] if p.io != "in" else []
        flags += ["LOOPTUNE_ALIGNED"] if p.name in aligned else []
        yield f"arrays[{k}].name = {quote(p.name)};"
        yield f"arrays[{k}].host = {place};"
        yield f"arrays[{k}].bytes = looptune_bytes({one.end}, {item});"
        yield f"arrays[{k}].flags = {' | '.join(flags)};"
        yield f"arrays[{k}].kind = '{_kind(p.dtype)}';"
        yield f"arrays[{k}].item = (unsigned char){item};"

    def _pieces(self, k: int, p: Array) -> Iterator[str]:
        """Yield the lines that say in which pieces the program has an array."""
        name, one = name_in_file(p.name), self.ranges[p.name]
        table, structs = p.name in self.tables, p.name in self.structs
        yield f"pieces[{k}].rows = {f'(void *const *)given->{name}' if table else '0'};"
        yield f"pieces[{k}].base = {f'(char *)given->{name}' if structs else '0'};"
        yield f"pieces[{k}].structs = {f'(char *)given->{p.name}__structs' if structs else '0'};"
        yield f"pieces[{k}].stride = {f'given->{p.name}__stride' if structs else '0'};"
        count = one.rows if table or structs else "0"
        yield f"pieces[{k}].count = looptune_bytes({count}, 1);"
        yield f"pieces[{k}].bytes = looptune_bytes({one.row}, sizeof({_type(p.dtype)}));"

    def _entry(self, loops: bool) -> str:
        on_host = "on_host" if loops else "0"
        n, where, arrays = len(self.arrays), "", "arrays"
        call = f"looptune_call(&codelet, &given, sizes, arrays, {n}, {on_host}, 0)"
        if self.in_pieces:
            where, arrays = "_in_pieces", "arrays, pieces"
            call = f"looptune_call_in_pieces(&codelet, &given, sizes, arrays, pieces, {n})"
        return (
            f"{self._head('int', self.name)}\n{{\n{self._given(checked=True)}    return {call};\n}}\n\n"
            f"{self._head('void', f'{self.name}_after', 'int todo')}\n{{\n"
            f"    if (todo != LOOPTUNE_COMPARE) {{\n        looptune_done(&codelet);\n        return;\n    }}\n"
            f"    {{\n{self._given(checked=False)}"
            f"    looptune_compare{where}(&codelet, {arrays}, {n});\n    }}\n}}\n"
        )

    def _given(self, *, checked: bool) -> str:
        """Return the statements that collect the arguments; ``checked``: and check the sizes."""
        n = len(self.arrays)
        text = f"    struct arguments given;\n    struct looptune_array arrays[{max(1, n)}];\n"
        text += f"    struct looptune_pieces pieces[{n}];\n" if self.in_pieces else ""
        if checked:
            sizes = ", ".join(f"(long long){name_in_file(s)}" for s in self.sizes) or "0"
            text += f"    const long long sizes[] = {{{sizes}}};\n\n"
            text += "".join(
                f"    if (!({self._spelled(holds)}))\n        return looptune_refuse(&codelet, {quote(otherwise)});\n"
                for holds, otherwise in (*size_conditions(self.codelet), *self._from_the_beginning())
            )
        names = [(name_in_file(p.name), isinstance(p, Array)) for p in self.codelet.params]
        text += "".join(f"    given.{name} = {'(void *)' * array}{name};\n" for name, array in names)
        text += "" if names else "    given.none = 0;\n"
        text += "".join(
            f"    given.{name}__stride = {name}__stride;\n    given.{name}__structs = (void *){name}__structs;\n"
            for name in self.structs
        )
        described = f"    describe(&given, arrays{', pieces' if self.in_pieces else ''});\n"
        return text + (described if n else "    arrays[0].bytes = 0;\n")

    def _transfer_heads(self) -> dict[str, str]:
        """Return the heads of the functions for data directives; ``which`` has a bit for each array, in order."""
        params = self._head("", "").strip()[1:-1]
        listed = f"unsigned long long which{', ' if self.codelet.params else ''}{params if self.codelet.params else ''}"
        heads = {verb: f"void {self.name}_{verb}({listed})" for verb in ("load", "store", "release")}
        heads["synchronize"] = f"void {self.name}_synchronize(void)"
        heads["next"] = f"void {self.name}_next(unsigned long long present, unsigned long long kept, int asynchronous)"
        return heads

    def _transfers(self) -> str:
        heads, n = self._transfer_heads(), len(self.arrays)
        passed = {"load": "arrays[k].name, arrays[k].host, arrays[k].bytes", "release": "arrays[k].host"}
        passed["store"] = passed["load"]
        functions = [
            f"{heads[verb]}\n{{\n{self._given(checked=False)}"
            f"    for (int k = 0; k < {n}; k++)\n        if (which >> k & 1 && arrays[k].bytes > 0)\n"
            f"            looptune_{verb}({passed[verb]});\n}}\n"
            for verb in ("load", "store", "release")
        ]
        wait = f"{heads['synchronize']}\n{{\n    looptune_synchronize(&codelet);\n}}\n"
        options = f"{heads['next']}\n{{\n    looptune_next(&codelet, present, kept, asynchronous);\n}}\n"
        return "\n".join([*functions, wait, options])

    # -- the functions of a library -----------------------------------------------------------------------------------

    def _exported(self) -> str:
        n, name = len(self.arrays), self.name
        places = "".join(f"    addresses[{k}] = (looptune_address)(size_t)arrays[{k}].host;\n" for k in range(n))
        sizes = ", ".join(f"(long long){name_in_file(s)}" for s in self.sizes) or "0"
        return (
            f"{self._exported_head('')}\n{{\n{self._given(checked=True)}"
            f"    return looptune_call(&codelet, &given, sizes, arrays, {n}, on_host, 0);\n}}\n\n"
            f"{self._exported_head('_on_device')}\n{{\n    looptune_address addresses[{max(1, n)}];\n"
            f"{self._given(checked=True)}{places}{'' if n else '    addresses[0] = 0;' + chr(10)}"
            f"    return looptune_call_on_device(&codelet, &given, sizes, addresses, arrays, {n}, stream);\n}}\n\n"
            f"{self._exported_head('_query')}\n{{\n    const long long sizes[] = {{{sizes}}};\n\n"
            f"    return looptune_match(&codelet, sizes, level, directives);\n}}\n\n"
            f"const char *{name}_message(int status)\n{{\n    return looptune_message(status);\n}}\n"
        )

    def _exported_head(self, suffix: str) -> str:
        names = {p.name: name_in_file(p.name) for p in self.codelet.params}
        if suffix == "_query":
            params = [f"{_scalar(p)} {names[p.name]}" for p in self.scalars if p.name in self.sizes]
            params += ["const char **level", "const char **directives"]
        else:
            params = [
                f"{'const ' * (p.io == 'in')}{_type(p.dtype)} *{names[p.name]}"
                if isinstance(p, Array)
                else f"{_scalar(p)} {names[p.name]}"
                for p in self.codelet.params
            ]
            params += ["void *stream"] if suffix else []
        return list_lines(f"int {self.name}{suffix}(", params or ["void"])

    def _declared_functions(self) -> str:
        """Return the declarations for the header of a library."""
        shapes = [f"{p.name}{''.join(f'[{expression_text(e)}]' if e is not None else '[]' for e in p.shape)}"
                  for p in self.arrays]  # fmt: skip
        arrays = f"; arrays are contiguous, row by row: {', '.join(shapes)}" if shapes else ""
        described = comment(f"Run {self.name} of {self.request.place} on arrays of the host{arrays}.\n"
                            "   Return 0, or a status that the last function says in words.")  # fmt: skip
        return (
            f"/* {described} */\n{self._exported_head('')};\n"
            "/* The same on arrays of the device, asynchronously on a stream (a CUstream or cudaStream_t, 0 for the "
            f"default one). */\n{self._exported_head('_on_device')};\n"
            "/* Say what a call at these sizes would run: how near what was tuned is, and its directives. */\n"
            f"{self._exported_head('_query')};\nconst char *{self.name}_message(int status);\n"
        )

    def _comment(self) -> str:
        unit, request = self.unit, self.request
        lines = [f"{self.codelet.name} of {Path(unit.path).name}: made by looptune {__version__}.", ""]
        for best in request.measured:
            lines += [*measurement_lines(best, plans.proof(self.analysis, best)), ""]
        if not request.measured:
            lines.append("Nothing was measured on a GPU.")
        if request.on_host is not None and self._tuned_loops() is not None:
            lines += ["", "The loops for the host have the directives of:", ""]
            lines += measurement_lines(request.on_host, plans.proof(self.analysis, request.on_host))
        text = "\n".join(f"   {line}".rstrip() for line in comment_lines([*lines, *self.notes]))
        return f"/* {text.strip()}\n*/\n"


def _without_directives(codelet: Codelet) -> Codelet:
    def rule(n: Node) -> Node | None:
        match n:
            case Loop() | While() | If() | Assign() if n.directives:
                return replace(n, directives=())
        return None

    return replace(rewrite(rule, codelet), directives=())


def _type(dtype: str) -> str:
    return CudaCWriter.types[dtype]


def _scalar(p: Scalar) -> str:
    """Return the type in which a scalar is passed: a half as a float of its value."""
    return _type(promoted_type(p.dtype))


def _kind(dtype: str) -> str:
    if dtype == BFLOAT:
        return "b"
    return "f" if dtype.startswith("float") else "u" if dtype.startswith("uint") or dtype == "bool" else "i"


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items())
