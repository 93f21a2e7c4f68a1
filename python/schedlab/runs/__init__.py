# SPDX-License-Identifier: MIT
"""Plans, performs, stores and reads runs.

The package uses machines only through their adapters, and does not depend on studies.
"""
