"""An explanation as one JSON object; docs/check.md lists the fields, which are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from looptune.core.source import Span
    from looptune.poly.carried_dependence import Reason
    from looptune.poly.out_of_bounds import OutOfBounds
    from looptune.report.check.explanation import CheckedDirective, ExecutionOutline, Explanation
    from looptune.report.check.loop_facts import LoopFacts
    from looptune.schedule.legal_space import LegalSpace

Json = dict[str, Any]


def record(e: Explanation) -> Json:
    """Return the explanation as a JSON object."""
    return {
        "codelet": e.codelet,
        "file": e.path,
        "sizes": dict(e.sizes),
        "strict_float": not e.reassociate,
        "refused": e.refused,
        "loops": loop_records(e.loops),
        "directives": [directive_record(d) for d in e.directives],
        "races": [{"pragma": r.title, **_at(r.span), "message": r.what} for r in e.races],
        "vectorised_sums": [{"op": s.op, "variable": s.variable, **_at(s.span)} for s in e.vectors],
        "runs": _runs(e.runs),
        "permitted": None if e.permitted is None else _permitted(e.permitted),
        "assumes": list(e.assumes),
        "leaves": [_leaves(x) for x in e.out_of_bounds],
    }


def loop_records(loops: Sequence[LoopFacts]) -> list[Json]:
    """Return the loops as JSON objects."""
    return [_loop(f) for f in loops]


def _leaves(x: OutOfBounds) -> Json:
    return {
        "access": x.access,
        "array": x.declared,
        **_at(x.span),
        "iteration": dict(x.at),
        "sizes": dict(x.sizes),
    }


def _at(span: Span) -> Json:
    return {"file": span.file, "line": span.line, "column": span.col}


def _loop(f: LoopFacts) -> Json:
    unknown = None if f.unknown is None else {"what": f.unknown.what, **_at(f.unknown.span)}
    return {
        "number": f.number,
        "variable": None if f.var == "while" else f.var,
        "depth": f.depth,
        **_at(f.span),
        "verdict": f.kind,
        "default": "parallel" if f.kind == "parallel" and not f.shared else "sequential",
        "reductions": [{"op": r.op, "variable": r.variable} for r in f.reductions],
        "private": list(f.private),
        "shared": list(f.shared),
        "dependence": None if f.reason is None else _dependence(f.reason),
        "unknown": unknown,
        "division": [] if f.division is None else list(f.division.lines),
    }


def _dependence(r: Reason) -> Json:
    d = r.dependence
    ends = (("first", d.source_iteration, d.source_text, d.source, d.kind != "anti"),
            ("then", d.sink_iteration, d.sink_text, d.sink, d.kind != "flow"))  # fmt: skip
    return {
        "array": d.array,
        "kind": d.kind,
        "value_flows": r.value,
        "element": None if d.element is None else list(d.element),
        "sizes": dict(d.sizes),
        "condition": None if d.because is None else d.because.what.removeprefix("condition "),
        **{
            name: {"iteration": dict(at), "access": text, "writes": writes, **_at(span)}
            for name, at, text, span, writes in ends
        },
        "arrays": list(r.arrays),
    }


def directive_record(d: CheckedDirective) -> Json:
    """Return a directive as a JSON object."""
    return {
        "directive": d.text,
        "loop": d.number,
        "piece": d.piece if d.piece else None,
        "variable": None if d.loop == "while" else d.loop,
        **_at(d.span),
        "verdict": d.judgement,
        "reorders": [{"op": s.op, "variable": s.variable, **_at(s.span)} for s in d.sums],
        "message": None if d.refusal is None else d.refusal.message,
        "notes": [] if d.refusal is None else list(d.refusal.notes),
        "suggestions": [{"text": s.text, "lines": list(s.lines)} for s in d.suggestions],
    }


def _runs(r: ExecutionOutline) -> Json:
    return {
        "launches": r.launches,
        "kernels": [
            {
                "name": k.name,
                "axes": [a.var for a in k.grid],
                "team": [] if k.team is None else [f.var for f in k.team.shared],
                "extents": None if extents is None else list(extents),
                "parts": None if k.over_parts is None else k.over_parts.var,
                "block": list(k.block),
                "host_loops": list(around),
            }
            for k, extents, around in zip(r.plan.kernels, r.extents, r.around, strict=True)
        ],
    }


def _permitted(p: LegalSpace) -> Json:
    return {
        "parallel": list(p.parallel),
        "permutations": [
            {
                "line": o.line,
                "loop": o.number,
                "order": list(o.order),
                "outermost_parallel": o.outermost,
                "innermost_parallel": o.innermost,
                "as_written": o.is_source_order,
            }
            for o in p.permutations
        ],
        "tilings": [{"line": t.line, "loop": t.number, "loops": list(t.loops)} for t in p.tilings],
    }
