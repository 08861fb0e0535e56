"""The Python of the README is run as it stands."""

import re

import numpy as np
import pandas as pd
from conftest import ROOT


def test_the_blocks_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    letters = ["ACDA", "GCEG", "AC-A"]
    (tmp_path / "family.fasta").write_text("".join(f">s{i}\n{letters[i % 3]}\n" for i in range(60)))
    country = pd.Series(rng.choice(["no", "it", "ua"], 60)).where(rng.random(60) > 0.1)
    names = {
        "images": rng.random((80, 16)),
        "labels": np.arange(80) % 2,
        "frame": pd.DataFrame({"country": country, "size": rng.normal(size=60)}),
    }
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 6
    for block in blocks:
        assert len(block.strip().splitlines()) <= 8, block
        exec(block, names)
    assert not names["whole"].isna().any().any()
