"""The numbers that kernels know operators by; a test compares them with the headers. One list for every pass."""

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


class Reduction(IntEnum):
    """The operations of kernels/reduce/reduce.h, in its order."""

    SUM = 0
    MEAN = 1
    MAX = 2
    MIN = 3
    PROD = 4
    L1 = 5
    L2 = 6
    SUM_SQUARE = 7
    LOG_SUM = 8
    LOG_SUM_EXP = 9
    ARG_MAX = 10
    ARG_MIN = 11
