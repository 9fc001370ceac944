"""One walk that finds every shape, folds what is constant, and takes the branches that are known.

Folding and shapes need each other: a shape may come from a constant that was computed from an earlier shape.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir

from zoi.errors import ModelError, UnsupportedOperator
from zoi.graph.edit import (
    Array,
    constant,
    data,
    dtype_of,
    int_attr,
    ints_attr,
    make,
    name_of,
    optional,
    remove,
    replace,
    required,
    shape_of,
    text_attr,
)
from zoi.passes.check import REASONS
from zoi.passes.elementwise import UNARY
from zoi.passes.evaluate import GROWTH_BYTES, MAX_BYTES, evaluate, result_size
from zoi.passes.expand import expand, is_native

SMALL = 4096
BROADCAST = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"})
SHAPE_OF_FIRST = frozenset({"PRelu", "GroupNormalization"})
CONSTANTS = {"value", "value_float", "value_floats", "value_int", "value_ints"}
COMPARE = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor"})


def infer(model: ir.Model) -> None:
    """Gives every value a static shape and type; computes what depends on constants only.

    Raises:
        ModelError: A shape depends on values known only when the model runs, or shapes do not fit.
    """
    walk = _Walk(model)
    graph = model.graph
    remove_dead(graph)
    for node in list(graph):
        walk.visit(node)
    remove_dead(graph)


def fold_rest(model: ir.Model) -> None:
    """Computes what became constant after `infer`."""
    newest = onnx.defs.onnx_opset_version()
    for node in list(model.graph):
        arrays = evaluate(node, newest)
        if arrays is not None:
            for value, array in zip(node.outputs, arrays, strict=True):
                replace(value, constant(array, value.name or ""))
            remove(node)


def remove_dead(graph: ir.Graph) -> None:
    """Removes nodes that no output depends on."""
    for node in reversed(list(graph)):
        if not any(v.uses() or v.is_graph_output() for v in node.outputs):
            remove(node)


class _Walk:
    def __init__(self, model: ir.Model) -> None:
        self.name = model.graph.name or "model"
        self.graph = model.graph
        self.opset = model.graph.opset_imports.get("", 0) or model.graph.opset_imports.get("ai.onnx", 0)
        self.checker = onnx.checker.C.CheckerContext()
        self.checker.ir_version = onnx.IR_VERSION
        self.checker.opset_imports = {"": self.opset}
        self.types: dict[tuple[ir.DataType, tuple[int, ...]], onnx.TypeProto] = {}
        for value in model.graph.initializers.values():
            _describe(value)

    def visit(self, node: ir.Node) -> None:
        """Folds the node, or states its results' shapes and types."""
        if node.domain == "ai.onnx":
            node.domain = ""
        if node.domain != "":
            raise UnsupportedOperator(
                f"model {self.name!r}, node {name_of(node)!r}: operator {node.domain}.{node.op_type}; only ONNX's own "
                "operators (domain ai.onnx) are supported. Export the model without it."
            )
        self._check(node)
        if node.op_type == "If" and self._take_branch(node):
            return
        if node.op_type == "ConstantOfShape" and _repeat(node):
            return
        arrays = self._fold(node)
        if arrays is not None:
            for value, array in zip(node.outputs, arrays, strict=True):
                if value.uses() or value.is_graph_output():
                    replace(value, constant(array, value.name or ""))
            remove(node)
            return
        if node.op_type in REASONS:
            raise UnsupportedOperator(
                f"model {self.name!r}, node {name_of(node)!r}, operator {node.op_type}: {REASONS[node.op_type]}"
            )
        if not is_native(node):
            types = [onnx.TypeProto() if v is None else self._type(v) for v in node.inputs]
            nodes = expand(node, self.opset, types)
            if nodes is not None:
                for inner in nodes:
                    self.visit(inner)
                return
        self._infer(node)

    def _check(self, node: ir.Node) -> None:
        """Whether the node has the inputs and attributes that its operator asks for; what comes after relies on it."""
        where = f"model {self.name!r}, node {name_of(node)!r}, operator {node.op_type}"
        if any(v is not None and v.dtype == ir.DataType.STRING for v in node.inputs):
            raise UnsupportedOperator(f"{where}: it reads text; numbers are supported. Do this part before the model.")
        if node.op_type == "Constant":
            if len(node.attributes) != 1 or not CONSTANTS & set(node.attributes):
                raise UnsupportedOperator(
                    f"{where}: attributes {list(node.attributes)}; one of {sorted(CONSTANTS)} is."
                )
            return
        if any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values()):
            return
        wrong = None
        try:
            onnx.checker.check_node(ir.to_proto(node), self.checker)
        except onnx.checker.ValidationError as error:
            wrong = str(error).splitlines()[0].rstrip(".")
        if wrong is not None:
            raise ModelError(f"{where}: {wrong}.")

    def _take_branch(self, node: ir.Node) -> bool:
        """Moves the chosen branch of an If into the graph around it."""
        condition = data(node.inputs[0]) if node.inputs else None
        if condition is None or condition.size != 1:
            return False
        branch = node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"].as_graph()
        assert isinstance(branch, ir.Graph)
        results = list(branch.outputs)
        branch.outputs.clear()
        for value in branch.initializers.values():
            _describe(value)
        branch.initializers.clear()
        moved = list(branch)
        for inner in moved:
            branch.remove(inner)
            self.graph.insert_before(node, inner)
        for old, new in zip(node.outputs, results, strict=True):
            if old.uses() or old.is_graph_output():
                replace(old, new)
        remove(node)
        for inner in moved:
            self.visit(inner)
        return True

    def _fold(self, node: ir.Node) -> list[Array] | None:
        op = node.op_type
        if op == "Constant":
            return [_constant_data(node)]
        if op in ("Shape", "Size") and node.inputs[0] is not None:
            shape = shape_of(node.inputs[0])
            if op == "Size":
                return [np.array(math.prod(shape), np.int64)]
            end = node.attributes.get("end")
            return [np.array(shape[int_attr(node, "start") : None if end is None else end.as_int()], np.int64)]
        if op == "CastLike" and data(node.inputs[0]) is not None and node.inputs[1] is not None:
            return [data(node.inputs[0]).astype(dtype_of(node.inputs[1]).numpy())]  # type: ignore[union-attr]
        arrays = [data(v) for v in node.inputs]
        if arrays and all(a is not None for a in arrays):
            size = result_size(node, arrays)
            if size is not None and size * 8 > MAX_BYTES:
                raise ModelError(f"model {self.name!r}, node {name_of(node)!r}: a constant of {size} elements.")
        try:
            return evaluate(node, self.opset)
        except (ValueError, TypeError, IndexError, KeyError, ArithmeticError, RuntimeError, AssertionError) as error:
            raise ModelError(
                f"model {self.name!r}, node {name_of(node)!r}, operator {op}: it cannot be computed: {error}."
            ) from error

    def _infer(self, node: ir.Node) -> None:
        if node.op_type in UNARY | BROADCAST | COMPARE | SHAPE_OF_FIRST:
            self._infer_elementwise(node)
            return
        proto = ir.to_proto(node)
        del proto.input[:], proto.output[:]
        proto.input.extend(f"x{i}" if v is not None else "" for i, v in enumerate(node.inputs))
        proto.output.extend(f"y{i}" for i in range(len(node.outputs)))
        types, known = {}, {}
        for i, value in enumerate(node.inputs):
            if value is None:
                continue
            types[f"x{i}"] = self._type(value)
            array = data(value)
            if array is not None and array.size <= SMALL:
                known[f"x{i}"] = onnx.numpy_helper.from_array(array)
        where = f"model {self.name!r}, node {name_of(node)!r}, operator {node.op_type}"
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset, "")
        except onnx.defs.SchemaError as error:
            raise UnsupportedOperator(f"{where}: not an operator of ONNX opset {self.opset}.") from error
        try:
            result = onnx.shape_inference.infer_node_outputs(
                schema, proto, types, known, opset_imports=[onnx.helper.make_opsetid("", self.opset)]
            )
        except Exception as error:  # onnx raises several kinds
            text = " ".join(str(error).split())
            raise ModelError(f"{where}: its inputs do not fit: {text}") from error
        for i, value in enumerate(node.outputs):
            if not (value.uses() or value.is_graph_output()):
                continue
            found = result.get(f"y{i}")
            tensor = None if found is None else found.tensor_type
            if (
                tensor is None
                or not tensor.HasField("shape")
                or any(not d.HasField("dim_value") for d in tensor.shape.dim)
            ):
                inputs = ", ".join("none" if v is None else f"{v.dtype}{list(shape_of(v))}" for v in node.inputs)
                raise ModelError(
                    f"{where}, inputs {inputs}: the shape of {value.name!r} depends on values known only when the "
                    "model runs; every shape must follow from the inputs' shapes. Fix such an input with `fix`."
                )
            value.dtype = ir.DataType(tensor.elem_type)
            value.shape = ir.Shape(_as_computed(node, [d.dim_value for d in tensor.shape.dim]))

    def _infer_elementwise(self, node: ir.Node) -> None:
        values = [v for v in node.inputs if v is not None]
        shapes = [shape_of(v) for v in values]
        out = node.outputs[0]
        kinds = {v.dtype for v in (values[:1] if node.op_type == "Pow" else values)}
        if len(kinds) > 1:
            raise ModelError(
                f"model {self.name!r}, node {name_of(node)!r}, operator {node.op_type}: inputs of types "
                f"{', '.join(sorted(map(str, kinds)))}; they must be of one type."
            )
        unary = node.op_type in UNARY or node.op_type in SHAPE_OF_FIRST
        try:
            shape = shapes[0] if unary else np.broadcast_shapes(*shapes)
        except ValueError as error:
            raise ModelError(
                f"model {self.name!r}, node {name_of(node)!r}, operator {node.op_type}: shapes "
                f"{', '.join(str(list(s)) for s in shapes)} do not broadcast."
            ) from error
        out.shape = ir.Shape(shape)
        out.type = ir.TensorType(ir.DataType.BOOL) if node.op_type in COMPARE else values[0].type

    def _type(self, value: ir.Value) -> onnx.TypeProto:
        if value.dtype is None or value.shape is None:
            raise ModelError(f"model {self.name!r}, value {value.name!r}: it is no tensor; only tensors are supported.")
        key = (value.dtype, shape_of(value))
        if key not in self.types:
            self.types[key] = onnx.helper.make_tensor_type_proto(key[0].value, key[1])
        return self.types[key]


