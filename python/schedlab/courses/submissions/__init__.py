# SPDX-License-Identifier: MIT
"""Compiles untrusted policies in a sandbox and runs them in WebAssembly machines."""
