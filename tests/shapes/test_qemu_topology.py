# SPDX-License-Identifier: MIT
"""Tests a machine's shape as options of QEMU, and shapes that QEMU cannot have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schedlab.errors import WrongUsage
from schedlab.machines.linux.topology import topology_options
from schedlab.workload.shapes.model import Shape

SERVER = Shape(
    (0, 0, 1, 1, 2, 2, 3, 3),
    (0, 0, 0, 0, 1, 1, 1, 1),
    (0, 0, 0, 0, 1, 1, 1, 1),
    (0,) * 8,
    distances=((10, 21), (22, 10)),
    name="a server",
)


def test_sockets_threads_and_nodes() -> None:
    assert topology_options(None, 4, 1024) == ["-smp", "4", "-m", "1024M"]
    assert " ".join(topology_options(SERVER, 8, 1025)) == (
        "-smp 8,sockets=2,cores=2,threads=2 -m 1025M"
        " -object memory-backend-ram,id=memory0,size=512M -numa node,nodeid=0,cpus=0-3,memdev=memory0"
        " -object memory-backend-ram,id=memory1,size=513M -numa node,nodeid=1,cpus=4-7,memdev=memory1"
        " -numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=22"
    )
    one = replace(SERVER, node=(0,) * 8, distances=((10,),))
    assert " ".join(topology_options(one, 8, 512)) == "-smp 8,sockets=2,cores=2,threads=2 -m 512M"


@pytest.mark.parametrize(
    ("shape", "what"),
    [
        (replace(SERVER, core=(0, 1, 2, 3, 0, 1, 2, 3)), "cores"),
        (replace(SERVER, core=(0, 0, 1, 2, 3, 3, 4, 5)), "cores"),
        (replace(SERVER, cache=(0, 0, 0, 1, 1, 1, 2, 2)), "caches"),
        (replace(SERVER, kind=(0, 0, 0, 0, 1, 1, 1, 1), kinds=((1024,), (512,))), "kinds"),
        (replace(SERVER, kinds=((1024, 512),)), "kinds"),
    ],
)
def test_other_shapes_are_refused(shape: Shape, what: str) -> None:
    with pytest.raises(WrongUsage, match=f"'a server'`: {what}: QEMU, which runs the Linux guest"):
        topology_options(shape, 8, 1024)
