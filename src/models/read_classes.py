"""Writes content/models/classes.json: the values that transformers' configuration classes use for missing keys.

read_classes.py TRANSFORMERS content/models/classes.json

TRANSFORMERS is a checkout of huggingface/transformers. Its configuration_*.py are parsed, never run, so nothing else is
needed. What a class computes in code that this program does not follow stands in corrections.json beside the result,
each with its source; correct that file when a new version of transformers makes an entry wrong. The rows are described in
src/models/classes.h.
"""

import ast
import json
import operator
import re
import subprocess
import sys
from pathlib import Path

UNKNOWN = object()
ARITHMETIC = {ast.Add: operator.add, ast.Div: operator.truediv, ast.Mult: operator.mul}

# The keys that src/models reads, or that tell readers of a file what its position depends on.
KEYS = frozenset("""
alibi alibi_bias_max attention_chunk_size attention_context_left attention_context_right attention_head_size attention_heads
attention_logit_cap attention_multiplier attention_window attention_window_size attn_layer_offset attn_layer_period
attn_logit_softcapping attn_scale attn_temperature_tuning axial_pos_embds block_size block_types compress_rope_theta
context_length context_size cross_attention_frequency d_head d_kv d_model decoder_attention_heads decoder_layers
decoder_num_attention_heads decoder_num_hidden_layers depth depths dim dim_head emb_dim embed_dim embed_dims embedding_size
encoder_attention_heads encoder_layers encoder_num_attention_heads encoder_num_hidden_layers floor_scale fpn_hidden_size
global_attn_every_n_layers has_relative_attention_bias has_spatial_attention_bias head_dim hidden_size hidden_sizes
image_size input_embedding_size is_decoder kv_channels left_max_position_embeddings local_attention
max_2d_position_embeddings max_bucket_distance max_decoder_position_embeddings max_encoder_position_embeddings max_img_size
max_pos_emb max_position_embeddings max_rel_2d_pos max_rel_pos max_relative_positions max_seq_len max_source_positions
max_speech_positions max_target_positions max_text_positions max_window_layers n_ctx n_embd n_head n_heads n_layer
n_layers n_positions no_rope_layer_interval norm_rel_ebd num_attention_heads num_buckets num_conv_pos_embedding_groups
num_conv_pos_embeddings num_decoder_layers num_encoder_layers num_frames num_heads num_hidden_layers num_layers num_patches
num_position_embeddings original_max_position_embeddings pad_token_id partial_rotary_factor patch_size pos_att_type
position_bias_max_distance position_bias_num_buckets position_biased_input position_buckets position_embedding_size
position_embedding_type position_embeddings_type positional_encoding_type pretrain_image_size pretrained_window_sizes
projection_dim qk_nope_head_dim qk_rope_head_dim query_pre_attn_scalar rel_2d_pos_bins rel_pos_bins
relative_attention relative_attention_max_distance relative_attention_num_buckets right_max_position_embeddings
rope_interleave rope_parameters rope_theta rotary_dim rotary_embedding_base rotary_pct rotary_value share_att_key
sinusoidal_embeddings sinusoidal_pos_embds sliding_window sliding_window_pattern sliding_window_size
speech_encoder_layers swa_head_dim t2u_decoder_layers t2u_encoder_layers t2u_max_position_embeddings temporal_patch_size
tubelet_size use_absolute_embeddings use_absolute_position_embeddings use_bidirectional_attention
use_learned_position_embeddings use_mem_rope use_positional_embedding use_qformer_text_input use_relative_position_bias
use_relative_position_embeddings use_rotary_embedding use_shared_relative_position_bias use_sliding_window
window_block_indices window_size
""".split())

# The common keys for which a family may have a name of its own.
NAMED = frozenset("hidden_size num_attention_heads num_hidden_layers max_position_embeddings head_dim layer_types "
                  "sliding_window".split())


def value_of(node):
    """The value of a literal, or of a validated field's default; UNKNOWN for other code."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        pass
    if isinstance(node, ast.Call):  # interval(min=0.0, max=1.0)(default=0.02)
        for keyword in node.keywords:
            if keyword.arg == "default":
                return value_of(keyword.value)
    return UNKNOWN


def of_self(node):
    """The name in `self.name`, or None."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else None


