"""The files that the pages of the guide and the README talk about: a config, and queries of a port that has two bugs."""

import random

CONFIG = """{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
 "max_position_embeddings": 131072, "rope_theta": 500000.0,
 "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8192, "rope_type": "llama3", "type": "llama3"}}"""
YARN = """{"model_type": "qwen3", "head_dim": 128, "num_hidden_layers": 36, "max_position_embeddings": 131072,
 "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.0,
                                           "original_max_position_embeddings": 32768}}"""
CONFIGS = {"config.json": CONFIG, "yarn.json": YARN, "my.txt": "A text of my own, in which dog bites man.\n" * 500}

MODEL = """{"model_type": "olmo3", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 4,
 "max_position_embeddings": 8192, "rope_theta": 500000.0, "sliding_window": 4096,
 "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]}"""

# before.npy: queries, [heads, tokens, head dimension]. after.npy: the same as a port rotated them that should be
# config.json's, but pairs adjacent features and counts from 1.
SHAPE = (4, 32, 128)


def before():
    draw = random.Random(7)
    return [draw.uniform(-1, 1) for _ in range(SHAPE[0] * SHAPE[1] * SHAPE[2])]
