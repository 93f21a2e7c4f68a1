# SPDX-License-Identifier: MIT
"""Reads and validates shape files: `my.json`, or a file in `shapes/` by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from schedlab.base.files.json_lines import JsonError, Node, Object, parse
from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.paths import ROOT
from schedlab.workload.shapes.model import (
    CAPACITY_FULL,
    COLD,
    COLD_MAX_NS,
    CPUS_MAX,
    DEMAND,
    DISTANCE_LOCAL,
    DISTANCE_MAX,
    HIGHEST,
    KINDS_MAX,
    LEVELS_MAX,
    NODES_MAX,
    THREADS_MAX,
    Model,
    Shape,
    in_order,
)
from schedlab.workload.values import by_key, integer, is_number, time, wrong

FORMAT = 1
SUFFIX = ".json"
READY = ROOT / "shapes"
_KEYS = (
    *("format", "description", "cpus", "cores", "caches", "nodes", "distances"),
    *("kinds", "model"),
)
_KIND_KEYS = ("name", "cpus", "capacity", "levels")
_MODEL_KEYS = ("busy_siblings", "cold", "levels")
_CPU_LIST = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_SETS = 'how many CPUs are in each, one after the other, or an array of their CPUs: ["0,4", "1,5"]'
_THOUSAND = 1000


def ready() -> dict[str, Path]:
    """Returns the predefined shapes by name."""
    return {path.stem: path for path in sorted(READY.glob(f"*{SUFFIX}"))}


def choose(text: str, folder: Path = Path()) -> Shape:
    """Returns the shape of a file relative to a folder, or a predefined shape by name. Raises
    WrongUsage if it is invalid.
    """
    path = folder / text if text.endswith(SUFFIX) else ready().get(text)
    if path is None:
        raise WrongUsage(
            "unknown shape",
            what=parameter("shape", text),
            fix=f"name a file that ends in {SUFFIX}, or one of {', '.join(ready())}",
        )
    return read(path)


def read(path: Path) -> Shape:
    """Reads a shape file. Raises WrongUsage, which names the line."""
    try:
        source = read_text(path)
    except FileRefused as error:
        raise WrongUsage(f"shape {error}") from None
    return of_text(source, path)


def of_text(source: str, path: Path) -> Shape:
    """Returns the shape of a file's text, as `read` does. Errors name the file `path`."""
    try:
        shape = shape_of(parse(source))
    except JsonError as error:
        raise WrongUsage(f"{path}:{error.line}: {error}") from None
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    name = path.stem if path.parent == READY else f"{path.name} ({digest})"
    return replace(shape, name=name, source=source)


def shape_of(node: Node) -> Shape:
    """Returns the shape of a JSON node. Raises JsonError."""
    fields = by_key(node, "an object: the shape of a machine", _KEYS)
    for key in ("format", "cpus"):
        if key not in fields:
            raise wrong(node, f"the key {key} in it")
    if fields["format"].value != FORMAT:
        raise wrong(fields["format"], f"{FORMAT}, the only format")
    cpus = integer(fields["cpus"], 1, CPUS_MAX)
    nodes = _sets(fields["nodes"], cpus) if "nodes" in fields else (0,) * cpus
    caches = _sets(fields["caches"], cpus) if "caches" in fields else nodes
    cores = _sets(fields["cores"], cpus) if "cores" in fields else tuple(range(cpus))
    kind, kinds = _kinds(fields["kinds"], cpus) if "kinds" in fields else ((0,) * cpus, None)
    if max(nodes) >= NODES_MAX:
        raise wrong(fields["nodes"], f"at most {NODES_MAX} nodes")
    _check_within(fields.get("caches", node), caches, nodes, "a cache", "in one node")
    _check_within(fields.get("cores", node), cores, caches, "a core", "in one cache")
    _check_within(fields.get("kinds", node), cores, kind, "a core", "of one kind")
    if any(cores.count(core) > THREADS_MAX for core in set(cores)):
        raise wrong(fields["cores"], f"at most {THREADS_MAX} CPUs in a core")
    shape = Shape(cores, caches, nodes, kind, description=_description(fields.get("description")))
    if kinds:
        shape = replace(shape, kinds=kinds)
    if "distances" in fields:
        shape = replace(shape, distances=_distances(fields["distances"], max(nodes) + 1))
    elif max(nodes) > 0:
        raise wrong(node, "the key distances in it, because it has several nodes")
    return replace(shape, model=_model(fields["model"])) if "model" in fields else shape


def _description(node: Node | None) -> str:
    if node is None:
        return ""
    if not isinstance(node.value, str):
        raise wrong(node, "a text")
    return node.value


# --- sets of CPUs


def _cpus(node: Node, cpus: int) -> list[int]:
    """Returns the CPUs of a list in Linux's notation."""
    expected = f'CPUs from 0 to {cpus - 1}, such as "0-3,8"'
    if not isinstance(node.value, str) or not _CPU_LIST.fullmatch(node.value):
        raise wrong(node, expected)
    cpu_numbers: list[int] = []
    for part in node.value.split(","):
        first, _, last = part.partition("-")
        if not int(first) <= int(last or first) < cpus:
            raise wrong(node, expected)
        cpu_numbers += range(int(first), int(last or first) + 1)
    return cpu_numbers


