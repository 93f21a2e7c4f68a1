# SPDX-License-Identifier: MIT
"""Reads and validates shape files: `my.json`, or a file in `shapes/` by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused, WrongUsage, format_parameter
from schedlab.paths import ROOT
from schedlab.workload.shapes.model import (
    CAPACITY_FULL,
    COLD_MAX_NS,
    CPUS_MAX,
    DISTANCE_LOCAL,
    DISTANCE_MAX,
    HIGHEST_LEVEL,
    KINDS_MAX,
    LEVEL_BY_DEMAND,
    LEVELS_MAX,
    MIGRATION_LEVELS,
    NODES_MAX,
    THREADS_MAX,
    Model,
    Shape,
    number_groups,
)
from schedlab.workload.values import (
    Fields,
    is_number,
    read_any_text,
    read_integer,
    read_time,
    value_error,
)

FORMAT = 1
SUFFIX = ".json"
SHAPES_FOLDER = ROOT / "shapes"
_KEYS = (
    *("format", "description", "cpus", "cores", "caches", "nodes", "distances"),
    *("kinds", "model"),
)
_KIND_KEYS = ("name", "cpus", "capacity", "levels")
_MODEL_KEYS = ("busy_siblings", "cold", "levels")
_CPU_LIST = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_SETS_EXPECTED = (
    'how many CPUs are in each, one after the other, or an array of their CPUs: ["0,4", "1,5"]'
)
_THOUSAND = 1000


def builtin_shapes() -> dict[str, Path]:
    """Returns the predefined shapes by name."""
    return {path.stem: path for path in sorted(SHAPES_FOLDER.glob(f"*{SUFFIX}"))}


def find_shape(text: str, folder: Path = Path()) -> Shape:
    """Returns the shape in a file (relative to `folder`), or the built-in shape of this name.

    Raises WrongUsage if it is invalid.
    """
    path = folder / text if text.endswith(SUFFIX) else builtin_shapes().get(text)
    if path is None:
        raise WrongUsage(
            "unknown shape",
            what=format_parameter("shape", text),
            fix=f"name a file that ends in {SUFFIX}, or one of {', '.join(builtin_shapes())}",
        )
    return read_shape(path)


def read_shape(path: Path) -> Shape:
    """Reads a shape file. Raises WrongUsage with the line of an error."""
    try:
        source = read_text(path)
    except FileRefused as error:
        raise WrongUsage(f"shape {error}") from None
    return parse_shape_text(source, path)


def parse_shape_text(source: str, path: Path) -> Shape:
    """Returns the shape in a file's text, like `read_shape`; `path` is the file's name in errors."""
    try:
        shape = parse_shape_node(parse(source))
    except JsonError as error:
        raise WrongUsage(f"{path}:{error.line}: {error}") from None
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    name = path.stem if path.parent == SHAPES_FOLDER else f"{path.name} ({digest})"
    return replace(shape, name=name, source=source)


def parse_shape_node(node: Node) -> Shape:
    """Returns the shape of a JSON node. Raises JsonError."""
    fields = Fields(node, "an object: the shape of a machine", _KEYS, ("format", "cpus"))
    if fields["format"].value != FORMAT:
        raise value_error(fields["format"], f"{FORMAT}, the only format")
    cpus = read_integer(fields["cpus"], 1, CPUS_MAX)
    sets = partial(_read_sets, cpus=cpus)
    nodes = fields.read("nodes", sets, (0,) * cpus)
    caches = fields.read("caches", sets, nodes)
    cores = fields.read("cores", sets, tuple(range(cpus)))
    kind, kinds = _read_kinds(fields["kinds"], cpus) if "kinds" in fields else ((0,) * cpus, None)
    if max(nodes) >= NODES_MAX:
        raise value_error(fields["nodes"], f"at most {NODES_MAX} nodes")
    _check_within(fields.get("caches", node), caches, nodes, "cache", "in one node")
    _check_within(fields.get("cores", node), cores, caches, "core", "in one cache")
    _check_within(fields.get("kinds", node), cores, kind, "core", "of one kind")
    if any(cores.count(core) > THREADS_MAX for core in set(cores)):
        raise value_error(fields["cores"], f"at most {THREADS_MAX} CPUs in a core")
    shape = Shape(
        cores, caches, nodes, kind, description=fields.read("description", read_any_text, "")
    )
    if kinds:
        shape = replace(shape, kinds=kinds)
    if "distances" in fields:
        shape = replace(shape, distances=_read_distances(fields["distances"], max(nodes) + 1))
    elif max(nodes) > 0:
        raise value_error(node, "the key distances in it, because it has several nodes")
    return replace(shape, model=_read_model(fields["model"])) if "model" in fields else shape


# --- sets of CPUs


def _read_cpu_list(node: Node, cpus: int) -> list[int]:
    """Returns the CPUs of a list in Linux's notation."""
    expected = f'CPUs from 0 to {cpus - 1}, such as "0-3,8"'
    if not isinstance(node.value, str) or not _CPU_LIST.fullmatch(node.value):
        raise value_error(node, expected)
    cpu_numbers: list[int] = []
    for part in node.value.split(","):
        first, _, last = part.partition("-")
        if not int(first) <= int(last or first) < cpus:
            raise value_error(node, expected)
        cpu_numbers += range(int(first), int(last or first) + 1)
    return cpu_numbers


