# SPDX-License-Identifier: MIT
"""Plans, performs, stores and reads runs.

A run is one execution of a workload under a policy with a seed (`RunSpec`). The package uses
machines only through their adapters, and does not depend on studies.
"""
