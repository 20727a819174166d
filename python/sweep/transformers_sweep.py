"""Every model class of transformers, tiny and random: built, watched, with faults planted, and computed by posenc.

    transformers_sweep.py CHECKOUT OUT.json [NAME…]      CHECKOUT: a checkout of transformers, whose tests know how to build each
    transformers_sweep.py --table OUT.json… > TABLE.md

The tiny configs and inputs are those of transformers' own tests (tests/models/NAME); their weights are drawn anew, large enough
that scores differ. A class counts as built if its forward runs. What is planted: see FAULTS. A fault that does not change the
model's output is not counted. Each model is a process of its own, with a limit of time.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import signal
import sys
import time
import unittest
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

LIMIT = 150  # seconds for one model
KINDS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "ForMaskedLM", "Model")


# --- what is built --------------------------------------------------------------------------------------------------------


def cases_of(name):
    """The test cases of a folder of tests/models that have a tester with a config."""
    for file in sorted(Path(f"{ROOT}/tests/models/{name}").glob("test_modeling_*.py")):
        if "_flax_" in file.name or "_tf_" in file.name:
            continue
        module = importlib.import_module(f"tests.models.{name}.{file.stem}")
        for one in vars(module).values():
            if inspect.isclass(one) and issubclass(one, unittest.TestCase) and one.__module__ == module.__name__ \
                    and (getattr(one, "all_model_classes", ()) or getattr(one, "model_tester_class", None)):
                yield one


def chosen(classes):
    for kind in KINDS:
        for one in classes:
            if one.__name__.endswith(kind):
                return one
    return classes[0]


def drawn(model):
    """Weights that make scores differ: products of variance 1, norms and biases near what they are."""
    import torch

    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, one in model.named_parameters():
            if not one.is_floating_point():
                continue
            noise = torch.randn(one.shape, generator=generator).to(one.dtype)
            if one.dim() >= 2 and "norm" not in name:
                is_projection = any(word in name for word in ("q_proj", "k_proj", "query", "key", "qkv", "c_attn", "in_proj", ".q.", ".k.", "Wqkv"))
                one.copy_(noise * (1.6 if is_projection else 1.0) / max(1, one.numel() / one.shape[0]) ** 0.5)
            elif "A_log" not in name and "dt_" not in name:
                one.add_(0.1 * noise)


def few(inputs):
    """Two rows are enough, where all tensors have the same number of rows."""
    import torch

    rows = {one.shape[0] for one in inputs.values() if isinstance(one, torch.Tensor) and one.dim()}
    if len(rows) != 1 or any("grid" in name for name in inputs):
        return inputs
    return {name: one[:2] if isinstance(one, torch.Tensor) and one.dim() else one for name, one in inputs.items()}


def outputs(model, inputs):
    import torch

    def tensors(value):
        if isinstance(value, torch.Tensor):
            return [value.float()] if value.is_floating_point() else []
        parts = value.values() if hasattr(value, "values") else value if isinstance(value, (tuple, list)) else ()
        return [found for one in parts for found in tensors(one)]

    with torch.no_grad():
        torch.manual_seed(0)
        return tensors(model(**inputs))


def difference(ours, theirs):
    """The largest, relative to the largest value of its tensor."""
    import torch

    most = 0.0
    for a, b in zip(ours, theirs):
        if a.shape != b.shape:
            continue
        finite = torch.isfinite(b)
        if bool(finite.any()) and float(b[finite].abs().max()):
            off = float((a - b)[finite].abs().max()) / float(b[finite].abs().max())
            most = max(most, off if off == off else float("inf"))
    return most


def without_padding(tensors, inputs):
    """Outputs of tokens: of padding, engines give what they like."""
    found = []
    for one in tensors:
        for name in ("attention_mask", "decoder_attention_mask"):
            mask = inputs.get(name)
            if mask is not None and mask.dim() == 2 and one.shape[:2] == mask.shape:
                one = one * (mask != 0).reshape(*mask.shape, *(1,) * (one.dim() - 2))
        found.append(one)
    return found


# --- what is planted --------------------------------------------------------------------------------------------------


def faulty_options(fault, module, query, key, value, mask, options):
    """The arguments of an attention function with a fault in them."""
    import torch

    if fault == "scale":
        scale = options.get("scaling") or getattr(module, "scaling", None) or query.shape[-1] ** -0.5
        options = {**options, "scaling": 1.3 * scale}
    elif fault == "mask":
        causal = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril(key.shape[2] - query.shape[2])
        was_causal = getattr(module, "is_causal", False) if options.get("is_causal") is None else options["is_causal"]
        was_causal = was_causal or (mask is not None and not bool((mask[..., 0, -1] == 0).any() if mask.dtype != torch.bool else mask[..., 0, -1].any()))
        causal = torch.ones_like(causal) if was_causal else causal
        mask = torch.zeros(causal.shape).masked_fill(~causal, -1e30)[None, None]
        options = {**options, "is_causal": False}
    elif fault == "heads" and key.shape[1] > 1:
        key = key.roll(1, 1)
    elif fault == "values" and value.shape[1] > 1:
        value = value.roll(1, 1)
    return query, key, value, mask, options


@contextmanager
def planted(fault, model):
    """The model, or the functions that it calls, with a fault; all is put back."""
    import torch
    from torch.overrides import TorchFunctionMode
    from transformers.modeling_utils import AttentionInterface

    inside = []

    def of(function):
        def call(module, query, key, value, attention_mask=None, *arguments, **options):
            names = list(inspect.signature(function).parameters)[5:]
            options = {**dict(zip(names, arguments)), **options}
            query, key, value, mask, options = faulty_options(fault, module, query, key, value, attention_mask, options)
            inside.append(1)
            try:
                return function(module, query, key, value, mask, **options)
            finally:
                inside.pop()
        return call

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            name = getattr(function, "__name__", "")
            if not inside and name == "softmax" and args[0].dim() >= 3 and fault in ("scale", "mask", "heads"):
                scores = args[0]
                if fault == "scale":
                    scores = torch.where(scores > -1e4, 1.3 * scores, scores)
                elif fault == "mask":
                    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
                    is_causal = bool((scores[..., 0, -1] < -1e4).all())
                    scores = scores.masked_fill(scores < -1e4, 0.0) if is_causal else scores.masked_fill(hidden, -1e9)
                elif scores.dim() == 4:
                    scores = scores.roll(1, 1)
                args = (scores, *args[1:])
            elif not inside and name == "scaled_dot_product_attention" and fault in ("scale", "mask", "heads", "values"):
                named = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args), **kwargs)
                if fault == "scale":
                    named["scale"] = 1.3 * (named.get("scale") or named["query"].shape[-1] ** -0.5)
                elif fault == "mask":
                    named["is_causal"] = not named.get("is_causal") and named.get("attn_mask") is None
                    named["attn_mask"] = None
                elif fault == "heads":
                    named["key"] = named["key"].roll(1, 1)
                else:
                    named["value"] = named["value"].roll(1, 1)
                args, kwargs = (), named
            return function(*args, **kwargs)

    theirs = AttentionInterface.get_interface
    buffers = [(one, name) for one in model.modules() for name, _ in one.named_buffers(recurse=False) if name.endswith("inv_freq")]
    try:
        AttentionInterface.get_interface = lambda self, *arguments, **options: of(theirs(self, *arguments, **options))
        if fault == "frequencies":
            for one, name in buffers:
                getattr(one, name).mul_(0.9)
        if fault in ("positions", "direction"):
            hooks = []
            for module in {one for one, _ in buffers}:
                if fault == "direction":
                    hooks.append(module.register_forward_hook(lambda _, __, out: (out[0], -out[1]) if isinstance(out, tuple) and len(out) == 2 else None))
                else:
                    hooks.append(module.register_forward_pre_hook(shifted, with_kwargs=True))
        with Mode():
            yield
    finally:
        AttentionInterface.get_interface = theirs
        if fault == "frequencies":
            for one, name in buffers:
                getattr(one, name).div_(0.9)
        if fault in ("positions", "direction"):
            for hook in hooks:
                hook.remove()


def shifted(module, arguments, options):
    """Integer positions 3, 2, 1 … in place of 0, 1, 2 …: their distances differ."""
    import torch

    def turned(x):
        return x.flip(-1) if isinstance(x, torch.Tensor) and x.dtype in (torch.int64, torch.int32) and x.dim() >= 2 else x

    return tuple(turned(one) for one in arguments), {name: turned(one) for name, one in options.items()}


FAULTS = ("scale", "mask", "heads", "values", "frequencies", "positions", "direction")


# --- one model ------------------------------------------------------------------------------------------------------------


def line_of(error):
    return f"{type(error).__name__}: {error}".split("\n")[0][:200]


def swept(kind):
    """What happened to the class of a test case."""
    import torch
    import posenc
    import posenc.transformers

    row = {"built": False, "class": ""}
    try:
        case = kind(next(one for one in ("setUp", "runTest", *dir(kind)) if hasattr(kind, one) and (one == "setUp" or one.startswith("test_"))))
        case.setUp()
        config, inputs = case.model_tester.prepare_config_and_inputs_for_common()
        row["model_type"] = config.model_type
        kind_of_model = chosen(case.all_model_classes)
        row["class"] = kind_of_model.__name__
        inputs = few(case._prepare_for_class(inputs, kind_of_model))
        config._attn_implementation = "eager"
        torch.manual_seed(0)
        model = kind_of_model(config).float().eval()
        first = outputs(model, inputs)
        drawn(model)
        plain = outputs(model, inputs)
        if any(not bool(torch.isfinite(one).all()) for one in plain) and all(bool(torch.isfinite(one).all()) for one in first):
            torch.manual_seed(0)
            model = kind_of_model(config).float().eval()
            plain = outputs(model, inputs)
        if difference(outputs(model, inputs), plain) > 1e-6:
            row["error"] = "its output is random"
            return row
    except Exception as error:  # noqa: BLE001  (whatever a class raises)
        row["error"] = line_of(error)
        return row
    row["built"] = True
    try:
        report = posenc.watch(model, **inputs)
        row["layers"] = len(report.layers)
        row["rotations"] = sum(one.q is not None for one in report.layers)
        row["attentions"] = sum(one.attention is not None and one.attention.verdict == "agrees" for one in report.layers)
        row["watch"] = "differs" if any(not one.agrees for one in report.layers) else "agrees" if report else "not seen"
        row["words"] = " / ".join(one for layer in report.layers for one in layer.lines())[:300] if row["watch"] == "differs" else \
            " / ".join(sorted({layer.unseen() for layer in report.layers if not layer.is_seen}))[:300]
    except Exception as error:  # noqa: BLE001
        has_none = str(error).startswith("watch: no module")
        row["watch"], row["words"] = "no attention" if has_none else "not seen", line_of(error)
    if row["watch"] == "agrees":
        row["faults"] = {fault: found for fault in FAULTS if (found := fault_found(fault, model, inputs, plain)) is not None}
    try:
        posenc.transformers.use(model, inputs=inputs)
        off = difference(without_padding(outputs(model, inputs), inputs), without_padding(plain, inputs))
        row["use"] = "usable" if off < 1e-3 else f"differs by {off:.2g}"
    except Exception as error:  # noqa: BLE001
        row["use"] = f"refused: {line_of(error)}"
        row["left"] = difference(outputs(model, inputs), plain) < 1e-6
        try:
            posenc.transformers.use(model, inputs=inputs, rotary=None)
            off = difference(without_padding(outputs(model, inputs), inputs), without_padding(plain, inputs))
            row["use"] = "attention alone: " + row["use"] if off < 1e-3 else f"differs by {off:.2g}"
        except Exception:  # noqa: BLE001
            pass
    return row


def fault_found(fault, model, inputs, plain):
    """Whether watch finds a fault; "said": it does not, and says that it could not see such things; None if it changes nothing, or cannot be planted."""
    import posenc

    try:
        with planted(fault, model):
            if not difference(outputs(model, inputs), plain) > 1e-3:
                return None
            report = posenc.watch(model, **inputs)
    except Exception:  # noqa: BLE001
        return None
    if not report:
        return True
    words = ("rotation", "position", "attention (") if fault in ("frequencies", "positions", "direction") else ("causal", "mask", "attention (")
    return "said" if any(word in layer.unseen() for layer in report.layers for word in words) else False


def in_a_process(name, number):
    """The row of one test case, from a child, which may take LIMIT seconds."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(LIMIT)
        warnings.simplefilter("ignore")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
        try:
            row = swept(list(cases_of(name))[number])
        except BaseException as error:  # noqa: BLE001
            row = {"built": False, "error": line_of(error)}
        with os.fdopen(write, "w") as out:
            out.write(json.dumps(row))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"built": False, "error": f"ended after {LIMIT} s or by a signal"}


