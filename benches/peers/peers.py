"""`cargo xtask bench peers`: one PCD-1 update of harmonium against the ways people train an RBM today.

    peers.py <venv> <updates> [seconds] [peer …]

makes the virtual environment `venv`, installs the peers by name, and for one and two threads starts each of
them (worker.py) and harmonium (the program `updates`) as processes. They work in turn, one at a time, round
after round, for about `seconds` for each number of threads; medians are compared.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

SIZE = "PCD-1 update, 784 × 500, minibatch 500, 500 chains, one Gibbs step"

# What to install, and how many times faster harmonium should be: with one thread, what is asked for; with
# two, where the prototype of the kernels stood on an idle machine.
PEERS = {
    "jax": ([["jax"]], 5, 12),
    "torch": ([["torch", "numpy"]], 9, 14),
    # Without its dependencies: the plots are not needed here.
    "rbms": ([["torch", "numpy", "h5py", "tqdm"], ["--no-deps", "rbms"]], 12, 21),
    # By `partial_fit`, which is in double precision; and the step inside `fit` on data in single precision.
    "sklearn": ([["scikit-learn"]], 14, 22),
    "sklearn-fit-f32": ([["scikit-learn"]], 14, 22),
}

POOLS = ["OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR", "RAYON"]

# The versions that are compared.
PINS = Path(__file__).resolve().parents[2] / "xtask" / "pins.txt"

# A turn is long against the clock's grain; the pause lets idle threads of the last one's pool fall asleep.
TURN, PAUSE = 0.2, 0.06


def install(env, peers):
    """Makes the environment and installs the peers; those that fail are named with the reason."""
    python = env / "bin" / "python"
    if not python.exists():
        venv.create(env, with_pip=True)
    found = []
    for peer in peers:
        for packages in PEERS[peer][0]:
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", PINS, *packages]
            done = subprocess.run(pip, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"peer {peer} cannot be installed: {last_line(done.stderr)}", flush=True)
                break
        else:
            found.append(peer)
    return found


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1]


class Worker:
    """A process that makes updates on demand."""

    def __init__(self, command, threads):
        env = dict(os.environ, PEER_THREADS=str(threads), JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="")
        env.update({f"{pool}_NUM_THREADS": str(threads) for pool in POOLS})
        if threads == 1:
            env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        pipe, self.errors = subprocess.PIPE, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True, env=env
        )
        self.times = []
        self.title = self.answer()
        # One update from the start; the second time everything is compiled and warm.
        _, self.gradient = self.ask(1)
        seconds, _ = self.ask(3)
        self.turn = max(1, round(TURN / (seconds / 3)))

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise RuntimeError(last_line(self.errors.read()))
        return line.strip()

    def ask(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        seconds, moved = self.answer().split()
        return float(seconds), float(moved)

    def take_turn(self):
        seconds, moved = self.ask(self.turn)
        if not 0 < moved < float("inf"):
            raise RuntimeError("its weights do not move")
        self.times.append(seconds / self.turn)
        time.sleep(PAUSE)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def start(commands, threads):
    """The workers that could be started and make updates; the others are named with the reason."""
    # Pools that count processors instead of reading the environment find as many as there are threads.
    os.sched_setaffinity(0, CPUS[:threads])
    workers = {}
    for name, command in commands.items():
        try:
            workers[name] = Worker(command, threads)
        except (RuntimeError, OSError) as why:
            print(f"peer {name} cannot be run: {why}", flush=True)
    return workers


def compare(commands, threads, seconds):
    if len(CPUS) < threads:
        print(f"{threads} threads: this machine has only {len(CPUS)} processor(s)")
        return
    workers = start(commands, threads)
    if "harmonium" not in workers:
        return
    end = time.monotonic() + seconds
    rounds = 0
    while rounds < 9 or time.monotonic() < end:
        for name in list(workers):
            try:
                workers[name].take_turn()
            except (RuntimeError, OSError) as why:
                print(f"peer {name} stopped: {why}", flush=True)
                del workers[name]
        rounds += 1
    if "harmonium" in workers:
        report(workers, threads, rounds)
    for worker in workers.values():
        worker.end()


def report(workers, threads, rounds):
    kind = "processor time of the whole process" if threads == 1 else "time on the wall"
    print(f"\n{SIZE}; {threads} thread(s), {rounds} rounds in turn, {kind}")
    print(f"  {'':22} {'median ms':>9} {'least ms':>9} {'most ms':>9}  rms of the first gradient")
    for w in workers.values():
        middle, low, high = (1e3 * f(w.times) for f in (statistics.median, min, max))
        print(f"  {w.title:22} {middle:9.2f} {low:9.2f} {high:9.2f}  {w.gradient:.2e}")
    if threads > 1:
        print("  (goals with two threads: where the prototype of the kernels stood on an idle machine)")
    own = statistics.median(workers["harmonium"].times)
    for name in (name for name in workers if name in PEERS):
        ratio = statistics.median(workers[name].times) / own
        print(f"ratio peer-{name}-t{threads} {ratio:.2f} goal {PEERS[name][threads]}")
    sys.stdout.flush()


def main():
    env, updates = Path(sys.argv[1]), sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 45
    found = install(env, sys.argv[4:] or list(PEERS))
    worker = Path(__file__).with_name("worker.py")
    # The trainer as it is by default; the ratios are its own. And without what its default adds to the
    # textbook's update (centring, averaged parameters), so that first gradients can be compared.
    commands = {"harmonium": [updates], "harmonium-plain": [updates, "plain"]}
    commands.update({peer: [env / "bin" / "python", worker, peer] for peer in found})
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} on {len(CPUS)} processor(s)")
    for threads in (1, 2):
        compare(commands, threads, seconds)


if __name__ == "__main__":
    CPUS = sorted(os.sched_getaffinity(0))
    main()
