# SPDX-License-Identifier: MIT
"""The shape of a machine that runs Linux, as its /sys says it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.errors import WrongUsage
from schedlab.shapes.model import (
    CAPACITY_FULL,
    CPUS_MAX,
    DISTANCE_LOCAL,
    KINDS_MAX,
    LEVELS_MAX,
    NODES_MAX,
    THREADS_MAX,
    Model,
    Shape,
    in_order,
)

SYS = Path("/sys")
GUESS = Model((600,), (0, 5_000, 50_000))
"""What the simulator goes by, of which /sys says nothing."""
_LIST = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_BYTES_MAX = 1 << 16


@dataclass
class _Folder:
    """/sys, or a copy of it. What is missing, and what is taken instead, is noted once each."""

    path: Path
    notes: list[str] = field(default_factory=list)

    def text(self, name: str) -> str | None:
        """The first line of a file, or None if there is none."""
        try:
            with (self.path / name).open("rb") as file:
                content = file.read(_BYTES_MAX).decode(errors="replace")
        except OSError:
            return None
        return content.strip() or None

    def number(self, name: str) -> int | None:
        text = self.text(name)
        return int(text) if text and text.isdecimal() and len(text) < 19 else None

    def cpus(self, name: str) -> list[int] | None:
        """A list of CPUs, in their order."""
        text = self.text(name)
        if text is None or not _LIST.fullmatch(text):
            return None
        found: set[int] = set()
        for part in text.split(","):
            first, _, last = part.partition("-")
            if int(last or first) >= 1 << 20:
                return None
            found.update(range(int(first), int(last or first) + 1))
        return sorted(found)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def shape_of_sys(path: Path) -> tuple[Shape, list[str]]:
    """Returns the shape of the CPUs that are online, numbered from 0 on, and what had to be assumed.

    `path`: /sys, or a copy of its folders devices/system/cpu and devices/system/node. WrongUsage:
    it does not say which CPUs there are, or the machine is too large.
    """
    folder = _Folder(path)
    cpus = folder.cpus("devices/system/cpu/online")
    if not cpus:
        raise WrongUsage(
            f"{path}: it does not say which CPUs there are; expected /sys of Linux, or a copy of it,"
            " with devices/system/cpu/online"
        )
    if len(cpus) > CPUS_MAX:
        raise WrongUsage(f"{path}: it has {len(cpus)} CPUs; there may be {CPUS_MAX}")
    if cpus != list(range(len(cpus))):
        folder.note("some CPUs are offline: the others are numbered from 0 on, without gaps")
    node, distances = _nodes(folder, cpus)
    core = _cores(folder, cpus)
    cache = _caches(folder, cpus, node, core)
    kind, kinds = _kinds(folder, cpus, core)
    name = folder.text("devices/virtual/dmi/id/product_name") or "a machine"
    shape = Shape(core, cache, node, kind, kinds, distances, description=f"{name}, by its /sys")
    model = _model(shape)
    if model != Model():
        folder.note("what the simulator's model takes is a guess: no file of /sys has it")
    return Shape(**{**vars(shape), "model": model}), folder.notes


def _model(shape: Shape) -> Model:
    """Only what can happen on the machine."""
    threads = max(shape.core.count(core) for core in set(shape.core))
    core, cache, node = GUESS.cold_ns
    return Model(
        GUESS.busy_siblings if threads > 1 else (),
        (
            core if threads > 1 else 0,
            cache if len(set(shape.core)) > 1 else 0,
            node if len(set(shape.cache)) > 1 else 0,
        ),
    )


def _nodes(folder: _Folder, cpus: list[int]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """By CPU its node, and their distances. Nodes without CPUs are left out."""
    one = (0,) * len(cpus), ((DISTANCE_LOCAL,),)
    place = "devices/system/node"
    online = folder.cpus(f"{place}/online")
    if online is None:
        folder.note("no nodes of memory are told: there is one")
        return one
    of = {cpu: node for node in online for cpu in folder.cpus(f"{place}/node{node}/cpulist") or ()}
    if any(cpu not in of for cpu in cpus):
        folder.note("some CPUs are in no node of memory: there is one for all")
        return one
    used = list(dict.fromkeys(of[cpu] for cpu in cpus))
    if len(used) > NODES_MAX:
        raise WrongUsage(f"{folder.path}: {len(used)} nodes; there may be {NODES_MAX}")
    rows = tuple(_distances(folder, f"{place}/node{node}/distance", online, used) for node in used)
    for number, row in enumerate(rows):
        if row[number] != DISTANCE_LOCAL or min(row) < DISTANCE_LOCAL or max(row) > 255:
            folder.note("the distances of nodes cannot be: all are 20")
            rows = tuple(
                tuple(DISTANCE_LOCAL if one == other else 20 for other in used) for one in used
            )
            break
    return tuple(used.index(of[cpu]) for cpu in cpus), rows


def _distances(folder: _Folder, name: str, online: list[int], used: list[int]) -> tuple[int, ...]:
    """The distances to the nodes that are used; 0: not told."""
    words = (folder.text(name) or "").split()
    numbers = [int(word) if word.isdecimal() and len(word) < 9 else 0 for word in words]
    told = dict(zip(online, numbers, strict=False))
    return tuple(told.get(node, 0) for node in used)


def _cores(folder: _Folder, cpus: list[int]) -> tuple[int, ...]:
    def first_thread(cpu: int) -> int:
        place = f"devices/system/cpu/cpu{cpu}/topology"
        siblings = folder.cpus(f"{place}/core_cpus_list")
        siblings = siblings or folder.cpus(f"{place}/thread_siblings_list")
        if siblings is None:
            folder.note("hardware threads are not told: each CPU is a core")
        return (siblings or [cpu])[0]

    cores = in_order([first_thread(cpu) for cpu in cpus])
    if any(cores.count(core) > THREADS_MAX for core in set(cores)):
        folder.note(f"a core has more than {THREADS_MAX} CPUs: each CPU is a core")
        return tuple(range(len(cpus)))
    return cores


def _caches(
    folder: _Folder, cpus: list[int], node: tuple[int, ...], core: tuple[int, ...]
) -> tuple[int, ...]:
    """By CPU: the last cache. One that CPUs of several nodes share is told as one for each node, and a core
    lies in the cache of its first CPU."""
    firsts = {core[place]: place for place in reversed(range(len(cpus)))}

    def last_cache(member: int) -> tuple[int, int | None]:
        place = firsts[core[member]]
        shared = _last_shared(folder, cpus[place])
        if shared is None:
            folder.note("caches are not told: the CPUs of a node share one")
        return node[place], shared

    found = in_order([last_cache(place) for place in range(len(cpus))])
    shared = [_last_shared(folder, cpu) for cpu in cpus]
    if len(set(shared)) < len(set(found)):
        folder.note("a cache is shared by several nodes: it is told as one for each of them")
    return found


def _last_shared(folder: _Folder, cpu: int) -> int | None:
    """The lowest CPU that shares the CPU's last cache, which stands for it."""
    last: tuple[int, int] | None = None
    for index in range(16):
        place = f"devices/system/cpu/cpu{cpu}/cache/index{index}"
        level, shared = folder.number(f"{place}/level"), folder.cpus(f"{place}/shared_cpu_list")
        if level is None or not shared or folder.text(f"{place}/type") == "Instruction":
            continue
        if last is None or level > last[0]:
            last = (level, shared[0])
    return last[1] if last else None


