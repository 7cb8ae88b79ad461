"""Let the host make the launches of persistent loops if the blocks of a grid cannot wait for each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.lower.plan import ARRIVED, HostIf, HostLoop, HostWhile, Launch, Plan, Step

if TYPE_CHECKING:
    from looptune.lower.machine import Machine


def split_persistent_launches(plan: Plan, machine: Machine) -> Plan:
    """Return the plan in which the host makes every launch."""

    def made(step: Step) -> Step:
        match step:
            case Launch(kernel) if kernel.time_tile is not None:
                return Launch(replace(kernel, time_tile=replace(kernel.time_tile, resident=False)))
            case HostLoop(body=body):
                return replace(step, body=tuple(map(made, body)), blocks_per_sm=0)
            case HostWhile(body=body):
                return replace(step, body=tuple(map(made, body)))
            case HostIf(_, then, other):
                return replace(step, then=tuple(map(made, then)), other=tuple(map(made, other)))
        return step

    steps = tuple(map(made, plan.steps))
    return replace(plan, steps=steps, device_locals=tuple(v for v in plan.device_locals if v.name != ARRIVED))
