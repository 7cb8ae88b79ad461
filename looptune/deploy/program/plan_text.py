"""The launches of a plan as C that calls the runtime of programs, and the kernels that they launch.

static void launch_0(struct looptune_run *run, long long x, …, looptune_address C, …, unsigned int ni)
static int plan_0(struct looptune_run *run, const void *arguments, const looptune_address *addresses)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from looptune.backends.codegen import half
from looptune.backends.codegen.c import CWriter, close_braces, list_lines
from looptune.backends.codegen.c_host import HostLines, host_writer
from looptune.backends.codegen.identifiers import CUDA_NAMES, avoid_reserved
from looptune.backends.codegen.memory_ops import aligned
from looptune.backends.cuda.cuda_c_writer import CudaCWriter
from looptune.deploy.program.machine_code import CompiledKernel, KernelCompiler, array_text, named_images
from looptune.ir.nodes import Array, Codelet, Scalar, promoted_type
from looptune.lower.plan import ARRIVED, Kernel, Plan, uncounted_arrays
from looptune.lower.signature import extent_names, scalar_type

if TYPE_CHECKING:
    from looptune.lower.plan import FinishedPlan

RUN, ARGUMENTS, GIVEN, ADDRESSES = "run", "arguments", "given", "addresses"

_OWN = frozenset((
    RUN, ARGUMENTS, GIVEN, ADDRESSES, "values", "each", "arrays", "sizes", "x", "y", "z", "codelet", "versions",
    "describe", "on_host", "loops", "size_names", "predicted", "todo",
))  # fmt: skip


def name_in_file(name: str) -> str:
    """Return the name of a parameter of the codelet, or of a variable of its host, in the generated file."""
    if name.rstrip("_") in _OWN or re.fullmatch(r"(kernel|launch|plan|sizes)_\d\w*|looptune_\w*", name):
        return f"{name}_"
    return avoid_reserved(name, CUDA_NAMES)


class HostWriter(CudaCWriter):
    """A writer of the host's side of plans in C that is C++ as well."""

    def name(self, name: str) -> str:
        return name_in_file(name)

    def inline(self, result: str) -> str:
        return f"static inline {result}"

    def half_function(self, name: str) -> str:
        return half.for_host(name)


