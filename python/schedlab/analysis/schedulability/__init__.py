# SPDX-License-Identifier: MIT
"""What theory says of tasks with deadlines, before they run."""
