# SPDX-License-Identifier: MIT
"""What several runs, or one run's trace, allow to be concluded: comparison, explanation, theory, tables for SQL."""
