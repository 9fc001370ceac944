"""The element-wise operators of ONNX, by the code that a pointwise kernel knows them under."""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """The instructions of kernels/pointwise/pointwise.h, in its order."""

    COPY = 0
    ADD = 1
    SUB = 2
    MUL = 3
    DIV = 4
    MAX = 5
    MIN = 6
    POW = 7
    MOD = 8
    FMOD = 9
    NEG = 10
    ABS = 11
    SIGN = 12
    SQRT = 13
    RSQRT = 14
    RECIPROCAL = 15
    EXP = 16
    LOG = 17
    ERF = 18
    FLOOR = 19
    CEIL = 20
    ROUND = 21
    SIN = 22
    COS = 23
    TAN = 24
    ASIN = 25
    ACOS = 26
    ATAN = 27
    SINH = 28
    COSH = 29
    ASINH = 30
    ACOSH = 31
    ATANH = 32
    EQUAL = 33
    LESS = 34
    LESS_EQUAL = 35
    GREATER = 36
    GREATER_EQUAL = 37
    AND = 38
    OR = 39
    XOR = 40
    NOT = 41
    IS_NAN = 42
    IS_INF = 43
    WHERE = 44
    RELU = 45
    CLIP = 46
    SIGMOID = 47
    TANH = 48
    GELU = 49
    GELU_TANH = 50
    SILU = 51
    HARD_SIGMOID = 52
    HARD_SWISH = 53
    LEAKY_RELU = 54
    ELU = 55
    SOFTPLUS = 56
    MISH = 57
    SOFTSIGN = 58


class Act(IntEnum):
    """The activations of kernels/activation.h, in its order."""

    NONE = 0
    RELU = 1
    CLIP = 2
    SIGMOID = 3
    TANH = 4
    GELU = 5
    GELU_TANH = 6
    SILU = 7
    HARD_SIGMOID = 8
    HARD_SWISH = 9
    LEAKY_RELU = 10
    ELU = 11
    SOFTPLUS = 12
    MISH = 13


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