def main(names, out):
    import torch
    import transformers
    import tests.causal_lm_tester  # noqa: F401  (before forking)
    import tests.test_modeling_common  # noqa: F401

    torch.set_num_threads(1)
    rows = json.loads(out.read_text())["rows"] if out.exists() else []
    done = {(row["name"], row["case"]) for row in rows}
    for name in names:
        try:
            cases = [one.__name__ for one in cases_of(name)]
        except Exception as error:  # noqa: BLE001
            rows.append({"name": name, "case": "", "built": False, "error": line_of(error)})
            continue
        for number, case in enumerate(cases):
            if (name, case) in done:
                continue
            start = time.time()
            row = {"name": name, "case": case, **in_a_process(name, number)}
            row["seconds"] = round(time.time() - start, 1)
            rows.append(row)
            print(json.dumps(row), flush=True)
            out.write_text(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__, "rows": rows}))


# --- the table --------------------------------------------------------------------------------------------------------


def table(files):
    data = [json.loads(Path(one).read_text()) for one in files]
    rows = sorted({(row["name"], row["case"]): row for one in data for row in one["rows"]}.values(), key=lambda row: (row["name"], row["case"]))
    built = [row for row in rows if row["built"]]
    attend = [row for row in built if row["watch"] != "no attention"]
    verdicts = Counter(row["watch"] for row in attend)
    faults = Counter((fault, found) for row in attend for fault, found in row.get("faults", {}).items())
    found = sum(count for (_, is_found), count in faults.items() if is_found is True)
    said = sum(count for (_, is_found), count in faults.items() if is_found == "said")
    uses = Counter(row["use"].split(":")[0].split(" by")[0] for row in attend)
    own = sum("computes attention itself" in row["use"] for row in attend)
    left = sum(row.get("left", True) for row in attend if row["use"].startswith(("refused", "attention alone")))
    refused = uses["refused"] + uses["attention alone"]
    print(PAGE.format(transformers=data[0]["transformers"], torch=data[0]["torch"], folders=len({row["name"] for row in rows}), cases=len(rows),
                      built=len(built), without=len(built) - len(attend), attend=len(attend), not_built=len(rows) - len(built)))
    print("| | |\n| --- | --- |")
    print(f"| agree with their config | {verdicts['agrees']} of {len(attend)} |")
    print(f"| differ | {verdicts['differs']} |\n| nothing was seen | {verdicts['not seen']} |")
    print(f"| faults that were found | {found} of {sum(faults.values()) - said} |")
    print(f"| faults in what it said it could not see | {said} |")
    print("".join(f"| … {fault} | {faults[fault, True]} of {faults[fault, True] + faults[fault, False]} |\n" for fault in FAULTS), end="")
    print(f"| computed by posenc after `use` | {uses['usable']} of {len(attend)} |")
    print(f"| … with `rotary=None` alone | {uses['attention alone']} |")
    print(f"| refused by `use`, with an error | {uses['refused']}, of which {own} compute attention themselves |")
    print(f"| silently different after `use` | {uses['differs']} |")
    print(f"| left as they were by an error of `use` | {left} of {refused} |\n")
    print("| model | class | rotations | attentions | watch | faults found | use |\n| --- | --- | --- | --- | --- | --- | --- |")
    for row in attend:
        its = row.get("faults", {})
        missed = ", ".join(fault for fault, is_found in its.items() if is_found is not True)
        print(f"| {row['name']} | {row['class']} | {row.get('rotations', 0)} of {row.get('layers', 0)} | {row.get('attentions', 0)} | {row['watch']} | "
              f"{sum(one is True for one in its.values())} of {len(its)}{', not ' + missed if missed else ''} | {row['use'].split(':')[0]} |")


