"""The lab on a GPU: trains Transformers of some 10 million parameters with torch and judges published claims.

    python -m posenc.lab --preset gpu --out FOLDER --text lab-text.xz --minutes 9

Needs torch (1.13 or newer), which only the modules of this package import: judge, report, jobs and text work without.
"""
