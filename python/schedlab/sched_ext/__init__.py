# SPDX-License-Identifier: MIT
"""Loads compiled sched_ext schedulers (BPF objects) for the simulator."""
