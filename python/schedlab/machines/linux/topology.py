# SPDX-License-Identifier: MIT
"""Converts a machine's shape to QEMU options: sockets, cores, hardware threads and memory nodes."""

from collections.abc import Sequence

from schedlab.errors import WrongUsage, format_parameter
from schedlab.workload.shapes.model import CAPACITY_FULL, Shape
from schedlab.workload.shapes.writing import format_cpu_list


def topology_options(shape: Shape | None, cpus: int, memory_mib: int) -> list[str]:
    """Returns QEMU options for CPUs and memory. The CPUs of a socket share the last-level cache.

    Raises WrongUsage if QEMU cannot provide the shape.
    """
    if shape is None:
        return ["-smp", str(cpus), "-m", f"{memory_mib}M"]
    threads, cpus_per_cache, cpus_per_node = (
        _cpus_per_group(shape, numbers, what)
        for numbers, what in ((shape.core, "cores"), (shape.cache, "caches"), (shape.node, "nodes"))
    )
    if shape.kinds != ((CAPACITY_FULL,),):
        raise _shape_error(shape, "kinds", "all of its CPUs have the same speed")
    cores, sockets = cpus_per_cache // threads, shape.cpus // cpus_per_cache
    smp = f"{shape.cpus},sockets={sockets},cores={cores},threads={threads}"
    options = ["-smp", smp, "-m", f"{memory_mib}M"]
    nodes = shape.cpus // cpus_per_node
    for node in range(nodes if nodes > 1 else 0):
        node_cpus = format_cpu_list(range(node * cpus_per_node, (node + 1) * cpus_per_node))
        size = memory_mib * (node + 1) // nodes - memory_mib * node // nodes
        options += ["-object", f"memory-backend-ram,id=memory{node},size={size}M"]
        options += ["-numa", f"node,nodeid={node},cpus={node_cpus},memdev=memory{node}"]
    for one in range(nodes):
        for other in range(nodes):
            if one != other:
                distance = shape.distances[one][other]
                options += ["-numa", f"dist,src={one},dst={other},val={distance}"]
    return options


def _cpus_per_group(shape: Shape, numbers: Sequence[int], unsupported: str) -> int:
    """Returns the number of CPUs in each core, cluster or node. Raises WrongUsage if they differ."""
    width = numbers.count(0)
    if tuple(numbers) != tuple(cpu // width for cpu in range(shape.cpus)) or shape.cpus % width:
        raise _shape_error(
            shape, unsupported, "it numbers CPUs consecutively, with the same number in each"
        )
    return width


def _shape_error(shape: Shape, unsupported: str, why: str) -> WrongUsage:
    return WrongUsage(
        f"{unsupported}: QEMU, which runs the Linux guest, cannot emulate this: {why}",
        what=format_parameter("shape", shape.name),
        fix="use `machine='sim'`, or another shape",
    )
