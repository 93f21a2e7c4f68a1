# SPDX-License-Identifier: MIT
"""Checks whether this host can boot a Linux guest; tests that need one are skipped otherwise."""

from __future__ import annotations

import warnings

import pytest

from schedlab.errors import MachineUnfit
from schedlab.machines.linux import guest, kvm
from schedlab.machines.linux.packages import packages


def need_guests() -> None:
    """Fetches missing files. The reason of a skip is also in the summary of warnings."""
    try:
        guest.find_qemu()
        packages()
    except MachineUnfit as problem:
        reason = f"no Linux guest was booted: {problem}"
        warnings.warn(reason, stacklevel=2)
        pytest.skip(reason)


def forget_host() -> None:
    """Discards cached facts about this host."""
    for cached_function in (guest.find_qemu, guest._find_kvm_problem):
        cached_function.cache_clear()
    kvm.give_up("")
