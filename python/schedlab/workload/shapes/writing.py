# SPDX-License-Identifier: MIT
"""Writes a shape as the text of a file that users can edit."""

from __future__ import annotations

import json
from collections.abc import Sequence

from schedlab.workload.shapes.model import COLD, HIGHEST, Model, Shape
from schedlab.workload.shapes.reading import FORMAT

_THOUSAND = 1000


def file_text(shape: Shape) -> str:
    """Returns the file of this shape, without parts that have their default."""
    members: dict[str, object] = {"format": FORMAT, "description": shape.description}
    members["cpus"] = shape.cpus
    if shape.core != tuple(range(shape.cpus)):
        members["cores"] = _sets(shape.core)
    if shape.cache != shape.node:
        members["caches"] = _sets(shape.cache)
    if len(shape.distances) > 1:
        members["nodes"] = _sets(shape.node)
        members["distances"] = [list(row) for row in shape.distances]
    if len(shape.kinds) > 1 or len(shape.kinds[0]) > 1:
        members["kinds"] = _kinds(shape)
    if shape.model != Model():
        members["model"] = _model(shape.model)
    lines = [f"    {json.dumps(key)}: {_value(value)}" for key, value in members.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: object) -> str:
    """Formats a value; arrays of arrays or objects have one line per element."""
    if isinstance(value, list) and value and not isinstance(value[0], str):
        inner = ",\n".join(f"        {json.dumps(item)}" for item in value)
        return f"[\n{inner}\n    ]"
    return json.dumps(value, ensure_ascii=False)


def _sets(numbers: Sequence[int]) -> int | list[str]:
    width = numbers.count(0)
    if list(numbers) == [cpu // width for cpu in range(len(numbers))]:
        return width
    return [
        cpu_list([cpu for cpu, number in enumerate(numbers) if number == set_number])
        for set_number in range(max(numbers) + 1)
    ]


def cpu_list(cpus: Sequence[int]) -> str:
    """Returns a non-empty list of CPUs in Linux's notation: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)


def _kinds(shape: Shape) -> list[dict[str, object]]:
    return [
        {
            "cpus": cpu_list(
                [cpu for cpu, kind_of_cpu in enumerate(shape.kind) if kind_of_cpu == kind]
            ),
            "capacity": levels[0],
            **({"levels": list(levels)} if len(levels) > 1 else {}),
        }
        for kind, levels in enumerate(shape.kinds)
    ]


def _model(model: Model) -> dict[str, object]:
    parts = [part / _THOUSAND for part in model.busy_siblings]
    model_values: dict[str, object] = {}
    if parts:
        model_values["busy_siblings"] = parts[0] if len(parts) == 1 else parts
    if any(model.cold_ns):
        model_values["cold"] = {
            name: f"{time}ns" for name, time in zip(COLD, model.cold_ns, strict=True) if time
        }
    if model.levels != HIGHEST:
        model_values["levels"] = model.levels
    return model_values
