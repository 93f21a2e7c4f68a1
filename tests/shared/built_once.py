# SPDX-License-Identifier: MIT
"""Builds what tests start, once per pytest process: asking make takes a tenth of a CPU second
each time.
"""

from __future__ import annotations

from functools import cache

from schedlab.base.toolchain import build


@cache
def build_once(*targets: str, **variables: str) -> None:
    """Brings targets of the Makefile up to date, unless this process has done so: no test changes
    their sources.

    `variables`: of the Makefile.
    """
    build.build(*targets, variables=variables)
