# SPDX-License-Identifier: MIT
"""Checks the limit of the address space (`ulimit -v`), because some libraries abort if it is too low."""

import resource
from typing import Any

from schedlab.errors import WrongUsage

ADDRESS_SPACE_MIN = 4 << 30
"""Minimum limit in bytes that every command needs.

With 0.4 GiB, a run aborts and a comparison hangs; 2.9 GiB suffice for a comparison on 2 CPUs.
"""
_ADVICE = "remove it, and limit memory with a control group instead"


def address_limit() -> int | None:
    """Returns the limit of the address space in bytes; None if there is none."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def check_address_limit() -> None:
    """Raises WrongUsage if the limit is too low for some command."""
    limit = address_limit()
    if limit is not None and limit < ADDRESS_SPACE_MIN:
        raise WrongUsage(
            f"ulimit -v: {limit >> 20} MiB of address space are too little; set it to at least "
            f"{ADDRESS_SPACE_MIN >> 10} in a new shell, or {_ADVICE}"
        )


def refuse_address_limit(tools: str) -> None:
    """Raises WrongUsage if there is any limit.

    `tools` (plural): the things that reserve more addresses than any limit allows.
    """
    if address_limit() is not None:
        raise WrongUsage(f"ulimit -v: {tools} do not work with a limit on address space; {_ADVICE}")


def import_chart_library() -> Any:
    """Imports vl_convert, which draws charts; installs it if it is missing.

    It reserves more than 64 GiB of addresses. Raises WrongUsage if there is a limit.
    """
    from schedlab.base.toolchain.needs import need_extra

    refuse_address_limit("charts")
    need_extra("pictures")
    import vl_convert

    return vl_convert