def _read_sets(node: Node, cpus: int) -> tuple[int, ...]:
    """Returns, for each CPU, the number of the set that contains it."""
    if isinstance(node.value, tuple):
        return number_groups(
            _sets_by_cpu([(name, _read_cpu_list(name, cpus)) for name in node.value], cpus, node)
        )
    width = read_integer(node, 1, cpus, _SETS_EXPECTED)
    return tuple(cpu // width for cpu in range(cpus))


def _sets_by_cpu(sets: Sequence[tuple[Node, list[int]]], cpus: int, node: Node) -> list[int]:
    """Returns, for each CPU, the number of its set; raises JsonError unless each CPU is in exactly one."""
    set_of_cpu: dict[int, int] = {}
    for index, (name, members) in enumerate(sets):
        for cpu in members:
            if cpu in set_of_cpu:
                raise JsonError(
                    name.line,
                    f"{name.path}: CPU {cpu}: is in two parts of {node.path}; name it once",
                )
            set_of_cpu[cpu] = index
    missing = next((cpu for cpu in range(cpus) if cpu not in set_of_cpu), None)
    if missing is not None:
        raise JsonError(node.line, f"{node.path}: CPU {missing} is missing: expected all {cpus}")
    return [set_of_cpu[cpu] for cpu in range(cpus)]


def _check_within(
    node: Node, inner: Sequence[int], outer: Sequence[int], inner_name: str, outer_name: str
) -> None:
    outer_of_inner: dict[int, int] = {}
    for cpu, (inner_set, outer_set) in enumerate(zip(inner, outer, strict=True)):
        if outer_of_inner.setdefault(inner_set, outer_set) != outer_set:
            raise JsonError(
                node.line,
                f"{node.path or 'the shape'}: CPU {cpu}: not {outer_name} with the other CPUs"
                f" of its {inner_name}; move it there",
            )


# --- speeds and distances


def _read_kinds(node: Node, cpus: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    if not isinstance(node.value, tuple) or not 1 <= len(node.value) <= KINDS_MAX:
        raise value_error(node, f"an array of 1 to {KINDS_MAX} kinds of CPUs")
    sets, levels = [], []
    for kind_node in node.value:
        fields = Fields(kind_node, "an object: a kind of CPUs", _KIND_KEYS, ("cpus", "capacity"))
        fields.read("name", read_any_text, "")
        sets.append((fields["cpus"], _read_cpu_list(fields["cpus"], cpus)))
        levels.append(_read_levels(fields))
    if max(max(level) for level in levels) != CAPACITY_FULL:
        raise JsonError(
            node.line,
            f"{node.path}: the fastest kind has another capacity than {CAPACITY_FULL}; multiply the"
            " capacities of all kinds by the same factor",
        )
    return tuple(_sets_by_cpu(sets, cpus, node)), tuple(levels)


def _read_levels(fields: dict[str, Node]) -> tuple[int, ...]:
    capacity = read_integer(fields["capacity"], 1, CAPACITY_FULL)
    node = fields.get("levels")
    if node is None:
        return (capacity,)
    expected = f"1 to {LEVELS_MAX} different capacities, of which {capacity} is the highest"
    if not isinstance(node.value, tuple) or not 1 <= len(node.value) <= LEVELS_MAX:
        raise value_error(node, f"an array of {expected}")
    levels = sorted(
        (read_integer(level_node, 1, capacity) for level_node in node.value), reverse=True
    )
    if levels[0] != capacity or len(set(levels)) < len(levels):
        raise value_error(node, expected)
    return tuple(levels)


def _read_distances(node: Node, nodes: int) -> tuple[tuple[int, ...], ...]:
    rows = node.value
    expected = f"{nodes} arrays of {nodes} distances: {DISTANCE_LOCAL} from a node to itself"
    if not isinstance(rows, tuple) or len(rows) != nodes:
        raise value_error(node, expected)
    return tuple(_read_distance_row(row, index, nodes, expected) for index, row in enumerate(rows))


def _read_distance_row(node: Node, index: int, nodes: int, expected: str) -> tuple[int, ...]:
    if not isinstance(node.value, tuple) or len(node.value) != nodes:
        raise value_error(node, expected)
    row = tuple(
        read_integer(distance_node, DISTANCE_LOCAL, DISTANCE_MAX) for distance_node in node.value
    )
    if row[index] != DISTANCE_LOCAL:
        raise value_error(node.value[index], f"{DISTANCE_LOCAL}, the distance of a node to itself")
    return row


# --- the simulator's model


def _read_model(node: Node) -> Model:
    """Reads what only the simulator models: busy siblings, cold caches and levels."""
    fields = Fields(node, "an object: parameters of the simulator", _MODEL_KEYS)
    levels = fields["levels"].value if "levels" in fields else HIGHEST_LEVEL
    if levels not in (HIGHEST_LEVEL, LEVEL_BY_DEMAND):
        raise value_error(fields["levels"], f"{HIGHEST_LEVEL} or {LEVEL_BY_DEMAND}")
    return Model(
        fields.read("busy_siblings", _read_busy_siblings, ()),
        fields.read("cold", _read_cold_costs, (0, 0, 0)),
        str(levels),
    )


def _read_busy_siblings(node: Node) -> tuple[int, ...]:
    nodes = node.value if isinstance(node.value, tuple) else (node,)
    if not 1 <= len(nodes) < THREADS_MAX:
        raise value_error(node, f"1 to {THREADS_MAX - 1} parts of a CPU's speed")
    return tuple(_read_thousandths(part) for part in nodes)


def _read_thousandths(node: Node) -> int:
    value = node.value
    if is_number(value) and 0 < value <= 1 and abs(value * _THOUSAND % 1 - 0.5) > 0.5 - 1e-9:
        return round(value * _THOUSAND)
    raise value_error(
        node, "a part of a CPU's speed: a number from 0.001 to 1 with three decimals at most"
    )


def _read_cold_costs(node: Node) -> tuple[int, int, int]:
    if not isinstance(node.value, Object):
        raise value_error(
            node, "an object: the cost of a cold cache, by the previous CPU of the process"
        )
    fields = Fields(node, "an object", MIGRATION_LEVELS)
    core, cache, of_node = (fields.read(name, _read_cold_ns, 0) for name in MIGRATION_LEVELS)
    return core, cache, of_node


def _read_cold_ns(node: Node) -> int:
    duration = read_time(node)
    if duration.in_ticks or duration.number > COLD_MAX_NS:
        raise value_error(node, "a time of at most 100 ms, and not in ticks")
    return int(duration.number)
