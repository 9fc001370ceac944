"""A model's file, bytes or object in; a checked graph with its functions inlined out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias, Union

import onnx
import onnx.version_converter
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from zoi.errors import ModelError
from zoi.graph.edit import name_of

Source: TypeAlias = Union[str, "os.PathLike[str]", bytes, onnx.ModelProto, ir.Model]

# Before opset 7 broadcasting had attributes; onnx rewrites such models.
OLDEST_OPSET, CONVERTED_OPSET = 7, 13


def load(source: Source, name: str | None = None) -> ir.Model:
    """Reads a model and checks that it is one.

    Args:
        source: A file, its bytes, or a model already loaded, which stays as it is.
        name: Its name in texts and errors; by default the file's or the graph's.

    Raises:
        ModelError: It cannot be read, or is not well formed.
    """
    folder = None
    if isinstance(source, ir.Model):
        name = name or source.graph.name or "model"
        source = ir.to_proto(source)
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        name, folder = name or path.stem, path.resolve().parent
        try:
            source = path.read_bytes()
        except OSError as error:
            raise ModelError(f"model {name!r}: cannot read {str(path)!r}: {error.strerror}.") from error
    proto = _parse(source, name or "model") if isinstance(source, bytes) else source
    name = name or proto.graph.name or "model"
    proto = _check_proto(proto, name)
    try:
        model = ir.from_proto(proto)
    except Exception as error:  # the reader has no error type of its own
        raise ModelError(f"model {name!r}: not a well-formed ONNX model: {_first_line(error)}.") from error
    model.graph.name = name
    _check_external(model, name, folder)
    if model.functions:
        try:
            model = InlinePass()(model).model
        except Exception as error:
            raise ModelError(f"model {name!r}: its functions cannot be inlined: {_first_line(error)}.") from error
    _check_graph(model, name)
    return model


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _parse(content: bytes, name: str) -> onnx.ModelProto:
    try:
        return onnx.load_model_from_string(content)
    except Exception as error:  # protobuf raises an error of its own, which has no stubs
        raise ModelError(f"model {name!r}: these {len(content)} bytes are no ONNX model; give a .onnx file.") from error


def _check_proto(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Names are defined once, and the opset is one that onnx knows; models of early ones are converted."""
    if not proto.HasField("graph") or not (proto.graph.node or proto.graph.output):
        raise ModelError(f"model {name!r}: no graph in it; give a .onnx file.")
    versions = [o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")]
    newest = onnx.defs.onnx_opset_version()
    if not versions or not 1 <= versions[0] <= newest:
        found = versions[0] if versions else "none"
        raise ModelError(f"model {name!r}: ONNX opset {found}; 1 to {newest} are supported by this version of onnx.")
    if versions[0] < OLDEST_OPSET:
        try:
            proto = onnx.version_converter.convert_version(proto, CONVERTED_OPSET)
        except Exception as error:
            raise ModelError(
                f"model {name!r}: ONNX opset {versions[0]}, and onnx cannot convert it to {CONVERTED_OPSET}: "
                f"{_first_line(error)}. Export it with a newer opset."
            ) from error
    defined: set[str] = {value.name for value in proto.graph.input}
    if len(defined) != len(proto.graph.input):
        raise ModelError(f"model {name!r}: two inputs have the same name.")
    defined |= {tensor.name for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        for output in node.output:
            if output and output in defined:
                raise ModelError(f"model {name!r}, node {node.name!r}: value {output!r} is defined twice.")
            defined.add(output)
    return proto


def _check_external(model: ir.Model, name: str, folder: Path | None) -> None:
    """Data outside the model's file must lie inside its folder, whatever the file says."""
    tensors = [v.const_value for g in _graphs(model) for v in g.initializers.values()]
    tensors += [
        attr.as_tensor()
        for node in model.graph.all_nodes()
        for attr in node.attributes.values()
        if attr.type == ir.AttributeType.TENSOR and not attr.is_ref()
    ]
    for tensor in tensors:
        if not isinstance(tensor, ir.ExternalTensor):
            _check_tensor(tensor, name)
            continue
        where = f"model {name!r}, tensor {tensor.name!r}: its data lies in {str(tensor.location)!r}"
        if folder is None:
            raise ModelError(f"{where}, and a model without a file has no folder; give the path of the .onnx file.")
        path = (folder / tensor.location).resolve()
        if not path.is_relative_to(folder):
            raise ModelError(f"{where}, outside the model's folder; move it beside the model.")
        size = path.stat().st_size if path.is_file() else -1
        if size < (tensor.offset or 0) + tensor.nbytes:
            found = "no such file" if size < 0 else f"only {size} bytes"
            raise ModelError(f"{where}: {found}.")
        tensor.base_dir = str(folder)


def _check_tensor(tensor: ir.TensorProtocol | None, name: str) -> None:
    """Whether the data has the size that the shape states."""
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return
    try:
        tensor.numpy()
    except Exception as error:
        raise ModelError(
            f"model {name!r}, tensor {tensor.name!r}, {tensor.dtype} {list(tensor.shape)}: its data does not fit: "
            f"{_first_line(error)}."
        ) from error


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    yield model.graph
    for graph in model.graph.subgraphs():
        assert isinstance(graph, ir.Graph)
        yield graph


def _check_graph(model: ir.Model, name: str) -> None:
    """Every value that is read exists, and nothing depends on itself."""
    known: set[ir.Value] = set()
    for graph in _graphs(model):
        known.update(graph.inputs)
        known.update(graph.initializers.values())
    nodes = list(model.graph.all_nodes())
    for node in nodes:
        known.update(node.outputs)
    for node in nodes:
        for value in node.inputs:
            if value is not None and value not in known:
                raise ModelError(
                    f"model {name!r}, node {name_of(node)!r}: it reads {value.name!r}, which nothing computes and "
                    "which is no input."
                )
    for graph in _graphs(model):
        for value in graph.outputs:
            if value not in known:
                raise ModelError(f"model {name!r}: output {value.name!r} is computed by nothing.")
    try:
        model.graph.sort()
    except ValueError as error:
        raise ModelError(f"model {name!r}: nodes depend on each other in a circle.") from error