# --- how fast they are


def _kinds(
    folder: _Folder, cpus: list[int], core: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """By CPU its kind; by kind the capacities of its levels. CPUs of a core are of one kind."""
    firsts = {number: cpus[place] for place, number in reversed(list(enumerate(core)))}
    speeds = {cpu: _speed(folder, cpu) for cpu in firsts.values()}
    highest = max(speed for speed, _ in speeds.values())
    levels = {cpu: _capacities(*speeds[cpu], highest) for cpu in speeds}
    own = [levels[firsts[core[place]]] for place in range(len(cpus))]
    kinds = tuple(dict.fromkeys(own))
    if len(kinds) > KINDS_MAX:
        folder.note(f"more than {KINDS_MAX} kinds of CPUs: those of one kind are taken to be alike")
        own = [(each[0] - each[0] % 64 or 64,) for each in own]
        own = [(CAPACITY_FULL,) if each == max(own) else each for each in own]
        kinds = tuple(dict.fromkeys(own))
    return tuple(kinds.index(each) for each in own), kinds


def _speed(folder: _Folder, cpu: int) -> tuple[int, tuple[int, ...]]:
    """How fast a CPU is beside others, and the frequencies that it has; none: not told."""
    place = f"devices/system/cpu/cpu{cpu}"
    frequency = folder.number(f"{place}/cpufreq/cpuinfo_max_freq")
    words = (folder.text(f"{place}/cpufreq/scaling_available_frequencies") or "").split()
    frequencies = tuple(int(word) for word in words if word.isdecimal() and 0 < len(word) < 12)
    capacity = folder.number(f"{place}/cpu_capacity")
    if capacity:
        return capacity, frequencies
    if frequency:
        folder.note("capacities are not told: CPUs are as fast as their highest frequencies")
        return frequency, frequencies
    folder.note("neither capacities nor frequencies are told: all CPUs are as fast")
    return 1, ()


def _capacities(speed: int, frequencies: tuple[int, ...], highest: int) -> tuple[int, ...]:
    """The capacities of its levels, the highest first: all that are different, or as many as may be."""
    capacity = max(1, round(speed * CAPACITY_FULL / highest))
    most = max(frequencies, default=0)
    found = {max(1, round(capacity * each / most)) for each in frequencies if each} | {capacity}
    levels = sorted(found, reverse=True)
    if len(levels) > LEVELS_MAX:
        last = len(levels) - 1
        levels = [levels[place * last // (LEVELS_MAX - 1)] for place in range(LEVELS_MAX)]
    return tuple(levels)
