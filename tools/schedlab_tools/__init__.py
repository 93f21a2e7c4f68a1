# SPDX-License-Identifier: MIT
"""Tools of those who maintain schedlab: benchmarks, long use, documents made from measurements, stopped CPUs."""