def _sets(node: Node, cpus: int) -> tuple[int, ...]:
    """Returns the number of each CPU's set."""
    if isinstance(node.value, tuple):
        return in_order(_members([(name, _cpus(name, cpus)) for name in node.value], cpus, node))
    width = integer(node, 1, cpus, _SETS)
    return tuple(cpu // width for cpu in range(cpus))


def _members(sets: Sequence[tuple[Node, list[int]]], cpus: int, node: Node) -> list[int]:
    """Returns the number of each CPU's set. Raises JsonError unless each CPU is in exactly one set."""
    of: dict[int, int] = {}
    for place, (name, members) in enumerate(sets):
        for cpu in members:
            if cpu in of:
                raise JsonError(name.line, f"{name.path}: CPU {cpu}: expected once in {node.path}")
            of[cpu] = place
    missing = next((cpu for cpu in range(cpus) if cpu not in of), None)
    if missing is not None:
        raise JsonError(node.line, f"{node.path}: CPU {missing} is missing: expected all {cpus}")
    return [of[cpu] for cpu in range(cpus)]


def _check_within(
    node: Node, inner: Sequence[int], outer: Sequence[int], what: str, outer_name: str
) -> None:
    places: dict[int, int] = {}
    for cpu, (inner_set, around) in enumerate(zip(inner, outer, strict=True)):
        if places.setdefault(inner_set, around) != around:
            raise JsonError(
                node.line, f"{node.path or 'the shape'}: CPU {cpu}: expected {what} {outer_name}"
            )


# --- speeds and distances


def _kinds(node: Node, cpus: int) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    if not isinstance(node.value, tuple) or not 1 <= len(node.value) <= KINDS_MAX:
        raise wrong(node, f"an array of 1 to {KINDS_MAX} kinds of CPUs")
    sets, levels = [], []
    for kind_node in node.value:
        fields = by_key(kind_node, "an object: a kind of CPUs", _KIND_KEYS)
        for key in ("cpus", "capacity"):
            if key not in fields:
                raise wrong(kind_node, f"the key {key} in it")
        _description(fields.get("name"))
        sets.append((fields["cpus"], _cpus(fields["cpus"], cpus)))
        levels.append(_levels(fields))
    if max(max(level) for level in levels) != CAPACITY_FULL:
        raise JsonError(
            node.line, f"{node.path}: expected the capacity {CAPACITY_FULL} of the fastest kind"
        )
    return tuple(_members(sets, cpus, node)), tuple(levels)


def _levels(fields: dict[str, Node]) -> tuple[int, ...]:
    capacity = integer(fields["capacity"], 1, CAPACITY_FULL)
    node = fields.get("levels")
    if node is None:
        return (capacity,)
    expected = f"1 to {LEVELS_MAX} different capacities, of which {capacity} is the highest"
    if not isinstance(node.value, tuple) or not 1 <= len(node.value) <= LEVELS_MAX:
        raise wrong(node, f"an array of {expected}")
    levels = sorted((integer(level_node, 1, capacity) for level_node in node.value), reverse=True)
    if levels[0] != capacity or len(set(levels)) < len(levels):
        raise wrong(node, expected)
    return tuple(levels)


def _distances(node: Node, nodes: int) -> tuple[tuple[int, ...], ...]:
    rows = node.value
    expected = f"{nodes} arrays of {nodes} distances: {DISTANCE_LOCAL} from a node to itself"
    if not isinstance(rows, tuple) or len(rows) != nodes:
        raise wrong(node, expected)
    return tuple(_row(row, place, nodes, expected) for place, row in enumerate(rows))


def _row(node: Node, place: int, nodes: int, expected: str) -> tuple[int, ...]:
    if not isinstance(node.value, tuple) or len(node.value) != nodes:
        raise wrong(node, expected)
    row = tuple(
        integer(distance_node, DISTANCE_LOCAL, DISTANCE_MAX) for distance_node in node.value
    )
    if row[place] != DISTANCE_LOCAL:
        raise wrong(node.value[place], f"{DISTANCE_LOCAL}, the distance of a node to itself")
    return row


# --- the simulator's model


def _model(node: Node) -> Model:
    fields = by_key(node, "an object: parameters of the simulator", _MODEL_KEYS)
    levels = fields["levels"].value if "levels" in fields else HIGHEST
    if levels not in (HIGHEST, DEMAND):
        raise wrong(fields["levels"], f"{HIGHEST} or {DEMAND}")
    return Model(
        _busy_siblings(fields["busy_siblings"]) if "busy_siblings" in fields else (),
        _cold(fields["cold"]) if "cold" in fields else (0, 0, 0),
        str(levels),
    )


def _busy_siblings(node: Node) -> tuple[int, ...]:
    parts = node.value if isinstance(node.value, tuple) else (node,)
    if not 1 <= len(parts) < THREADS_MAX:
        raise wrong(node, f"1 to {THREADS_MAX - 1} parts of a CPU's speed")
    return tuple(_thousandths(part) for part in parts)


def _thousandths(node: Node) -> int:
    value = node.value
    if is_number(value) and 0 < value <= 1 and abs(value * _THOUSAND % 1 - 0.5) > 0.5 - 1e-9:
        return round(value * _THOUSAND)
    raise wrong(
        node, "a part of a CPU's speed: a number from 0.001 to 1 with three decimals at most"
    )


def _cold(node: Node) -> tuple[int, int, int]:
    if not isinstance(node.value, Object):
        raise wrong(node, "an object: the cost of a cold cache, by the previous CPU of the process")
    fields = by_key(node, "an object", COLD)
    core, cache, of_node = (_cold_time(fields[name]) if name in fields else 0 for name in COLD)
    return core, cache, of_node


def _cold_time(node: Node) -> int:
    duration = time(node)
    if duration.in_ticks or duration.number > COLD_MAX_NS:
        raise wrong(node, "a time of at most 100 ms, and not in ticks")
    return int(duration.number)
