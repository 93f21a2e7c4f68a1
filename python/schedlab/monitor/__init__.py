# SPDX-License-Identifier: MIT
"""The live monitor: shows a running system and controls its scheduler.

    system ──►  trace, followed  ──►  model  ──►  frames  ──►  page, or terminal
       ▲                                                            │
       └────────────── sched_status, sched_tunables ◄───────────────┘

A *system* (systems/) is the schedlab kernel on QEMU or Spike, the simulator, Linux, or a recorded
trace. The *model* (model/) of a system is computed only from the system's trace. A *session* drives
the systems in step. Several times a second, the terminal makes frames (frames.py) of their models
and shows them; the server sends traces to pages, which make frames themselves. docs/monitor.md
describes the design.
"""
