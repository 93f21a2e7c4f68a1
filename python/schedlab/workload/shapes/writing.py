# SPDX-License-Identifier: MIT
"""Writes a shape as the text of a file that users can edit."""

from __future__ import annotations

import json
from collections.abc import Sequence

from schedlab.workload.model import cpu_list
from schedlab.workload.shapes.model import HIGHEST_LEVEL, MIGRATION_LEVELS, Model, Shape
from schedlab.workload.shapes.reading import FORMAT

_THOUSAND = 1000


def format_shape_file(shape: Shape) -> str:
    """Returns the file of this shape, without parts that have their default."""
    members: dict[str, object] = {"format": FORMAT, "description": shape.description}
    members["cpus"] = shape.cpus
    if shape.core != tuple(range(shape.cpus)):
        members["cores"] = _format_sets(shape.core)
    if shape.cache != shape.node:
        members["caches"] = _format_sets(shape.cache)
    if len(shape.distances) > 1:
        members["nodes"] = _format_sets(shape.node)
        members["distances"] = [list(row) for row in shape.distances]
    if len(shape.kinds) > 1 or len(shape.kinds[0]) > 1:
        members["kinds"] = _kind_members(shape)
    if shape.model != Model():
        members["model"] = _model_members(shape.model)
    lines = [f"    {json.dumps(key)}: {_format_value(value)}" for key, value in members.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _format_value(value: object) -> str:
    """Formats a value; arrays of arrays or objects have one line per element."""
    if isinstance(value, list) and value and not isinstance(value[0], str):
        inner = ",\n".join(f"        {json.dumps(item)}" for item in value)
        return f"[\n{inner}\n    ]"
    return json.dumps(value, ensure_ascii=False)


def _format_sets(numbers: Sequence[int]) -> int | list[str]:
    width = numbers.count(0)
    if list(numbers) == [cpu // width for cpu in range(len(numbers))]:
        return width
    return [
        format_cpu_list([cpu for cpu, number in enumerate(numbers) if number == set_number])
        for set_number in range(max(numbers) + 1)
    ]


def format_cpu_list(cpus: Sequence[int]) -> str:
    """Returns a non-empty list of CPUs in Linux's notation: `0-3,8`."""
    return cpu_list(sum(1 << cpu for cpu in cpus))


def _kind_members(shape: Shape) -> list[dict[str, object]]:
    return [
        {
            "cpus": format_cpu_list(
                [cpu for cpu, kind_of_cpu in enumerate(shape.kind) if kind_of_cpu == kind]
            ),
            "capacity": levels[0],
            **({"levels": list(levels)} if len(levels) > 1 else {}),
        }
        for kind, levels in enumerate(shape.kinds)
    ]


def _model_members(model: Model) -> dict[str, object]:
    parts = [part / _THOUSAND for part in model.busy_siblings]
    model_values: dict[str, object] = {}
    if parts:
        model_values["busy_siblings"] = parts[0] if len(parts) == 1 else parts
    if any(model.cold_ns):
        model_values["cold"] = {
            name: f"{time}ns"
            for name, time in zip(MIGRATION_LEVELS, model.cold_ns, strict=True)
            if time
        }
    if model.levels != HIGHEST_LEVEL:
        model_values["levels"] = model.levels
    return model_values
