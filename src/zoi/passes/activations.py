"""Recognises activations that exporters spell out, and writes each as one operator.

GELU by erf or tanh, SiLU, hard sigmoid and hard swish, Mish, 1 / sqrt; and division by a constant as a product.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from zoi.graph.edit import (
    constant,
    data,
    dtype_of,
    float_attr,
    is_op,
    is_scalar,
    make,
    name_of,
    producer,
    rank_of,
    required,
    scalar,
    shape_of,
    substitute,
)

F32 = ir.DataType.FLOAT
GELU_CUBIC = 0.044715


def fuse_activations(model: ir.Model) -> None:
    """Tries every pattern at the node that would be its last."""
    for node in list(model.graph):
        if node.graph is None or not node.outputs or node.outputs[0].dtype != F32 or node.domain != "":
            continue
        for pattern in PATTERNS.get(node.op_type, ()):
            if pattern(node):
                break


def _factors(value: ir.Value | None, op: str) -> list[tuple[ir.Value, ir.Value]]:
    """Both orders of the operands of a sum or product, or nothing."""
    node = producer(value, op)
    if node is None:
        return []
    a, b = required(node), required(node, 1)
    return [(a, b), (b, a)]


def _with_number(value: ir.Value | None, op: str) -> tuple[ir.Value, float] | None:
    """(operand, number) of a sum or product with one number that changes no shape."""
    for x, other in _factors(value, op):
        number = scalar(other)
        if number is not None and scalar(x) is None and rank_of(other) <= rank_of(x):
            return x, number
    return None


def _scaled(value: ir.Value) -> tuple[ir.Value, float]:
    """(x, k) where the value is k x."""
    found = _with_number(value, "Mul")
    if found is not None:
        return found
    node = producer(value, "Div")
    number = scalar(required(node, 1)) if node is not None else None
    return (value, 1.0) if node is None or not number else (required(node), 1 / number)


def _pairs(node: ir.Node) -> list[tuple[ir.Value, ir.Value]]:
    a, b = required(node), required(node, 1)
    return [(a, b), (b, a)]


def _put(node: ir.Node, op: str, x: ir.Value, **attributes: float) -> bool:
    if shape_of(x) != shape_of(node.outputs[0]):
        return False
    domain = "" if op == "HardSigmoid" else "zoi"
    substitute(node, make(node, op, [x], shape_of(x), domain=domain, suffix="", attributes=attributes))
    return True


def gelu(node: ir.Node) -> bool:
    """x/2 (1 + erf(x / sqrt 2)) in any order of its products."""
    factors, number = _product(node)
    for i, factor in enumerate(factors):
        found = _with_number(factor, "Add")
        if found is None or not math.isclose(found[1], 1.0):
            continue
        rest = factors[:i] + factors[i + 1 :]
        if len(rest) != 1 or not math.isclose(number, 0.5, rel_tol=1e-4):
            continue
        x = rest[0]
        erf = producer(found[0], "Erf")
        if erf is not None:
            inner, k = _scaled(required(erf))
            if inner is x and math.isclose(k, math.sqrt(0.5), rel_tol=1e-4):
                return _put(node, "Gelu", x)
        tanh = producer(found[0], "Tanh")
        if tanh is not None and _is_gelu_tanh(required(tanh), x):
            return _put(node, "GeluTanh", x)
    return False


def _product(node: ir.Node) -> tuple[list[ir.Value], float]:
    """The computed factors of a tree of products, and the product of its numbers."""
    factors: list[ir.Value] = []
    number = 1.0
    todo = [required(node), required(node, 1)] if is_op(node, "Mul") else []
    while todo and len(factors) + len(todo) < 8:
        value = todo.pop()
        known, inner = scalar(value), producer(value, "Mul")
        if known is not None:
            number *= known
        elif inner is not None and len(value.uses()) == 1:
            todo += [required(inner), required(inner, 1)]
        else:
            halved = producer(value, "Div")
            divisor = scalar(required(halved, 1)) if halved is not None else None
            if halved is not None and divisor and len(value.uses()) == 1:
                number /= divisor
                todo.append(required(halved))
            else:
                factors.append(value)
    return factors + todo, number


def _is_gelu_tanh(value: ir.Value, x: ir.Value) -> bool:
    """Whether the value is sqrt(2/pi) (x + 0.044715 x^3)."""
    inner, k = _scaled(value)
    if not math.isclose(k, math.sqrt(2 / math.pi), rel_tol=1e-3):
        return False
    for a, cubic in _factors(inner, "Add"):
        product = producer(cubic, "Mul")
        if a is not x or product is None:
            continue
        factors, c = _product(product)
        cube = all(f is x for f in factors) if len(factors) == 3 else len(factors) == 1 and _is_cube(factors[0], x)
        if cube and math.isclose(c, GELU_CUBIC, rel_tol=1e-3):
            return True
    node = producer(inner, "Mul")  # x (1 + 0.044715 x^2)
    for a, b in _factors(inner, "Mul") if node is not None else []:
        found = _with_number(b, "Add")
        if a is x and found is not None and math.isclose(found[1], 1.0):
            square, c = _scaled(found[0])
            if math.isclose(c, GELU_CUBIC, rel_tol=1e-3) and _is_square(square, x):
                return True
    return False


def _is_square(value: ir.Value, x: ir.Value) -> bool:
    node = producer(value, "Mul")
    return node is not None and required(node) is x and required(node, 1) is x


def _is_cube(value: ir.Value, x: ir.Value) -> bool:
    power = producer(value, "Pow")
    return power is not None and required(power) is x and is_scalar(required(power, 1), 3)


def silu(node: ir.Node) -> bool:
    """SiLU: x sigmoid(x)."""
    for x, gate in _pairs(node):
        sigmoid = producer(gate, "Sigmoid")
        if sigmoid is not None and required(sigmoid) is x:
            return _put(node, "Silu", x)
    return False


def mish(node: ir.Node) -> bool:
    """Mish: x tanh(softplus(x))."""
    for x, gate in _pairs(node):
        tanh = producer(gate, "Tanh")
        soft = producer(required(tanh), "Softplus") if tanh is not None else None
        if soft is not None and required(soft) is x:
            return _put(node, "Mish", x)
    return False


def _ramp(value: ir.Value) -> tuple[ir.Value, float, float, float] | None:
    """(x, slope, offset, top) where the value is min(max(slope x + offset, 0), top)."""
    clip = producer(value, "Clip")
    if clip is not None:
        low, high = scalar(required(clip, 1)), scalar(required(clip, 2))
        if low != 0 or not high or high < 0:
            return None
        x, slope, offset = _affine(required(clip))
        return x, slope, offset, high
    hard = producer(value, "HardSigmoid")
    if hard is not None:
        return required(hard), float_attr(hard, "alpha", 0.2), float_attr(hard, "beta", 0.5), 1.0
    return None


def _affine(value: ir.Value) -> tuple[ir.Value, float, float]:
    shifted = _with_number(value, "Add")
    x, offset = (value, 0.0) if shifted is None else shifted
    inner, slope = _scaled(x)
    return inner, slope, offset


def hard_sigmoid(node: ir.Node) -> bool:
    """A ramp from 0 to `top`, divided by `top`."""
    value, k = _scaled(node.outputs[0])
    ramp = _ramp(value) if value is not node.outputs[0] else None
    if ramp is None or producer(value, "Clip") is None:
        return False
    x, slope, offset, top = ramp
    if not math.isclose(k * top, 1.0, rel_tol=1e-4) or (slope == 1.0 and offset == 0.0):
        return False
    return _put(node, "HardSigmoid", x, alpha=slope * k, beta=offset * k)


def hard_swish(node: ir.Node) -> bool:
    """A value times a ramp of it to 1, the division by the top before or after the product."""
    factors, number = _product_or_quotient(node)
    if len(factors) != 2:
        return False
    for x, gate in ((factors[0], factors[1]), (factors[1], factors[0])):
        ramp = _ramp(gate)
        if ramp is None or ramp[0] is not x:
            continue
        _, slope, offset, top = ramp
        if math.isclose(number * top, 1.0, rel_tol=1e-4):
            return _put(node, "HardSwish", x, alpha=slope * number, beta=offset * number)
    return False


def _product_or_quotient(node: ir.Node) -> tuple[list[ir.Value], float]:
    if is_op(node, "Mul"):
        return _product(node)
    divisor, inner = scalar(required(node, 1)), producer(required(node), "Mul")
    if not divisor or inner is None or len(required(node).uses()) != 1:
        return [], 1.0
    factors, number = _product(inner)
    return factors, number / divisor


def negation(node: ir.Node) -> bool:
    """Minus the result of a linear operator is a product, which folds into its weights."""
    x = required(node)
    before = x.producer()
    while is_op(before, "Reshape", "Transpose") and before is not None:
        before = required(before).producer()
    if before is None or not is_op(before, "Conv", "Gemm", domain="zoi"):
        return False
    minus = constant(np.array(-1, np.float32), f"{name_of(node)}.minus")
    substitute(node, make(node, "Mul", [x, minus], shape_of(x), suffix=""))
    return True


def nothing(node: ir.Node) -> bool:
    """Finds x times or over 1, x plus or minus 0, and bounds at infinity."""
    neutral = {"Mul": 1.0, "Div": 1.0, "Max": -math.inf, "Min": math.inf}.get(node.op_type, 0.0)
    for index in (0, 1) if is_op(node, "Mul", "Add", "Max", "Min") else (0,):
        x = required(node, index)
        if (
            scalar(required(node, 1 - index)) == neutral
            and scalar(x) is None
            and shape_of(x) == shape_of(node.outputs[0])
        ):
            substitute(node, x)
            return True
    return False


def reciprocal_root(node: ir.Node) -> bool:
    """1 / sqrt(x)."""
    divides = is_op(node, "Div")
    if divides and not is_scalar(required(node), 1.0):
        return False
    root = producer(required(node, 1 if divides else 0), "Sqrt")
    return root is not None and len(root.outputs[0].uses()) == 1 and _put(node, "Rsqrt", required(root))


def division(node: ir.Node) -> bool:
    """Division by a constant as a product with its inverse: at most one more rounding, none for powers of two."""
    array = data(required(node, 1))
    if array is None or array.size == 0 or array.dtype != np.float32 or np.any(array == 0):
        return False
    with np.errstate(over="ignore"):
        inverse = (1 / array.astype(np.float64)).astype(np.float32)
    if not np.all(np.isfinite(inverse)) or not np.all(np.abs(inverse) > np.finfo(np.float32).tiny):
        return False
    factor = constant(inverse, f"{name_of(node)}.inverse")
    x = required(node)
    y = make(node, "Mul", [x, factor], shape_of(node.outputs[0]), dtype=dtype_of(x), suffix="")
    substitute(node, y)
    return True


PATTERNS = {
    "Add": (nothing,),
    "Sub": (nothing,),
    "Max": (nothing,),
    "Min": (nothing,),
    "Neg": (negation,),
    "Mul": (nothing, gelu, silu, mish, hard_swish, hard_sigmoid),
    "Div": (nothing, hard_swish, hard_sigmoid, reciprocal_root, division),
    "Reciprocal": (reciprocal_root,),
}
