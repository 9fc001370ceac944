"""What folds into convolutions and products, and what must not."""

import numpy as np
import pytest

from tests.passes.nets import agrees, net, node

R = np.random.default_rng(1)


def normal(*shape):
    return R.standard_normal(shape).astype(np.float32)


NORM = {"g": normal(4), "b": normal(4), "m": normal(4), "v": np.abs(normal(4)) + 0.5}


def test_batch_norm_and_relu_fold_into_conv():
    nodes = [
        node("Conv", "x w", "a", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "a g b m v", "n"),
        node("Relu", "n", "y"),
    ]
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["y"], {"w": normal(4, 3, 3, 3), **NORM}), {"Conv": 1})


def test_batch_norm_before_an_unpadded_conv_folds():
    nodes = [node("BatchNormalization", "x g b m v", "n"), node("Conv", "n w", "y", group=2)]
    agrees(net(nodes, {"x": (1, 4, 5, 6)}, ["y"], {"w": normal(6, 2, 3, 3), **NORM}), {"Conv": 1})


def test_a_shift_before_a_padded_conv_stays():
    nodes = [node("BatchNormalization", "x g b m v", "n"), node("Conv", "n w", "y", pads=[1, 1, 1, 1])]
    found = {"Pointwise": 1, "Conv": 1}
    agrees(net(nodes, {"x": (1, 4, 5, 6)}, ["y"], {"w": normal(6, 4, 3, 3), **NORM}), found)


def test_a_value_read_twice_does_not_fold():
    nodes = [node("Conv", "x w", "a"), node("Mul", "a k", "y"), node("Sub", "a y", "z")]
    model = net(nodes, {"x": (1, 3, 5, 6)}, ["y", "z"], {"w": normal(4, 3, 1, 1), "k": np.float32(3)})
    agrees(model, {"Conv": 1, "Pointwise": 2})


def test_an_output_of_the_graph_does_not_fold():
    nodes = [node("Conv", "x w", "a"), node("Relu", "a", "y")]
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["a", "y"], {"w": normal(4, 3, 1, 1)}), {"Conv": 1, "Pointwise": 1})


def test_zero_padding_folds_into_conv():
    nodes = [node("Pad", "x p", "a"), node("Conv", "a w", "y", pads=[0, 1, 0, 1])]
    pads = np.array([0, 0, 1, 2, 0, 0, 3, 0])
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["y"], {"w": normal(4, 3, 3, 3), "p": pads}), {"Conv": 1})


def test_other_padding_stays():
    nodes = [node("Pad", "x p c", "a"), node("Conv", "a w", "y")]
    constants = {"w": normal(4, 3, 3, 3), "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "c": np.float32(1)}
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["y"], constants), {"pad": 1, "Conv": 1})


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_auto_pad(mode):
    nodes = [node("Conv", "x w", "y", auto_pad=mode, strides=[2, 3], dilations=[2, 1])]
    if mode != "VALID":  # ONNX Runtime takes no dilation here
        nodes = [node("Conv", "x w", "y", auto_pad=mode, strides=[2, 3])]
    agrees(net(nodes, {"x": (1, 3, 8, 9)}, ["y"], {"w": normal(4, 3, 3, 2)}), {"Conv": 1})


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm_with_its_factors(trans_a, trans_b):
    shape = (5, 3) if trans_a else (3, 5)
    nodes = [node("Gemm", "x w c", "y", alpha=0.5, beta=2.0, transA=trans_a, transB=trans_b)]
    constants = {"w": normal(4, 5) if trans_b else normal(5, 4), "c": normal(4)}
    model = net(nodes, {"x": shape}, ["y"], constants)
    agrees(model, {"transpose": 1, "Gemm": 1} if trans_a else {"Gemm": 1})


def test_gemm_of_two_computed_matrices():
    nodes = [node("Gemm", "x z c", "y", alpha=0.5, beta=3.0, transB=1)]
    agrees(net(nodes, {"x": (3, 5), "z": (4, 5), "c": (3, 1)}, ["y"]), {"transpose": 1, "Pointwise": 1, "MatMul": 1})


def test_matmul_scale_and_bias():
    nodes = [node("MatMul", "x w", "a"), node("Add", "b a", "c"), node("Div", "c k", "y")]
    constants = {"w": normal(5, 4), "b": normal(4), "k": np.float32(4)}
    agrees(net(nodes, {"x": (2, 3, 5)}, ["y"], constants), {"Gemm": 1})


