# SPDX-License-Identifier: MIT
"""Whether this host can boot a Linux guest; tests that need one are skipped where it cannot."""

from __future__ import annotations

import warnings

import pytest

from schedlab.errors import MachineUnfit
from schedlab.machines.linux.guest import find_qemu
from schedlab.machines.linux.packages import packages


def need_guests() -> None:
    """Fetches what is missing. The reason of a skip is in the summary of warnings, too."""
    try:
        find_qemu()
        packages()
    except MachineUnfit as problem:
        reason = f"no Linux guest was booted: {problem}"
        warnings.warn(reason, stacklevel=2)
        pytest.skip(reason)