@dataclass(slots=True)
class PlanTexts:
    """The plans of a codelet as C, each kernel and each plan once.

    ``relative``: the errors that the user allows where factors are rounded, by array, see ``runtime.tolerance``.
    ``parameters``: the types of the parameters of each kernel, by its number.
    """

    compiler: KernelCompiler
    kernels: list[CompiledKernel] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)
    launchers: dict[tuple[int, str], str] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    aligned: set[str] = field(default_factory=set)
    relative: dict[str, float] = field(default_factory=dict)
    parameters: dict[int, list[str]] = field(default_factory=dict)

    def add(self, plan: Plan, note: str) -> str:
        """Return the name of the function with the launches of the plan.

        Raises ResourceError if none of the architectures has what a kernel needs.
        """
        finished = self.compiler.finished(plan)
        self.relative |= {a: max(error, self.relative.get(a, 0.0)) for a, error in plan.inexact.items()}
        numbers = {k.name: self._number(self.compiler.compiled(finished, k)) for k in finished.compiled_kernels}
        writer = HostWriter(finished, extent_names(finished))
        body = "\n".join(close_braces(self._body(finished, host_writer(finished, writer), numbers)))
        self.functions |= writer.functions
        self.aligned |= {a for a in aligned(finished) if any(p.name == a for p in plan.codelet.params)}
        if body not in self.plans:
            self.plans[body] = f"plan_{len(self.plans)}"
            self.notes[self.plans[body]] = []
        self.notes[self.plans[body]].append(note)
        return self.plans[body]

    def text(self) -> str:
        """Return the definitions, without the machine code."""
        kernels = [self._kernel(k, one) for k, one in enumerate(self.kernels)]
        plans = [
            f"/* {'; '.join(dict.fromkeys(self.notes[name]))} */\n"
            f"static int {name}(struct looptune_run *{RUN}, const void *{ARGUMENTS}, "
            f"const looptune_address *{ADDRESSES})\n"
            f"{{\n{body}\n    return LOOPTUNE_OK;\n}}\n"
            for body, name in self.plans.items()
        ]
        helpers = [self.functions[name] for name in sorted(self.functions)]
        return "\n".join([*helpers, *kernels, *self.launchers.values(), *plans])

    def machine_code(self) -> str:
        """Return the images of the kernels as arrays of C."""
        arrays = (
            array_text(name, image.code)
            for k, one in enumerate(self.kernels)
            for name, image in named_images(self._name(k), one.images)
        )
        return "\n".join(arrays)

    def _name(self, number: int) -> str:
        return f"kernel_{number}"

    def _number(self, kernel: CompiledKernel) -> int:
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        return self.kernels.index(kernel)

    def _kernel(self, number: int, kernel: CompiledKernel) -> str:
        name = self._name(number)
        rows = "".join(
            f"    {{{i.capability}, {int(i.is_ptx)}, {array}, sizeof {array}}},\n"
            for array, i in named_images(name, kernel.images)
        )
        sizes = ", ".join([*(f"sizeof({kind})" for kind in self.parameters.get(number, ())), "0"])
        x, y, z, shared = (*kernel.block[:2], *(*kernel.block[2:], 1, 0)[:2])
        return (
            f"static const struct looptune_image {name}_images[{len(kernel.images)}] = {{\n{rows}}};\n"
            f"static const unsigned char {name}_parameters[] = {{{sizes}}};\n"
            f"static const struct looptune_kernel {name} = {{\n"
            f'    "{kernel.symbol}", "{kernel.symbol}", {name}_images, {len(kernel.images)}, '
            f"{{{x}, {y}, {z}}}, {shared}, {name}_parameters\n}};\n"
        )

    # -- one plan ---------------------------------------------------------------------------------------------------

    def _body(self, plan: FinishedPlan, writer: CWriter, numbers: dict[str, int]) -> Iterator[str]:
        """Yield the lines of the function of a plan, of which those before its steps declare what these name."""

        def spelled(kernel: Kernel, blocks: Sequence[str], beside: bool) -> str:
            launcher = self._launcher(plan, kernel, writer, numbers[kernel.name], beside)
            return self._launch(plan, kernel, blocks, writer, launcher)

        made = list(HostLines(writer, spelled, str, guarded=False).steps(plan.steps, "    "))
        scratch = list(_scratch(plan, writer))
        words = set(re.findall(r"\w+", "\n".join([*made, *scratch, *_countable(plan, writer)])))
        yield from declarations(plan.codelet, writer, words)
        yield from _countable(plan, writer)
        yield from scratch
        yield from made
        yield ""

    def _launch(self, plan: FinishedPlan, kernel: Kernel, blocks: Sequence[str], writer: CWriter, launcher: str) -> str:
        kinds = {s: scalar_type(plan, s) for s in kernel.scalars}
        passed = [
            writer.name(s) if kind == promoted_type(plan.dtype(s)) else f"({writer.types[kind]}){writer.name(s)}"
            for s, kind in kinds.items()
        ]
        where = blocks if not kernel.steps else (str(kernel.blocks_per_sm),)
        return f"{launcher}({', '.join([RUN, *where, *map(writer.name, kernel.arrays), *passed])});"

    def _launcher(self, plan: FinishedPlan, kernel: Kernel, writer: CWriter, number: int, beside: bool) -> str:
        """Return the name of the function that launches a kernel, ``beside`` the one before it if it may.

        The runtime launches nothing for a grid without blocks.
        """
        kinds = {s: scalar_type(plan, s) for s in kernel.scalars}
        together = bool(kernel.steps)
        where = ["int each"] if together else [f"long long {d}" for d in "xyz"]
        names = [*map(writer.name, kernel.arrays), *map(writer.name, kinds)]
        declared = [f"looptune_address {writer.name(a)}" for a in kernel.arrays]
        declared += [f"{writer.types[kind]} {writer.name(s)}" for s, kind in kinds.items()]
        self.parameters[number] = ["looptune_address"] * len(kernel.arrays) + [writer.types[k] for k in kinds.values()]
        head = [f"struct looptune_run *{RUN}", *where, *declared]
        kernel_ = f"&{self._name(number)}"
        call = (
            f"looptune_launch_together({RUN}, {kernel_}, each, values);"
            if together
            else f"looptune_launch{'_beside' if beside else ''}({RUN}, {kernel_}, x, y, z, values);"
        )
        values = ", ".join(f"&{n}" for n in names) if names else "0"
        body = f"{{\n    void *values[] = {{{values}}};\n    {call}\n}}\n"
        key = (number, list_lines("(", head) + body)
        name = f"launch_{len(self.launchers)}"
        if key not in self.launchers:
            self.launchers[key] = f"{list_lines(f'static void {name}(', head)}\n{body}"
        found = re.search(r"launch_\d+", self.launchers[key])
        assert found is not None, "it is the name of the function"
        return found[0]


def declarations(codelet: Codelet, writer: CWriter, words: set[str]) -> Iterator[str]:
    """Yield the declarations of the parameters that ``words`` name, which a plan takes from its arguments."""
    scalars = [p for p in codelet.params if isinstance(p, Scalar) and writer.name(p.name) in words]
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    named = [(k, p) for k, p in enumerate(arrays) if writer.name(p.name) in words]
    if scalars:
        yield f"    const struct arguments *{GIVEN} = (const struct arguments *){ARGUMENTS};"
    else:
        yield f"    (void){ARGUMENTS};"
    if not named:
        yield f"    (void){ADDRESSES};"
    for p in scalars:
        kind, name = writer.types[promoted_type(p.dtype)], writer.name(p.name)
        yield f"    const {kind} {name} = {GIVEN}->{name};"
    for k, array in named:
        yield f"    const looptune_address {writer.name(array.name)} = {ADDRESSES}[{k}];"


def _countable(plan: FinishedPlan, writer: CWriter) -> Iterator[str]:
    """Yield the conditions on numbers of elements, where subscripts of 32 bits may not address them all."""
    arrays, own = uncounted_arrays(plan), {v.name for v in plan.device_locals}
    counts = [
        f"(unsigned long long)({' * '.join(writer.wide(n, 10) for n in a.shape if n is not None)})"
        for a in arrays
        if a.name in own
    ]
    for count in counts or ["0"] * bool(arrays):
        yield f"    if (!looptune_countable({RUN}, {count})) return LOOPTUNE_REFUSED;"


def _scratch(plan: Plan, writer: CWriter) -> Iterator[str]:
    """Yield the declarations of the plan's own memory on the device."""
    for local in plan.device_locals:
        count = " * ".join(writer.wide(e, 10) for e in local.shape) if local.shape else "1"
        bytes_ = f"sizeof({writer.types[local.dtype]}) * (unsigned long long)({count})"
        zeroed = int(local.name == ARRIVED)
        yield f"    const looptune_address {writer.name(local.name)} = looptune_scratch({RUN}, {bytes_}, {zeroed});"