class ConfigClass:
    """A class with what it inherits: its fields, and the code that completes them."""

    def __init__(self, node, bases, owners):
        self.name, self.fields, self.methods, self.owners = node.name, {}, {}, owners
        for base in bases:
            self.fields.update(base.fields)
            self.methods.update(base.methods)
        for item in node.body:
            if isinstance(item, ast.AnnAssign) and item.value is not None:
                self.fields[item.target.id] = item.value
            elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                self.fields[item.targets[0].id] = item.value
            elif isinstance(item, ast.FunctionDef):
                self.methods[item.name] = item

    def value(self, name, otherwise=None):
        return value_in(self, self.fields[name]) if name in self.fields else otherwise

    def type(self):
        """model_type, or "=ClassName" for a class that only parts have."""
        kind = self.value("model_type")
        return kind if kind and self.owners.get(kind, self.name) == self.name else "=" + self.name

    def code(self):
        """The statements and expressions that complete an object for which nothing is given, in order."""
        for name in ("__post_init__", "convert_rope_params_to_dict"):
            nodes = ast.walk(self.methods[name]) if name in self.methods else ()
            yield from sorted((node for node in nodes if hasattr(node, "lineno")), key=lambda node: node.lineno)


def owners_of_types(transformers):
    """The class of each model_type, where two classes have the same: CONFIG_MAPPING_NAMES."""
    path = transformers / "src/transformers/models/auto/auto_mappings.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "CONFIG_MAPPING_NAMES":
            return dict(ast.literal_eval(node.value.args[0]))
    sys.exit(f"{path}: CONFIG_MAPPING_NAMES is missing")


def read_classes(transformers):
    nodes, owners = {}, owners_of_types(transformers)
    for path in sorted(transformers.glob("src/transformers/models/*/configuration_*.py")):
        if path.parent.name == "auto":  # maps names to classes
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                nodes.setdefault(node.name, node)
    made = {}

    def make(name):
        if name not in made:
            bases = [make(base.id) for base in nodes[name].bases if isinstance(base, ast.Name) and base.id in nodes]
            made[name] = ConfigClass(nodes[name], bases, owners)
        return made[name]

    return {name: make(name) for name in nodes}


def is_plain(value):
    return value is not UNKNOWN and value is not None


def calls(cls, owner, method):
    """The literal arguments of `owner.method(...)` in the code of a class; owner is "kwargs" or "rope_parameters"."""
    for node in cls.code():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method):
            continue
        of = node.func.value
        if owner == (of.id if isinstance(of, ast.Name) else of_self(of)):
            yield [value_of(argument) for argument in node.args]


def value_in(cls, node):
    """The value of an expression in the code of a class, which may use fields and local dictionaries. A dictionary has no
    entries for what is computed."""
    if of_self(node) in cls.fields:
        return cls.value(of_self(node))
    if isinstance(node, ast.Name):
        for other in cls.code():
            if isinstance(other, ast.Assign) and isinstance(other.targets[0], ast.Name) and other.targets[0].id == node.id:
                return value_in(cls, other.value) if isinstance(other.value, ast.Dict) else UNKNOWN
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        values = value_in(cls, node.left), value_in(cls, node.right)
        return ARITHMETIC[type(node.op)](*values) if all(isinstance(one, (int, float)) for one in values) else UNKNOWN
    if not isinstance(node, ast.Dict) or None in node.keys:
        return value_of(node)
    entries = {value_of(key): value_in(cls, entry) for key, entry in zip(node.keys, node.values)}
    return {key: entry for key, entry in entries.items() if is_plain(entry)}


def rope_of(cls):
    """rope_theta, rope_parameters and what else a class sets itself for rope."""
    found = {}
    theta = cls.value("default_theta")
    if isinstance(theta, (int, float)) and theta != 10000:
        found["rope_theta"] = theta
    for key, *given in calls(cls, "kwargs", "setdefault"):
        if key == "partial_rotary_factor" and given and is_plain(given[0]):
            found.setdefault(key, given[0])
    for key, *given in list(calls(cls, "kwargs", "get")) + list(calls(cls, "kwargs", "pop")):
        if key in ("partial_rotary_factor", "rotary_pct", "global_head_dim") and given and is_plain(given[0]):
            found[key] = given[0]
    for node in cls.code():
        if isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and len(node.targets) == 1):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            is_rope = of_self(target) == "rope_parameters" or (
                isinstance(target, ast.Name) and target.id.startswith("default_rope_param"))
            made = value_in(cls, node.value) if is_rope and isinstance(node.value, ast.Dict) else UNKNOWN
            if is_plain(made) and made:
                found["rope_parameters"] = made
            is_partial = isinstance(target, ast.Subscript) and value_of(target.slice) == "partial_rotary_factor"
            if is_partial and isinstance(target.value, ast.Name) and is_plain(value_of(node.value)):
                found["partial_rotary_factor"] = value_of(node.value)
    types = found.get("rope_parameters", {})
    if types == {"rope_type": "default", "rope_theta": theta}:  # said by default_theta already
        types = found.pop("rope_parameters") and {}
    if types and not any(isinstance(entry, dict) for entry in types.values()):
        types.setdefault("rope_type", types.get("type", "default"))  # as standardize_rope_params does
    if "full_attention" in types:  # one dictionary for each type of layers
        bases = theta if isinstance(theta, dict) else {"global": theta or 10000, "local": theta or 10000}
        for name, key in (("full_attention", "global"), ("sliding_attention", "local")):
            if name in types and "rope_theta" not in types[name]:
                types[name]["rope_theta"] = bases[key]
        if not isinstance(theta, dict):
            found.pop("rope_theta", None)
    return found


