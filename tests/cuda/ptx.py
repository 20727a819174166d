"""What can be seen of the kernels for NVIDIA's GPUs without a GPU: every one is compiled to PTX, none keeps anything in
local memory, those of attention address no memory without naming its space, and they hold as many matrix instructions
as they should.

ptx.py FOLDER…     of the build's PTX
"""

import re
import sys
from pathlib import Path

LOCAL = re.compile(r"\.local\b")
# ld.b32, st.v4.b32 …: no space is named, so the chip must find out.
GENERIC = re.compile(r"^\s*(?:@!?%p\d+\s+)?(?:ld|st)\.(?:volatile\.)?(?:v[248]\.)?[bufs](?:8|16|32|64)\b", re.MULTILINE)
# A tile of 64 queries: scores and their gradients in features / 16 pieces each, dv and dk in 4, dq in 4 or (128 features) 8; with
# 192 features dk and dq in twice as many. Both kinds of tiles apart.
BACKWARD_WGMMA = {64: 40, 128: 64, 192: 80, 256: 88}


def forward_products(name, features):
    """A tile of 128 keys (64 for 256 features) multiplies q and k in features / 16 pieces, with slopes one more up to 128 features, and
    weights and v in one for each 16 keys and 128 features of v. Products are written where a row block begins (alone and, up to 128
    features, beside the end of another), where it ends, and in each loop of go_on: one with two kinds of tiles, three, or five."""
    scores = features // 16 + (1 if "slopes" in name and features <= 128 else 0)
    sums = (4 if features == 256 else 8) * (2 if features == 256 else 1)
    steps = 2 if "none" in name and features == 64 else 5 if "both" in name else 3
    return (2 * scores + sums if features > 128 else 2 * scores + 2 * sums) + steps * (scores + sums)


def problems_of(name, text):
    """What is wrong with one module."""
    found = []
    if ".visible .entry" not in text:
        found.append("holds no kernel")
    if LOCAL.search(text):
        found.append("uses local memory")
    if match := re.fullmatch(r"attention_(backward_)?sm90_b?f16_\w+_(\d+)", name):
        if generic := GENERIC.search(text):
            found.append(f"addresses memory of no named space: {generic.group().strip()}")
        count, features = text.count("wgmma.mma_async"), int(match.group(2))
        wanted = BACKWARD_WGMMA[features] if match.group(1) else forward_products(name, features)
        if count != wanted:
            found.append(f"holds {count} wgmma, expected {wanted}")
    return found


def self_test():
    """Each verdict is seen to fall the other way."""
    good = ".visible .entry k()\n ld.shared.b32 %r1, [%rd1];\n ld.global.v4.b32 %r1, [%rd1];\n" + "wgmma.mma_async\n" * 80
    assert problems_of("attention_sm90_bf16_none_128", good) == []
    for bad in (good + ".local .align 8 .b8 d[8];", good + "\tld.b32 %r1, [%rd1];", good + "\tst.v2.b32 [%rd1], {%r1};",
                good + "wgmma.mma_async", good.replace(".visible .entry", "")):
        assert len(problems_of("attention_sm90_bf16_none_128", bad)) == 1, bad
    assert problems_of("attention_backward_sm90_f16_slopes_64", good) == ["holds 80 wgmma, expected 40"]
    assert problems_of("attention_backward_sm90_f16_none_192", good) == []


if __name__ == "__main__":
    self_test()
    modules = sorted(module for folder in sys.argv[1:] for module in Path(folder).glob("*.ptx"))
    failed = False
    for module in modules:
        for problem in problems_of(module.stem, module.read_text()):
            failed = True
            print(f"{module.name}: {problem}")
    print(f"{len(modules)} modules of PTX looked at")
    sys.exit(1 if failed or not modules else 0)
