"""A module's function as an operator of torch: ``looptune build --torch``.

    gemm_op(ni, nj, nk, alpha, beta, C, A, B)        torch.ops.looptune.gemm, too

The operator says which tensors it changes, and has a fake kernel, so that ``torch.compile`` traces programs around it
without running it. On a GPU it works on torch's current stream, so that it can be captured in a CUDA graph after a
first call. It has no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from looptune.backends.codegen.python import ident
from looptune.ir.nodes import Array
from looptune.ir.simplify import is_integer

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet

NAMESPACE = "looptune"


def schema(codelet: Codelet, names: Sequence[str]) -> str:
    """Return the operator's schema, in which ``names`` are the parameters and ``(a0!)`` marks what is changed."""
    parts, changed = [], 0
    for p, name in zip(codelet.params, names, strict=True):
        if not isinstance(p, Array):
            parts.append(f"{'SymInt' if is_integer(p.dtype) else 'float'} {name}")
        elif p.io == "in":
            parts.append(f"Tensor {name}")
        else:
            parts.append(f"Tensor(a{changed}!) {name}")
            changed += 1
    return f"({', '.join(parts)}) -> ()"


def text(codelet: Codelet, name: str, names: Sequence[str], *, gpu: bool) -> str:
    """Return the part of a module that registers its function ``name`` with the parameters ``names``."""
    names = [f"{n}_" if n in (name, "CURRENT_STREAM") else n for n in names]  # which the text below calls
    written = [n for p, n in zip(codelet.params, names, strict=True) if isinstance(p, Array) and p.io != "in"]
    quoted = ", ".join(f'"{n}"' for n in written)
    mutates = f"({quoted},)" if written else "()"
    given = ", ".join(names)
    stream = ", stream=CURRENT_STREAM()" if gpu else ""
    operator = f"{name}_op"
    streams = "CURRENT_STREAM = torch.cuda.current_stream\n\n\n" if gpu else ""
    return f'''{streams}def _run({given}):
    {name}({given}{stream})


{operator} = torch.library.custom_op(
    "{NAMESPACE}::{ident(codelet.name)}", _run, mutates_args={mutates},
    schema="{schema(codelet, names)}",
)
"""The function as an operator of torch; tensors that it changes: {", ".join(written) if written else "none"}."""


@{operator}.register_fake
def _fake({given}):
    """Nothing is returned, and no shape depends on what runs."""
'''
