# SPDX-License-Identifier: MIT
"""Linux kernels with our policies: in a guest, and the one that this machine runs."""

from schedlab.monitor.systems.linux_guest import LinuxGuestSystem
from schedlab.monitor.systems.linux_host import LinuxHostSystem

__all__ = ["LinuxGuestSystem", "LinuxHostSystem"]
