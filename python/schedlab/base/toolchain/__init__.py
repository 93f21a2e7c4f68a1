# SPDX-License-Identifier: MIT
"""From the C sources to what machines start from: compilers and other tools, the build, and the
policies that the sources define. It knows no machine."""