class Parts:
    """The configs within a config: how a class makes them if a file has none, and what it adds to those of a file."""

    def __init__(self, classes):
        self.classes = classes

    def of(self, cls):
        found = {}
        declared = cls.fields.get("sub_configs")
        keys = [value_of(key) for key in declared.keys] if isinstance(declared, ast.Dict) else []
        names = dict(zip(keys, declared.values)) if keys else {}
        for key in keys:
            part = self.made(cls, key, names)
            if part:
                found[key] = part
            if part and key == "text_config" and self.is_flat(cls):
                found["flat"] = True
        return found

    @staticmethod
    def is_flat(cls):
        """Whether text_config is made from the keys at the top: self.sub_configs["text_config"](**kwargs)."""
        for node in cls.code():
            if isinstance(node, ast.Assign) and of_self(node.targets[0]) == "text_config" and isinstance(node.value, ast.Call):
                names = [keyword.value for keyword in node.value.keywords if keyword.arg is None]
                if any(isinstance(name, ast.Name) and name.id in ("kwargs", "text_kwargs") for name in names):
                    return True
        return False

    def made(self, cls, key, names):
        own, usual, is_empty, is_merged = None, None, False, False
        for node in cls.code():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and of_self(node.func.value) == key:
                given = [value_of(argument) for argument in node.args]
                if node.func.attr == "get" and given[0] == "model_type" and len(given) == 2 and is_plain(given[1]):
                    usual = {"model_type": given[1]}
            if not isinstance(node, ast.Assign):
                continue
            is_key = of_self(node.targets[0]) == key
            is_local = isinstance(node.targets[0], ast.Name) and node.targets[0].id == key
            if is_key and isinstance(node.value, ast.Call):
                part, from_file = self.constructed(cls, node.value, key, names)
                if part and from_file:
                    usual = usual or part
                elif part:
                    own = own or part
                is_merged = is_merged or (from_file and "_default_" in ast.unparse(node.value))
            elif is_key or is_local:
                branches = (node.value.body, node.value.orelse) if isinstance(node.value, ast.IfExp) else (node.value,)
                is_empty = is_empty or any(isinstance(one, ast.Dict) for one in branches)
                for call in (one for one in branches if isinstance(one, ast.Call)):
                    own = own or self.constructed(cls, call, key, names)[0]
            elif isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Tuple):
                if of_self(node.targets[0].elts[0]) == key:
                    own = own or self.backbone(cls, node.value)
        part = own or (usual if is_empty else None)
        if part and is_merged:
            part = {"model_type": part["model_type"], "merged": True, **part}
        return part

    def typed(self, name):
        return {"model_type": self.classes[name].type()} if name in self.classes else None

    @staticmethod
    def backbone(cls, call):
        """consolidate_backbone_kwargs_to_config(default_config_type=…, default_config_kwargs={…})"""
        given = {keyword.arg: value_in(cls, keyword.value) for keyword in call.keywords}
        if {"timm_default_kwargs", "default_backbone"} <= given.keys():
            return {"model_type": "timm_backbone"}
        kind, changes = given.get("default_config_type"), given.get("default_config_kwargs")
        return {"model_type": kind, **(changes if isinstance(changes, dict) else {})} if is_plain(kind) else None

    def constructed(self, cls, call, key, names):
        """The part that a call makes, and whether the file's own keys go into it."""
        function, part = call.func, None
        if isinstance(function, ast.Attribute) and function.attr in ("for_model", "from_dict"):
            first = value_of(call.args[0]) if call.args else None
            of = function.value
            part = ({"model_type": first} if function.attr == "for_model" and isinstance(first, str) else
                    self.constructed(cls, ast.Call(of, [], []), key, names)[0])
        elif isinstance(function, ast.Name):
            part = self.typed(function.id)
        elif isinstance(function, ast.Subscript):
            kind = value_of(function.slice)
            if of_self(function.value) == "sub_configs":
                part = self.typed(names[kind].id) if kind in names and isinstance(names[kind], ast.Name) else None
            elif isinstance(kind, str):
                part = {"model_type": kind}
        names_used = [node for keyword in call.keywords for node in ast.walk(keyword.value)]
        from_file = any(of_self(node) == key or (isinstance(node, ast.Name) and node.id == key) for node in names_used)
        if part:
            for keyword in call.keywords:
                given = value_in(cls, keyword.value)
                if keyword.arg is None:
                    part.update(given if isinstance(given, dict) else {})
                elif given is not UNKNOWN and keyword.arg != "model_type":
                    part[keyword.arg] = given
        return part, from_file


