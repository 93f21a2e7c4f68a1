# SPDX-License-Identifier: MIT
"""What a process was started in: without these, libraries abort, hang or fail with words of their own."""

from __future__ import annotations

import os
import resource

from schedlab.errors import WrongUsage
from schedlab.paths import cache_folder

ADDRESS_SPACE_MIN = 4 << 30
"""Bytes. With 0.4 GiB a run aborts and a comparison hangs; with 2.9 GiB a comparison works (on 2 CPUs)."""
_NO_EXECUTION = "failed to map segment from shared object"
"""What the loader says of a library on a file system that is mounted `noexec`."""


def check_environment() -> None:
    """Raises WrongUsage if nothing can be run here."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE_MIN:
        raise WrongUsage(
            f"ulimit -v: {limit >> 20} MiB of address space are too few; allow {ADDRESS_SPACE_MIN >> 20} MiB,"
            " or limit memory by a control group"
        )
    try:
        os.getcwd()
    except FileNotFoundError:
        raise WrongUsage("the working directory was removed; change to one that exists") from None


def import_refusal(error: ImportError) -> str:
    """Returns what is wrong with the place of the libraries, or "" if the error has another cause."""
    cause: BaseException | None = error
    while cause:
        if _NO_EXECUTION in str(cause):
            return (
                f"{cache_folder()}: its file system is mounted with noexec, so no library in it can be loaded;"
                " name another folder in XDG_CACHE_HOME"
            )
        cause = cause.__cause__ or cause.__context__
    return ""
