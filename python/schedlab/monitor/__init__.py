# SPDX-License-Identifier: MIT
"""The live monitor: what a running system does, as it does it, and a hand on its scheduler.

    system ──►  trace, followed  ──►  model  ──►  frames  ──►  page, or terminal
       ▲                                                            │
       └────────────── sched_status, sched_tunables ◄───────────────┘

A *system* (systems/) is what is watched: our kernel on QEMU or Spike, the simulator, Linux, or a
recorded trace. Its *model* (model/) is made of its trace alone. A *session* drives the systems in
step and makes frames (frames.py) of their models some times a second; the server hands these to
pages, the terminal shows them itself. docs/monitor.md explains all of it.
"""