def whole(value):
    """8.0 as 8: numbers as a config.json usually has them."""
    if isinstance(value, dict):
        return {key: whole(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [whole(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def row_of(cls, parts):
    found = parts.of(cls)
    row = {key: found.get(key) or cls.value(key) for key in cls.fields
           if key in found or (key in KEYS and is_plain(cls.value(key)))}
    row.update({key: value for key, value in {**rope_of(cls), **found}.items() if key not in row})
    names = cls.value("attribute_map", {})
    if isinstance(names, dict):
        used = {key: own for key, own in names.items() if key in NAMED and own in cls.fields}
        row.update({"names": used} if used else {})
    return whole(row)


def place_of(name):
    """The order in which the values of a part are listed as assumed: sizes first, rope_parameters last."""
    order = ("model_type", "merged", "head_dim", "hidden_size", "num_hidden_layers", "num_attention_heads")
    return order.index(name) if name in order else len(order) + (name == "rope_parameters")


def without_defaults(row, rows):
    """Of what a class gives to a part, the keys that differ from the default of the part's class."""
    for key, part in row.items():
        if not isinstance(part, dict) or "model_type" not in part:
            continue
        usual = rows.get(part["model_type"], {})
        if "rope_theta" in part:  # where transformers 5 keeps it
            part["rope_parameters"] = {"rope_theta": part.pop("rope_theta"), "rope_type": "default"}
        if part.get("rope_parameters") == {"rope_theta": usual.get("rope_theta", 10000), "rope_type": "default"}:
            del part["rope_parameters"]
        row[key] = {name: part[name] for name in sorted(part, key=place_of)
                    if name in ("model_type", "merged") or (name in KEYS and usual.get(name) != part[name])}
    return row


def changed(old, changes):
    """A dictionary with changes, where null removes a key."""
    return {key: value for key, value in {**old, **changes}.items() if value is not None or key not in changes}


def corrected(rows, corrections):
    """Adds what was read by hand: null removes a row or a key, {"text_config": {"a": 1}} changes a key of a part."""
    for source, changed_rows in corrections.items():
        for name, changes in changed_rows.items():
            if name not in rows:
                sys.exit(f"corrections.json: {source}: {name} is not a class of this version")
            if changes is None:
                del rows[name]
                continue
            whole_values = {key: changed(rows[name][key], value) if isinstance(value, dict) and key in rows[name] else value
                            for key, value in changes.items()}
            row = changed(rows[name], whole_values)
            if row == rows[name]:
                print(f"corrections.json: {source}: {name} needs no correction any more", file=sys.stderr)
            rows[name] = row
    return rows


def is_copy(cls):
    """Whether a class has the model_type of another one."""
    return cls is not None and cls.type() != cls.value("model_type") and bool(cls.value("model_type"))


def version_of(transformers):
    text = (transformers / "src/transformers/__init__.py").read_text(encoding="utf-8")
    commit = subprocess.run(["git", "-C", transformers, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    version = re.search(r'__version__ = "([^"]+)"', text).group(1)
    return f"transformers {version}" + (f" ({commit})" if commit else "")


def text_of(source, rows):
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(rows[name], separators=(',', ':'), ensure_ascii=False)}"
                       for name in sorted(rows, key=lambda name: name.lstrip("=").lower()))
    return f"{{\n  {json.dumps(source)}: {{\n{lines}\n  }}\n}}\n"


def main():
    if len(sys.argv) != 3 or not (Path(sys.argv[1]) / "src/transformers/models").is_dir():
        sys.exit("usage: read_classes.py TRANSFORMERS content/models/classes.json, where TRANSFORMERS is a checkout")
    transformers, target = Path(sys.argv[1]), Path(sys.argv[2])
    classes = read_classes(transformers)
    parts = Parts(classes)
    rows = {}
    for cls in classes.values():
        rows.setdefault(cls.type(), row_of(cls, parts))
    rows = {name: without_defaults(row, rows) for name, row in rows.items()}
    used = {part["model_type"] for row in rows.values() for part in row.values()
            if isinstance(part, dict) and "model_type" in part}
    rows = {name: row for name, row in rows.items() if not is_copy(classes.get(name[1:])) or name in used}
    corrections = json.loads((target.parent / "corrections.json").read_text(encoding="utf-8"))
    rows = corrected(rows, corrections)
    target.write_text(text_of(version_of(transformers), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
