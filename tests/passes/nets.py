"""Small models for the tests of passes, and the check that simplifying one keeps what it computes."""

from collections import Counter

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import zoi
from zoi.passes import simplify

TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
}


def node(op, inputs, outputs, **attributes):
    """A node; inputs and outputs are names separated by spaces, `-` for one left out."""
    names = [[n if n != "-" else "" for n in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, **attributes)


def net(nodes, inputs, outputs, constants=None, opset=17, functions=(), domains=()):
    """A model. Inputs are name -> shape or (shape, type); outputs are names or name -> type."""
    infos = []
    for name, spec in inputs.items():
        shape, kind = spec if len(spec) == 2 and isinstance(spec[1], str) and spec[1] in TYPES else (spec, "float32")
        infos.append(helper.make_tensor_value_info(name, TYPES[kind], shape))
    kinds = outputs if isinstance(outputs, dict) else dict.fromkeys(outputs, "float32")
    results = [helper.make_tensor_value_info(name, TYPES[kind], None) for name, kind in kinds.items()]
    initializers = [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "net", infos, results, initializers)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=8)


def ops(model, **arguments):
    """How often each operator is in the simplified model: `zoi.Conv` is "Conv", plain ONNX ones are lower case."""
    nodes = simplify(model, **arguments).graph
    return dict(Counter(n.op_type if n.domain == "zoi" else n.op_type.lower() for n in nodes))


def feeds_of(model, seed=0, shapes=None):
    """Random inputs: normal floats, integers from 0 to 4, random truth values."""
    random = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = (shapes or {}).get(value.name) or [d.dim_value for d in value.type.tensor_type.shape.dim]
        array = (
            random.standard_normal(shape)
            if kind.kind == "f"
            else random.integers(0, 5 if kind.kind == "i" else 2, shape)
        )
        feeds[value.name] = np.asarray(array, kind)
    return feeds


def agrees(model, expected_ops=None, feeds=None, shapes=None, fix=None, tolerance=1e-5):
    """Checks the operators of the simplified model, and its results against ONNX Runtime's."""
    import onnxruntime

    if expected_ops is not None:
        assert ops(model, shapes=shapes, fix=fix) == expected_ops
    feeds = feeds or feeds_of(model, shapes=shapes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    reference = onnxruntime.InferenceSession(model.SerializeToString(), options)
    expected = reference.run(None, {**feeds, **{n: np.asarray(v, feeds[n].dtype) for n, v in (fix or {}).items()}})
    session = zoi.Session(zoi.compile(model, shapes=shapes, fix=fix, arch="generic"))
    found = session({name: array for name, array in feeds.items() if name not in (fix or {})})
    for value, array in zip(model.graph.output, expected, strict=True):
        assert found[value.name].dtype == array.dtype
        np.testing.assert_allclose(found[value.name], array, rtol=tolerance, atol=tolerance, err_msg=value.name)
