# SPDX-License-Identifier: MIT
"""Parses YAML and keeps the line and path of each value, like `schedlab.base.files.json_lines`.

Differs from YAML 1.1: `yes` and `1:30` are texts, and numbers are decimal.
"""

import re

import yaml

from schedlab.base.files.json_lines import JsonError, Node, Object, Value

_NODES_MAX = 100_000
_INTEGER = re.compile(r"[-+]?\d{1,30}")
_DECIMAL = re.compile(r"[-+]?\d{1,30}\.\d{1,30}([eE][-+]?\d{1,3})?")
_CONSTANTS: dict[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "": None,
    "~": None,
}


def parse_yaml(text: str) -> Node:
    """Parses a text. Raises JsonError."""
    try:
        return _compose(text)
    except RecursionError:  # PyYAML does not limit the nesting
        raise JsonError(1, "has too many levels of values within values; nest fewer") from None


def _compose(text: str) -> Node:
    """Parses a text to PyYAML's nodes and converts them. Raises JsonError."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise JsonError(
            mark.line + 1 if mark else 1, f"not valid YAML: {problem}; correct this line"
        ) from None
    except yaml.YAMLError as error:
        raise JsonError(1, f"not valid YAML: {' '.join(str(error).split())}; correct it") from None
    if tree is None:
        raise JsonError(1, "the file is empty: expected a sweep with `workloads` and `policies`")
    return _Converter().node(tree, "")


class _Converter:
    """Converts PyYAML's nodes to `Node`."""

    def __init__(self) -> None:
        """Begins without any converted node."""
        self.count = 0

    def node(self, yaml_node: yaml.Node, path: str) -> Node:
        """Converts a node. Raises JsonError for references and for too many nodes."""
        line = yaml_node.start_mark.line + 1
        self.count += 1
        # References (*name) can expand a small file to an endless one.
        if self.count > _NODES_MAX:
            raise JsonError(line, f"{path}: expected at most {_NODES_MAX:,} values in a file")
        return Node(self.value(yaml_node, path), line, path)

    def value(self, yaml_node: yaml.Node, path: str) -> Value:
        if isinstance(yaml_node, yaml.MappingNode):
            return Object(tuple(self.member(key, value, path) for key, value in yaml_node.value))
        if isinstance(yaml_node, yaml.SequenceNode):
            return tuple(
                self.node(item, f"{path}.{number}") for number, item in enumerate(yaml_node.value)
            )
        return _scalar(yaml_node)

    def member(self, key: yaml.Node, value: yaml.Node, path: str) -> tuple[str, Node]:
        if not isinstance(key, yaml.ScalarNode):
            raise JsonError(key.start_mark.line + 1, f"{path}: expected a name before the colon")
        name = str(key.value)
        return name, self.node(value, f"{path}.{name}" if path else name)


def _scalar(yaml_node: yaml.Node) -> Value:
    """Returns the value of a scalar node; quoted texts stay texts."""
    text = str(yaml_node.value)
    if getattr(yaml_node, "style", None) is not None:
        return text  # quoted, or a block
    return scalar_of(text)


def scalar_of(text: str) -> str | int | float | bool | None:
    """Returns the value of an unquoted text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
