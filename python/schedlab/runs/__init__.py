# SPDX-License-Identifier: MIT
"""Plans, performs, stores and reads runs. It knows machines by their adapters, and no study."""
