"""A tuned function of JAX arrays: a call through XLA's foreign function interface.

    arguments ─▶ sizes from shapes, checks ─▶ jax.ffi.ffi_call ─▶ the handler, compiled when first needed ─▶ results

JAX's arrays do not change: the arrays that the C function writes are results, in memory that XLA takes from the operand
where nothing else needs it, or into which it copies the operand. A call can be traced: what it needs of an argument are
its shape and its type.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import math
import os
import platform
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jaxlib
import numpy as np
from jax import numpy as jnp

from looptune.core.cache_file import publish_file, read_published
from looptune.core.short_floats import SHORT_EPS
from looptune.deploy.runtime.arguments import Parameter, Shape, check_array, integer, number
from looptune.deploy.runtime.module_folder import module_folder
from looptune.runtime.array_reach import Reach, array_reaches, too_short_message
from looptune.runtime.c_compiler import compile_error, compiler_command, half_flags, symbolic_flags
from looptune.runtime.cpu_name import cpu_name

HANDLER = "looptune_xla_handler"
"""The name of the handler in its library."""
OPENMP = "-fopenmp"
LOCK = threading.Lock()
"""A handler is registered once, whichever thread asks first."""
SIZES = 1024
"""Sizes whose shapes and accesses are remembered."""
WIDE = ("int64", "uint64", "float64")
"""Types that JAX has only where the user has enabled them."""


class JaxKernel(NamedTuple):
    """What a module knows about its function.

    ``extents``: for each integer that shapes give, an array, its number of dimensions, and the dimension whose extent
    it is; ``shapes``: a function from the integers to the shapes of the arrays; ``accesses``: the elements that the
    loops access, see ``array_reach``. ``platform``: "cpu" or "CUDA"; ``sources``: C files by name; ``options``: those
    of the compiler.
    """

    name: str
    params: tuple[Parameter, ...]
    extents: Mapping[str, tuple[str, int, int]]
    shapes: Callable[..., tuple[Shape, ...]]
    accesses: Sequence[Any]
    platform: str
    sources: Callable[[], Mapping[str, str]]
    options: tuple[str, ...]


class JaxFunction:
    """A tuned function; a call takes the arguments by name, without the integers that shapes give."""

    def __init__(self, kernel: JaxKernel) -> None:
        self.kernel = kernel
        self.arrays = tuple(p for p in kernel.params if p.array)
        self.integers = tuple(p for p in kernel.params if not p.array and "float" not in p.dtype)
        self.numbers = tuple(p for p in kernel.params if not p.array and "float" in p.dtype)
        self.sized = functools.lru_cache(SIZES)(self._sized)

    def __call__(self, /, **given: Any) -> Any:
        """Return the arrays that are written, one array alone where there is one.

        TypeError and ValueError name the parameter that does not fit.
        """
        self._check_types(given)
        values = self._values(given)
        self._check_shapes(given, values)
        operands = [jnp.asarray(given[p.name]) for p in self.arrays]
        kept = [self._number(p, given[p.name]) for p in self.numbers]
        operands += [operand for _, operand in kept if operand is not None]
        written = [k for k, p in enumerate(self.arrays) if p.written]
        call = jax.ffi.ffi_call(
            self.target(),
            tuple(jax.ShapeDtypeStruct(operands[k].shape, operands[k].dtype) for k in written),
            input_output_aliases={k: n for n, k in enumerate(written)},
            vmap_method="sequential",
        )
        results = call(
            *operands,
            integers=np.array([0, *(_signed(n) for n in values)], np.int64),
            numbers=np.array([0.0, *(value for value, _ in kept)], np.float64),
            operands=np.array([0, *(operand is not None for _, operand in kept)], np.int64),
        )
        return results[0] if len(results) == 1 else tuple(results)

    def _check_types(self, given: Mapping[str, Any]) -> None:
        """Check that each array is one. Raises TypeError, also for types that JAX has only where they are enabled."""
        for p in self.arrays:
            if not hasattr(given[p.name], "shape") or not hasattr(given[p.name], "dtype"):
                raise TypeError(f"{p.name} must be an array of {p.dtype}, got {type(given[p.name]).__name__}")
            if p.dtype in WIDE and not jax.config.jax_enable_x64:
                raise TypeError(f"{p.name} must be an array of {p.dtype}, which JAX has only after "
                                'jax.config.update("jax_enable_x64", True)')  # fmt: skip

    def _values(self, given: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the integers, from the shapes where these give them."""
        found = []
        for p in self.integers:
            if p.name in self.kernel.extents:
                name, dimensions, which = self.kernel.extents[p.name]
                shape = given[name].shape
                if len(shape) != dimensions:
                    many = f"{dimensions} dimension{'s' if dimensions > 1 else ''}"
                    needed = f"{name} must have {many}, of which {p.name} is one"
                    raise ValueError(f"{needed}, got the shape {list(shape)}")
                found.append(integer(p, shape[which]))
            elif isinstance(given[p.name], jax.core.Tracer):
                raise TypeError(f"{p.name} decides what runs, and is an integer of Python: under jax.jit name it in "
                                f'static_argnames=("{p.name}",)')  # fmt: skip
            else:
                value = given[p.name]
                found.append(integer(p, value.item() if getattr(value, "shape", None) == () else value))
        return tuple(found)

    def _check_shapes(self, given: Mapping[str, Any], values: tuple[int, ...]) -> None:
        """Check the types and the shapes of the arrays, and that the loops stay inside them."""
        shapes, reach = self.sized(values)
        for p, shape in zip(self.arrays, shapes, strict=True):
            array = given[p.name]
            check_array(p, str(array.dtype), tuple(array.shape), shape)
            wrong = too_short_message(p.name, math.prod(array.shape), reach.get(p.name))
            if wrong is not None:
                raise ValueError(wrong)

    def _sized(self, values: tuple[int, ...]) -> tuple[tuple[Shape, ...], dict[str, Reach]]:
        """Return the shapes of the arrays at these sizes, and the elements that the loops access."""
        shapes = self.kernel.shapes(*values)
        for p, shape in zip(self.arrays, shapes, strict=True):
            if any(n is not None and n < 0 for n in shape):
                raise ValueError(f"{p.name} cannot have the shape {list(shape)}: no extent is negative")
        names = [p.name for p in self.integers]
        return shapes, array_reaches(self.kernel.accesses, dict(zip(names, values, strict=True)))

    def _number(self, p: Parameter, given: Any) -> tuple[float, Any]:
        """Return a number, and the operand that holds it, None where it is an attribute.

        What is traced is an operand. On a CPU everything is one, so that another value compiles nothing; a handler on a
        GPU has to wait for an operand, and numbers of Python are attributes there.
        """
        shape = getattr(given, "shape", ())
        if shape != ():
            raise TypeError(f"{p.name} is a number ({p.dtype}), got an array of the shape {list(shape)}")
        wide = p.dtype == "float64" and bool(jax.config.jax_enable_x64)
        if isinstance(given, jax.Array):
            if not jnp.issubdtype(given.dtype, jnp.number) or jnp.issubdtype(given.dtype, jnp.complexfloating):
                raise TypeError(f"{p.name} is a number ({p.dtype}), got {given.dtype}")
            if p.dtype == "float64" and not wide:
                raise TypeError(
                    f"{p.name} is a number (float64), and JAX has rounded it to {given.dtype}: give it as one of "
                    'Python which jax.jit does not trace, or jax.config.update("jax_enable_x64", True)'
                )
            rounded = given.astype(p.dtype) if p.dtype in SHORT_EPS else given
            return 0.0, rounded.astype(jnp.float64 if wide else jnp.float32)
        value = number(p, given)
        if self.kernel.platform != "cpu" or (p.dtype == "float64" and not wide):
            return value, None
        return 0.0, jnp.asarray(value, jnp.float64 if wide else jnp.float32)

    def target(self) -> str:
        """Return the name of the handler, which is compiled and registered when it is first asked for."""
        return _registered(self.kernel.name, self.kernel.platform, self.kernel.sources, self.kernel.options)


