# SPDX-License-Identifier: MIT
"""Measures costs and speed: instruction counts, throughput, and shares compared with the ideal.

It may import all machines and the monitor.
"""
