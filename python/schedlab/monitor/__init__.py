# SPDX-License-Identifier: MIT
"""The live monitor: shows a running system and controls its scheduler.

    system ──►  trace, followed  ──►  model  ──►  frames  ──►  page, or terminal
       ▲                                                            │
       └────────────── sched_status, sched_tunables ◄───────────────┘

A *system* (systems/) is the schedlab kernel on QEMU or Spike, the simulator, Linux, or a recorded
trace. Its *model* (model/) is computed from its trace alone. A *session* drives the systems in step
and makes frames (frames.py) of their models several times a second. The server sends them to pages;
the terminal shows them itself. docs/monitor.md describes the design.
"""
