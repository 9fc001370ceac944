"""A plan as text: every step with its kernel, where its operands lie, and the bytes of the whole."""

from __future__ import annotations

from collections.abc import Sequence

from zoi import _native


def explain(plan: _native.Plan) -> str:
    """Steps, kernels, offsets and exact bytes of a plan."""
    steps, memory = plan.steps, plan.memory(1)
    lines = [f"plan {plan.name} on {plan.arch}: {len(steps)} steps, {sum(s['flops'] for s in steps) / 1e6:.3f} MFLOP"]
    for title, infos in (("input", plan.inputs), ("output", plan.outputs)):
        lines += [f"  {title:6} {i['name']} {i['dtype']}{list(i['shape'])}" for i in infos]
    lines += [f"  state  {output} -> {into}" for into, output in plan.states]
    lines.append("")
    rows = [("step", "name", "kernel", "kFLOP", "slices", "scratch", "operands (role place+offset:bytes)")]
    for index, step in enumerate(steps):
        operands = "  ".join(
            f"{o['role']} {o['place']}+{o['offset']}:{o['bytes']}" for o in step["operands"] if o["bytes"]
        )
        size = f"{step['flops'] / 1e3:.1f}"
        rows.append(
            (str(index), step["name"], step["kernel"], size, str(step["slices"]), str(step["scratch"]), operands)
        )
    lines += table(rows, right=(0, 3, 4, 5))
    lines += ["", "bytes with one lane"]
    keys = ("weights", "arena", "scratch", "bookkeeping", "total", "mapped", "lower_bound")
    notes = {
        "weights": "packed, shared by every session of this plan",
        "arena": f"of a session; no layout needs fewer than {memory['lower_bound']}",
        "mapped": "weights used where they lie, not copied and not in the total",
        "lower_bound": "the largest sum of bytes alive at one step",
    }
    lines += table([(key, str(memory[key]), notes.get(key, "")) for key in keys], right=(1,))  # type: ignore[literal-required]
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as aligned lines; the columns in `right` are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
