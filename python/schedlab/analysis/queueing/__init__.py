# SPDX-License-Identifier: MIT
"""What queueing theory says of jobs that arrive: exact per job, or means in the long run."""