PAGE = """# transformers, class by class

What `posenc.watch` and `posenc.transformers.use` make of the model classes of transformers {transformers}, with torch {torch} on the CPU,
written by `python/sweep/transformers_sweep.py`. Configs and inputs are the tiny ones of transformers' own tests, one class of each test
case; weights are random. {cases} test cases of {folders} families: {built} could be built here, {without} of them without attention.
{not_built} could not be built: their packages or files are missing on this machine, or their output is random.

A row says how many of the recorded computations had a rotation and an attention that were compared. Planted are: a scale 1.3 times as
large, a mask that is missing or added, keys or values of another head, frequencies times 0.9, positions in reverse, sines with the other
sign. A fault that does not change the model's output is not counted. A verdict without a difference is no proof for what could not be
seen; `report.table()` names that.
"""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--table"]:
        table(sys.argv[2:])
    else:
        if len(sys.argv) < 3:
            sys.exit(__doc__)
        ROOT = sys.argv[1]
        if not Path(f"{ROOT}/tests/models").is_dir():
            sys.exit(f"transformers_sweep.py: {ROOT}/tests/models: no such folder; CHECKOUT is a checkout of transformers")
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                sys.exit(f"transformers_sweep.py: needs {package}, which is not installed")
        sys.path[:0] = [ROOT, f"{ROOT}/utils"]
        folders = sorted(one.name for one in Path(f"{ROOT}/tests/models").iterdir() if one.is_dir())
        main(sys.argv[3:] or folders, Path(sys.argv[2]))
