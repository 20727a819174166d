"""src/models/read_classes.py on a small tree of configuration classes, one for each form that those of transformers have."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "src/models/read_classes.py"

MAPPINGS = '''
CONFIG_MAPPING_NAMES = OrderedDict([("plain", "PlainConfig"), ("pair", "PairConfig"), ("whole", "WholeConfig")])
'''
PLAIN = '''
class PlainConfig(PreTrainedConfig):
    model_type = "plain"
    attribute_map = {"hidden_size": "n_embd", "num_hidden_layers": "layers_in_code"}
    default_theta = 500000.0
    n_embd: int = 64 * 2
    num_attention_heads: int | None = 8
    head_dim: int | None = None
    vocab_size: int = 1000
    rope_interleave: bool = interval(min=0, max=1)(default=True)

    def __post_init__(self, **kwargs):
        kwargs.setdefault("partial_rotary_factor", 0.25)
        kwargs.setdefault("partial_rotary_factor", 0.5)
        if self.head_dim is None:
            self.head_dim = self.n_embd // self.num_attention_heads


class LaterConfig(PlainConfig):
    model_type = "later"
    num_attention_heads: int = 4


class TypedConfig(PreTrainedConfig):
    model_type = "typed"
    default_theta = {"global": 160_000.0, "local": 10_000.0}

    def convert_rope_params_to_dict(self, **kwargs):
        default_rope_params = {"sliding_attention": {"rope_type": "default"}, "full_attention": {"rope_type": "default"}}


class YarnConfig(PreTrainedConfig):
    model_type = "yarn"
    qk_rope_head_dim: int = 64

    def __post_init__(self, **kwargs):
        if self.rope_parameters is None:
            self.rope_parameters = {"type": "yarn", "factor": 8.0, "partial_rotary_factor": self.qk_rope_head_dim / 128,
                                    "original_max_position_embeddings": computed(self)}
'''
PAIR = '''
class PairTextConfig(PreTrainedConfig):
    model_type = "pair"
    hidden_size: int = 32


class NamelessConfig(PreTrainedConfig):
    hidden_size: int = 48


class PairConfig(PreTrainedConfig):
    model_type = "pair"
    sub_configs = {"text_config": PairTextConfig, "vision_config": AutoConfig, "absent_config": NamelessConfig,
                   "audio_config": AutoConfig, "backbone_config": AutoConfig, "other_config": NamelessConfig}
    _default_audio_config_kwargs = {"n_embd": 16, "rope_theta": 7.0}
    vision_config: dict | None = None
    text_config: dict | None = None

    def __post_init__(self, **kwargs):
        if self.text_config is None:
            self.text_config = self.sub_configs["text_config"](**kwargs)
        if isinstance(self.vision_config, dict):
            self.vision_config = CONFIG_MAPPING[self.vision_config["model_type"]](**self.vision_config)
        elif self.vision_config is None:
            self.vision_config = CONFIG_MAPPING["plain"](num_attention_heads=8, vocab_size=3, head_dim=None, n_embd=4,
                                                          rope_interleave=None)
        if isinstance(self.absent_config, dict):
            self.absent_config = NamelessConfig(**self.absent_config)
        if isinstance(self.audio_config, dict):
            self.audio_config = CONFIG_MAPPING["later"](**{**self._default_audio_config_kwargs, **self.audio_config})
        else:
            self.audio_config = CONFIG_MAPPING["later"](**self._default_audio_config_kwargs)
        self.backbone_config, kwargs = consolidate_backbone_kwargs_to_config(
            backbone_config=self.backbone_config, default_config_type="plain", default_config_kwargs={"n_embd": 2})
        self.other_config = self.other_config if self.other_config is not None else {}
        self.other_config = NamelessConfig(**self.other_config)
'''
EXPECTED = {
    "later": {"n_embd": 128, "num_attention_heads": 4, "rope_interleave": True, "rope_theta": 500000,
              "partial_rotary_factor": 0.25, "names": {"hidden_size": "n_embd"}},
    "=NamelessConfig": {"hidden_size": 48},
    "pair": {"vision_config": {"model_type": "plain", "n_embd": 4, "rope_interleave": None},
             "text_config": {"model_type": "=PairTextConfig"}, "flat": True,
             "audio_config": {"model_type": "later", "merged": True, "n_embd": 16,
                              "rope_parameters": {"rope_theta": 7, "rope_type": "default"}},
             "backbone_config": {"model_type": "plain", "n_embd": 2}, "other_config": {"model_type": "=NamelessConfig"}},
    "=PairTextConfig": {"hidden_size": 32},
    "plain": {"n_embd": 128, "num_attention_heads": 8, "rope_interleave": True, "rope_theta": 500000,
              "partial_rotary_factor": 0.25, "names": {"hidden_size": "n_embd"}},
    "typed": {"rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000},
                                  "full_attention": {"rope_type": "default", "rope_theta": 160000}}},
    "yarn": {"qk_rope_head_dim": 64, "note": "by hand",
             "rope_parameters": {"type": "yarn", "factor": 8, "partial_rotary_factor": 0.5, "rope_type": "yarn"}},
}


class ReadClasses(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.keep = tempfile.TemporaryDirectory()
        self.addCleanup(self.keep.cleanup)
        self.root = Path(self.keep.name)
        for name, text in {"__init__.py": '__version__ = "9.1"\n', "models/auto/auto_mappings.py": MAPPINGS,
                           "models/plain/configuration_plain.py": PLAIN, "models/pair/configuration_pair.py": PAIR}.items():
            path = self.root / "src/transformers" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.correct({"by hand": {"yarn": {"note": "by hand"}}})

    def correct(self, corrections):
        (self.root / "corrections.json").write_text(json.dumps(corrections), encoding="utf-8")

    def run_program(self, *arguments):
        return subprocess.run([sys.executable, "-B", PROGRAM, *arguments], capture_output=True, text=True, check=False)

    def read(self):
        target = self.root / "classes.json"
        result = self.run_program(self.root, target)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(target.read_text(encoding="utf-8"))

    def test_every_form(self):
        document = self.read()
        self.assertEqual(list(document), ["transformers 9.1"])
        self.assertEqual(document["transformers 9.1"], EXPECTED)

    def test_a_row_is_a_line(self):
        """cmake/models.cmake reads lines."""
        self.read()
        lines = (self.root / "classes.json").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len([line for line in lines if line.startswith('    "')]), len(EXPECTED))

    def test_corrections(self):
        self.correct({"a source": {"typed": None, "plain": {"n_embd": None, "n_head": 3},
                                   "pair": {"vision_config": {"rope_interleave": None, "n_embd": 5}}}})
        rows = self.read()["transformers 9.1"]
        self.assertNotIn("typed", rows)
        self.assertNotIn("n_embd", rows["plain"])
        self.assertEqual(rows["plain"]["n_head"], 3)
        self.assertEqual(rows["pair"]["vision_config"], {"model_type": "plain", "n_embd": 5})

    def test_corrections_that_no_longer_fit(self):
        self.correct({"a source": {"gone": {"n_head": 3}}})
        result = self.run_program(self.root, self.root / "classes.json")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "corrections.json: a source: gone is not a class of this version\n")
        self.correct({"a source": {"later": {"num_attention_heads": 4}}})
        result = self.run_program(self.root, self.root / "classes.json")
        self.assertEqual(result.stderr, "corrections.json: a source: later needs no correction any more\n")

    def test_usage(self):
        result = self.run_program(self.root / "nowhere", self.root / "classes.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("usage: read_classes.py TRANSFORMERS", result.stderr)


if __name__ == "__main__":
    unittest.main()
