# SPDX-License-Identifier: MIT
"""The live model: from a trace's records to what frames show (docs/monitor.md)."""

from schedlab.monitor.frames import ModelFrame, Past
from schedlab.monitor.model.model import Alive, InForce, Model

__all__ = ["Alive", "InForce", "Model", "ModelFrame", "Past"]