def test_constant_left_side():
    agrees(net([node("MatMul", "w x", "y")], {"x": (5, 3)}, ["y"], {"w": normal(4, 5)}))


def test_conv_transpose_with_output_shape():
    nodes = [node("ConvTranspose", "x w b", "y", strides=[2, 2], output_shape=[9, 10])]
    agrees(net(nodes, {"x": (1, 3, 5, 5)}, ["y"], {"w": normal(3, 4, 3, 3), "b": normal(4)}), {"convtranspose": 1})


def test_products_of_one_matrix_merge():
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "x v", "b"), node("MatMul", "a b", "y")]
    model = net(nodes, {"x": (4, 5)}, ["y"], {"w": normal(5, 4), "v": normal(5, 3)})
    agrees(model, {"Gemm": 1, "slice": 2, "MatMul": 1})


def test_what_follows_conv_transpose_folds():
    nodes = [
        node("ConvTranspose", "x w", "a", strides=[2, 2], group=2),
        node("Add", "a c", "s"),
        node("BatchNormalization", "s g b m v", "n"),
        node("Relu", "n", "y"),
    ]
    constants = {"w": normal(6, 2, 3, 2), "c": normal(1, 4, 1, 1), **NORM}
    agrees(net(nodes, {"x": (1, 6, 4, 5)}, ["y"], constants), {"convtranspose": 1})


@pytest.mark.parametrize("kernel", [1, 3])
def test_scale_and_shift_after_an_activation(kernel):
    """The scale goes on to the next convolution; a product of matrices takes the shift too."""
    pads = [kernel // 2] * 4
    nodes = [
        node("Conv", "x w", "a", pads=pads),
        node("Sigmoid", "a", "r"),
        node("Mul", "s r", "b"),
        node("Add", "b t", "c"),
        node("Conv", "c u", "d", pads=[1, 1, 1, 1]),
        node("Conv", "c v", "e", pads=[1, 1, 1, 1], group=2),
        node("Mul", "d e", "y"),
    ]
    constants = {
        "w": normal(4, 3, kernel, kernel),
        "u": normal(2, 4, 3, 3),
        "v": normal(2, 2, 3, 3),
        "s": np.float32(0.7),
    }
    constants["t"] = normal(4, 1, 1)
    found = {"Conv": 3, "Pointwise": 1 if kernel == 1 else 2}
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["y"], constants), found)


def test_a_scale_that_others_read_stays():
    nodes = [
        node("Conv", "x w", "a"),
        node("Sigmoid", "a", "r"),
        node("Mul", "r s", "c"),
        node("Conv", "c u", "d"),
        node("GlobalAveragePool", "c", "p"),
        node("Add", "d p", "y"),
    ]
    constants = {"w": normal(4, 3, 1, 1), "u": normal(4, 4, 1, 1), "s": np.float32(0.7)}
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["y"], constants), {"Conv": 2, "averagepool": 1, "Pointwise": 2})


def test_convolutions_of_one_image_merge():
    nodes = [node("Conv", "x w", "a"), node("Conv", "x v b", "c"), node("Mul", "a k", "d"), node("Div", "c d", "y")]
    constants = {"w": normal(2, 3, 3, 3), "v": normal(2, 3, 3, 3), "b": normal(2), "k": normal(1, 2, 4, 1)}
    agrees(net(nodes, {"x": (1, 3, 6, 6)}, ["y"], constants), {"Conv": 1, "slice": 2, "Pointwise": 1}, tolerance=1e-3)
    nodes[1] = node("Conv", "x v b", "c", pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1])
    nodes[2:] = [node("Flatten", "a", "d"), node("Flatten", "c", "e"), node("Concat", "d e", "y", axis=1)]
    agrees(net(nodes, {"x": (1, 3, 6, 6)}, ["y"], constants), {"Conv": 2, "reshape": 2, "concat": 1})


@pytest.mark.parametrize(("op", "number"), [("Mul", np.inf), ("Div", 0.0), ("Mul", 3e38)])
def test_scales_that_overflow_stay(op, number):
    nodes = [node("Conv", "x w", "a"), node(op, "a k", "y")]
    scale = np.array([number, 2], np.float32).reshape(1, 2, 1, 1)
    agrees(net(nodes, {"x": (1, 3, 5, 6)}, ["y"], {"w": 5 * np.ones((2, 3, 1, 1), np.float32), "k": scale}))
