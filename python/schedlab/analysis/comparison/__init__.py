# SPDX-License-Identifier: MIT
"""What several runs allow to be said: which metrics are compared, intervals, who is best, what two
sets of runs differ in. It knows runs that were kept, and no study."""
