"""The element-wise operators of ONNX, by the code that a pointwise kernel knows them under."""

from __future__ import annotations

from zoi.graph.ops import Op

# One input, nothing else.
PLAIN: dict[str, Op] = {
    "Neg": Op.NEG, "Abs": Op.ABS, "Sign": Op.SIGN, "Sqrt": Op.SQRT, "Reciprocal": Op.RECIPROCAL, "Exp": Op.EXP,
    "Log": Op.LOG, "Erf": Op.ERF, "Floor": Op.FLOOR, "Ceil": Op.CEIL, "Round": Op.ROUND, "Sin": Op.SIN, "Cos": Op.COS,
    "Tan": Op.TAN, "Asin": Op.ASIN, "Acos": Op.ACOS, "Atan": Op.ATAN, "Sinh": Op.SINH, "Cosh": Op.COSH,
    "Asinh": Op.ASINH, "Acosh": Op.ACOSH, "Atanh": Op.ATANH, "Relu": Op.RELU, "Sigmoid": Op.SIGMOID, "Tanh": Op.TANH,
    "Softplus": Op.SOFTPLUS, "Softsign": Op.SOFTSIGN, "Mish": Op.MISH, "Not": Op.NOT, "IsNaN": Op.IS_NAN,
}  # fmt: skip

# Two inputs.
BINARY: dict[str, Op] = {
    "Add": Op.ADD, "Sub": Op.SUB, "Mul": Op.MUL, "Div": Op.DIV, "Pow": Op.POW, "Max": Op.MAX, "Min": Op.MIN,
    "Equal": Op.EQUAL, "Less": Op.LESS, "LessOrEqual": Op.LESS_EQUAL, "Greater": Op.GREATER,
    "GreaterOrEqual": Op.GREATER_EQUAL, "And": Op.AND, "Or": Op.OR, "Xor": Op.XOR,
}  # fmt: skip

# One input and numbers: (code, attribute, default) for each number.
WITH_NUMBERS: dict[str, tuple[Op, tuple[tuple[str, float], ...]]] = {
    "LeakyRelu": (Op.LEAKY_RELU, (("alpha", 0.01),)),
    "Elu": (Op.ELU, (("alpha", 1.0),)),
    "HardSigmoid": (Op.HARD_SIGMOID, (("alpha", 0.2), ("beta", 0.5))),
    "HardSwish": (Op.HARD_SWISH, ()),
}

# One input whose shape and type the result has.
UNARY = frozenset(PLAIN) - {"Not", "IsNaN"} | frozenset(WITH_NUMBERS) | {"Clip", "Not", "Identity"}
