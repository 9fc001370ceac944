"""Random networks: folding and fusing keep what they compute, whatever is read twice or is an output as well."""

import numpy as np
import onnxruntime
import pytest

import zoi
from tests.passes.nets import feeds_of, net, node

NETS, SEEDS = 40, range(8)
SIMPLE = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSigmoid", "HardSwish", "Softplus", "Neg", "Abs", "Erf")
# Of the largest element; and of results that are nothing but rounding errors.
TOLERANCE, SMALLEST = 2e-4, 1e-3


class Writer:
    """Nodes written one after the other, each reading one or two of the latest values."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], {}
        self.inputs = [{"x": (1, 4, 6, 5)}, {"x": (2, 6, 8)}, {"x": (1, 4, 6, 5), "z": (2, 6, 8)}][self.choice(3)]
        self.values = list(self.inputs.items())

    def choice(self, options):
        return int(self.rng.integers(options)) if isinstance(options, int) else options[self.rng.integers(len(options))]

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def put(self, op, inputs, shape, **attributes):
        name = f"v{len(self.values)}"
        self.nodes.append(node(op, " ".join(inputs), name, **attributes))
        self.values.append((name, tuple(int(n) for n in shape)))
        return name

    def pick(self, *ranks):
        found = [v for v in (*self.values[-6:], self.values[0]) if not ranks or len(v[1]) in ranks]
        return self.choice(found) if found else None

    def like(self, shape):
        return self.choice([name for name, s in self.values if s == shape])

    def conv(self, x, s):
        kernel, stride, group = self.choice([1, 1, 3]), self.choice([1, 1, 2]), self.choice([1, 1, s[1]])
        pad = self.choice([0, kernel // 2])
        if min(s[2:]) + 2 * pad < kernel:
            return
        outputs = group * self.choice([1, 2]) if group > 1 else self.choice([s[1], 4, 1, 6])
        parts = [x, self.constant(0.4 * self.normal(outputs, s[1] // group, kernel, kernel))]
        parts += [self.constant(self.normal(outputs))] if self.choice(2) else []
        size = [(n + 2 * pad - kernel) // stride + 1 for n in s[2:]]
        self.put("Conv", parts, (s[0], outputs, *size), group=group, pads=[pad] * 4, strides=[stride] * 2)

    def pool(self, x, s):
        pad, stride, op = self.choice(2), self.choice([1, 2]), self.choice(["MaxPool", "AveragePool"])
        if min(s[2:]) + 2 * pad >= 3:
            size = [(n + 2 * pad - 3) // stride + 1 for n in s[2:]]
            self.put(op, [x], (*s[:2], *size), kernel_shape=[3, 3], pads=[pad] * 4, strides=[stride] * 2)

    def pad(self, x, s):
        pads = [0, 0, *self.rng.integers(0, 3, 2), 0, 0, *self.rng.integers(0, 3, 2)]
        if min(s[2:]) >= 3:
            shape = [n + pads[d] + pads[d + 4] for d, n in enumerate(s)]
            self.put(
                "Pad", [x, self.constant(np.array(pads))], shape, mode=self.choice(["constant", "reflect", "edge"])
            )

    def norm(self, x, s):
        c = s[1]
        parts = [self.normal(c), self.normal(c), self.normal(c), np.abs(self.normal(c)) + np.float32(0.1)]
        self.put("BatchNormalization", [x, *map(self.constant, parts)], s)

    def constant_term(self, x, s):
        shape = self.choice([(), s[-1:], tuple(n if self.choice(2) else 1 for n in s)])
        number = self.normal(*shape)
        number = self.constant(np.asarray(np.sign(number) * (np.abs(number) + 0.2), np.float32))
        self.put(self.choice(["Add", "Mul", "Sub", "Div", "Max", "Min"]), [x, number], s)

    def product(self, x, s):
        n = self.choice([s[-1], 4, 7])
        y = self.put("MatMul", [x, self.constant(0.4 * self.normal(s[-1], n))], (*s[:-1], n))
        if self.choice(2):
            self.put("Add", [y, self.constant(self.normal(n))], (*s[:-1], n))

    def attention(self, x, s):
        y, scores = self.like(s), (*s[:-1], s[-2])
        perm = [*range(len(s) - 2), len(s) - 1, len(s) - 2]
        flipped = self.put("Transpose", [y], [s[p] for p in perm], perm=perm)
        v = self.put("MatMul", [x, flipped], scores)
        if self.choice(2):
            v = self.put("Div", [v, self.constant(np.float32(3))], scores)
        if self.choice(2):
            v = self.put("Add", [v, self.constant(self.normal(*scores))], scores)
        self.put("MatMul", [self.put("Softmax", [v], scores), y], s)

    def layer_norm(self, x, s):
        row = (*s[:-1], 1)
        centred = self.put("Sub", [x, self.put("ReduceMean", [x], row, axes=[-1])], s)
        square = self.put("ReduceMean", [self.put("Mul", [centred, centred], s)], row, axes=[-1])
        root = self.put("Sqrt", [self.put("Add", [square, self.constant(np.float32(0.1))], row)], row)
        y = self.put("Div", [centred, root], s)
        self.put("Add", [self.put("Mul", [y, self.constant(self.normal(s[-1]))], s), self.constant(self.normal())], s)

    def move(self, x, s):
        perm = [int(p) for p in self.rng.permutation(len(s))]
        flat = (s[0], int(np.prod(s[1:])))
        if self.choice(2):
            self.put("Transpose", [x], [s[p] for p in perm], perm=perm)
        else:
            self.put("Reshape", [x, self.constant(np.array(flat))], flat)

    def simple(self, x, s):
        self.put(self.choice(SIMPLE), [x], s)

    def gate(self, x, s):
        self.put("Mul", [x, self.put("Sigmoid", [x], s)], s)

    def pair(self, x, s):
        self.put(self.choice(["Add", "Add", "Mul", "Sub", "Max"]), [x, self.like(s)], s)

    def write(self):
        images = (self.conv, self.conv, self.pool, self.pad)
        rows = (self.product, self.attention, self.layer_norm, self.move)
        others = (self.simple, self.simple, self.pair, self.pair, self.constant_term, self.constant_term, self.gate)
        for _ in range(self.rng.integers(3, 14)):
            step = self.choice([*images, *rows, *others, self.norm])
            ranks = (4,) if step in images else (2, 3, 4) if step in rows else (3, 4) if step == self.norm else ()
            picked = self.pick(*ranks)
            if picked:
                step(*picked)
        if len(self.values) == len(self.inputs):
            self.simple(*self.values[0])
        made = [name for name, _ in self.values if name not in self.inputs]
        outputs = {made[-1], *(self.choice(made) for _ in range(self.choice(3)))}
        return net(self.nodes, self.inputs, sorted(outputs), self.constants)


@pytest.mark.parametrize("seed", SEEDS)
def test_agrees(seed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    for number in range(NETS):
        model = Writer([seed, number]).write()
        feeds = feeds_of(model, number)
        expected = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
        found = zoi.Session(zoi.compile(model, arch="generic"))(feeds)
        for value, array in zip(model.graph.output, expected, strict=True):
            scale = max(float(np.abs(array).max()), SMALLEST)
            np.testing.assert_allclose(found[value.name], array, rtol=0, atol=TOLERANCE * scale, err_msg=f"{number}")