def _as_computed(node: ir.Node, shape: list[int]) -> list[int]:
    """The shape that runtimes compute, where ONNX's inference of early opsets differs."""
    if node.op_type in ("MaxPool", "AveragePool", "LpPool") and int_attr(node, "ceil_mode"):
        return _without_windows_in_padding(node, shape)
    if node.op_type in ("Resize", "Upsample"):
        return _scaled(node, shape)
    return shape


def _without_windows_in_padding(node: ir.Node, shape: list[int]) -> list[int]:
    """Rounding up makes no window that starts behind the image: there is nothing for it to see."""
    if text_attr(node, "auto_pad", "NOTSET").startswith("SAME"):
        return shape
    size = shape_of(required(node))[2:]
    strides = ints_attr(node, "strides") or [1] * len(size)
    pads = [0] * len(size) if text_attr(node, "auto_pad", "NOTSET") == "VALID" else ints_attr(node, "pads")
    windows = zip(shape[2:], strides, size, pads or [0] * len(size), strict=False)
    return shape[:2] + [n - 1 if (n - 1) * s >= length + begin else n for n, s, length, begin in windows]


def _scaled(node: ir.Node, shape: list[int]) -> list[int]:
    """Sizes times scales in float32, as ONNX Runtime has it: 40 x 0.7 is 28, and not just below."""
    attr = node.attributes.get("scales")
    index = 2 if len(node.inputs) > 2 else 1
    given = data(optional(node, index)) if attr is None else np.array(attr.as_floats(), np.float32)
    if given is None or given.size == 0 or text_attr(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        return shape
    size = shape_of(required(node))
    axes = ints_attr(node, "axes") or list(range(len(size)))
    if given.size != len(axes):
        return shape
    with np.errstate(all="ignore"):
        sizes = np.array([size[axis] for axis in axes], np.float32) * given.astype(np.float32)
    if not np.all((sizes >= 0) & (sizes < 1 << 31)):
        return shape
    for axis, n in zip(axes, sizes, strict=True):
        shape[axis] = int(n)
    return shape


def _repeat(node: ir.Node) -> bool:
    """A large ConstantOfShape is one number, repeated by strides of 0: its elements are never stored."""
    shape = data(node.inputs[0]) if node.inputs else None
    if shape is None or shape.dtype.kind != "i" or np.any(shape < 0):
        return False
    attr = node.attributes.get("value")
    value = np.zeros(1, np.float32) if attr is None else attr.as_tensor().numpy()
    elements = math.prod(int(n) for n in shape)
    if value.size != 1 or not elements * value.itemsize > GROWTH_BYTES or elements * 8 > MAX_BYTES:
        return False
    number = constant(value.reshape([1] * shape.size), f"{name_of(node)}.value")
    target = constant(shape.astype(np.int64), f"{name_of(node)}.shape")
    replace(node.outputs[0], make(node, "Expand", [number, target], [int(n) for n in shape], suffix=""))
    remove(node)
    return True


def _describe(value: ir.Value) -> None:
    """Takes an initializer's shape and type from its data."""
    if value.const_value is not None and value.const_value.dtype != ir.DataType.STRING:
        value.shape = ir.Shape(value.const_value.numpy().shape)
        value.dtype = value.const_value.dtype


def _constant_data(node: ir.Node) -> Array:
    name, attr = next(iter(node.attributes.items()))
    if name == "value":
        return np.asarray(attr.as_tensor().numpy())
    if name in ("value_float", "value_floats"):
        return np.array(attr.value, np.float32)
    return np.array(attr.value, np.int64)
