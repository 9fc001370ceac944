"""Models damaged at random: each is simplified or refused, and nothing else happens."""

import random

import pytest

from benchmarks.models import bert_tiny_s32, gru_kws, policy_mlp, tiny_ic_resnet8, tiny_kws_dscnn
from zoi.errors import ZoiError
from zoi.passes import simplify

OPS = [
    "Add",
    "Conv",
    "Gemm",
    "MatMul",
    "Relu",
    "Reshape",
    "Transpose",
    "Softmax",
    "Slice",
    "Concat",
    "GRU",
    "Pad",
    "Clip",
]
OPS += [
    "Squeeze",
    "Expand",
    "LayerNormalization",
    "AveragePool",
    "Split",
    "Where",
    "ReduceMean",
    "ConvTranspose",
    "Constant",
]
NUMBERS = [0, -1, 1, 2, 5, 10**7, -(10**9)]
ROUNDS = 120


def rewire(graph, rng):
    """Makes a node read another value."""
    node = rng.choice(graph.node)
    if node.input:
        names = [name for other in graph.node for name in other.output] + [t.name for t in graph.initializer] + [""]
        node.input[rng.randrange(len(node.input))] = rng.choice(names)


def drop_input(graph, rng):
    """Leaves out a node's last input."""
    node = rng.choice(graph.node)
    if node.input:
        del node.input[-1]


def change_operator(graph, rng):
    """Turns a node into another operator."""
    rng.choice(graph.node).op_type = rng.choice(OPS)


def change_attribute(graph, rng):
    """Changes numbers of an attribute, or leaves it out."""
    node = rng.choice(graph.node)
    if not node.attribute:
        return
    attribute = rng.choice(node.attribute)
    if rng.random() < 0.3:
        node.attribute.remove(attribute)
    elif attribute.HasField("i"):
        attribute.i = rng.choice(NUMBERS)
    else:
        attribute.ints[:] = [rng.choice(NUMBERS) for _ in attribute.ints][: rng.randint(0, len(attribute.ints))]


def change_weights(graph, rng):
    """Lies about the shape or the type of a weight."""
    tensor = rng.choice(graph.initializer)
    if rng.random() < 0.5:
        tensor.dims[:] = [rng.choice([0, 1, 2, 64]) for _ in tensor.dims]
    else:
        tensor.data_type = rng.choice([1, 6, 7, 8, 9, 10, 11, 16])


CHANGES = [rewire, drop_input, change_operator, change_attribute, change_weights]


@pytest.mark.parametrize("build", [policy_mlp, gru_kws, tiny_kws_dscnn, tiny_ic_resnet8, bert_tiny_s32])
def test_damage_is_refused_or_harmless(build):
    rng, whole = random.Random(build.__name__), build()
    refused = 0
    for _ in range(ROUNDS):
        model = type(whole)()
        model.CopyFrom(whole)
        for _ in range(rng.randint(1, 3)):
            rng.choice(CHANGES)(model.graph, rng)
        try:
            simplify(model)
        except ZoiError as error:
            refused += 1
            assert "model " in str(error)
    assert 0 < refused < ROUNDS