@functools.cache
def _registered(name: str, where: str, sources: Callable[[], Mapping[str, str]], options: tuple[str, ...]) -> str:
    """Return the name of the handler that is made of these sources, which the process registers once."""
    files = dict(sources())
    facts = (jaxlib.__version__, os.environ.get("CC", ""), cpu_name(), platform.machine(), where, options, files)
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:32]
    target = f"looptune_{name}_{digest}"
    # A module may be imported twice, and XLA refuses another handler of the same name.
    known: set[str] = vars(jax.ffi).setdefault("looptune_targets", set())
    with LOCK:
        if target not in known:
            code = _library(name, digest, files, options)
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(_loaded(code)[HANDLER]), platform=where)
            known.add(target)
    return target


def _library(name: str, digest: str, files: Mapping[str, str], options: Sequence[str]) -> bytes:
    """Return the library of a handler, from a file if it was compiled before."""
    path = module_folder() / f"{name}-{digest}.so"
    kept = read_published(path)
    if kept is not None:
        return kept
    try:
        code = _compiled(name, files, options)
    except RuntimeError:
        alone = tuple(option for option in options if option != OPENMP)
        if alone == tuple(options) or not compiler_command():
            raise
        code = _compiled(name, files, alone)
        warnings.warn(f"{name} runs on one core: {compiler_command()[0]} has no OpenMP", stacklevel=6)
        return code  # which is not kept: OpenMP may be installed
    # Where the folder cannot be written, it is compiled in every process.
    with contextlib.suppress(OSError):
        publish_file(path, code)
    return code


def _compiled(name: str, files: Mapping[str, str], options: Sequence[str]) -> bytes:
    """Return the library of a handler. Raises RuntimeError where it cannot be compiled."""
    if not compiler_command():
        raise RuntimeError(
            f"{name} is compiled when it is first called, and there is no C compiler: install gcc, or set CC"
        )
    halves = half_flags(*files.values())
    if halves is None:
        raise RuntimeError(
            f"{name} computes floats of 16 bits in float, and {compiler_command()[0]} rounds every operation on them: "
            "gcc from version 12 and clang from version 16 do not"
        )
    with tempfile.TemporaryDirectory(prefix="looptune-jax-") as folder:
        for file, text in files.items():
            (Path(folder) / file).write_text(text)
        texts = [str(Path(folder) / file) for file in files if file.endswith(".c")]
        library = Path(folder) / "handler.so"
        # A codelet in main has its name.
        flags = ["-std=gnu17", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-Dmain=looptune_main"]
        flags += [*symbolic_flags(), *halves, *options]
        flags += ["-I", jax.ffi.include_dir(), "-o", str(library)]
        wrong = compile_error([*flags, *texts, "-ldl", "-lpthread", "-lm"])
        if wrong is not None:
            raise RuntimeError(f"{name} cannot be compiled: {wrong}")
        return library.read_bytes()


def _loaded(code: bytes) -> ctypes.CDLL:
    """Return a library whose bytes are these, loaded from a file that is then removed."""
    with tempfile.NamedTemporaryFile(prefix="looptune-jax-", suffix=".so") as file:
        file.write(code)
        file.flush()
        return ctypes.CDLL(file.name)


def _signed(value: int) -> int:
    """Return the integer of 64 bits with a sign that has the bits of this one."""
    return value - 2**64 if value >= 2**63 else value
