"""One peer as a process: `worker.py <peer>` makes PCD-1 updates on demand.

Its first line is the peer's name and version. Each line `n` of the input then asks for n updates and is
answered by `seconds gradient`: the time they took (of the processor with one thread, else on the wall) and
the root mean square of the change of the weights in units of the learning rate: for one update, of the
gradient.

Every peer is a class with `update(batch)`, `finish()`, which waits for what is still being computed, and
`weights()`. Each is written as a good user of it would: single precision where the peer allows it, no tape of
gradients, buffers used again. A batch is a slice of rows in memory: no peer pays for shuffling.
"""

import os
import sys
import time

THREADS = int(os.environ["PEER_THREADS"])  # set with the variables of the thread pools, before any import

import numpy as np

VISIBLE, HIDDEN, BATCH, ROWS, RATE = 784, 500, 500, 10_000, 0.01


def start(seed=5):
    """Rows of independent bits, weights, biases and chains: what every peer starts from."""
    rng = np.random.default_rng(seed)
    data = (rng.random((ROWS, VISIBLE)) < 0.15).astype(np.float32)
    w = rng.normal(0, 0.01, (VISIBLE, HIDDEN)).astype(np.float32)
    p = data.mean(0)
    b = np.log(p / (1 - p)).astype(np.float32)
    c = np.zeros(HIDDEN, np.float32)
    h = (rng.random((BATCH, HIDDEN)) < 0.5).astype(np.float32)
    return data, w, b, c, h


class Jax:
    """One jitted function; the state is donated, so that XLA may write over it."""

    def __init__(self, w, b, c, h):
        import jax
        import jax.numpy as jnp

        self.version = jax.__version__
        self.jax = jax

        def draw(key, p):
            return jax.random.bernoulli(key, p).astype(jnp.float32)

        def update(state, x):
            w, b, c, h, key = state
            key, for_v, for_h = jax.random.split(key, 3)
            p = jax.nn.sigmoid(x @ w + c)
            v = draw(for_v, jax.nn.sigmoid(h @ w.T + b))
            q = jax.nn.sigmoid(v @ w + c)
            h = draw(for_h, q)
            rate = RATE / BATCH
            w = w + rate * (x.T @ p - v.T @ q)
            b = b + rate * (x.sum(0) - v.sum(0))
            c = c + rate * (p.sum(0) - q.sum(0))
            return w, b, c, h, key

        # The default generator, threefry: XLA's own ("rbg") makes the update a third slower on a CPU.
        self.state = tuple(jnp.asarray(x) for x in (w, b, c, h)) + (jax.random.key(1),)
        self.step = jax.jit(update, donate_argnums=0)

    def batches(self, data):
        return [self.jax.device_put(data[i : i + BATCH]) for i in range(0, ROWS, BATCH)]

    def update(self, x):
        self.state = self.step(self.state, x)

    def finish(self):
        self.jax.block_until_ready(self.state)

    def weights(self):
        return np.asarray(self.state[0])


class Torch:
    """Every result has its buffer; biases and the gradient are added by the products themselves."""

    def __init__(self, w, b, c, h):
        import torch

        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
        torch.manual_seed(1)
        self.version = torch.__version__
        self.torch = torch
        self.w, self.b, self.c, self.h = (torch.from_numpy(x.copy()) for x in (w, b, c, h))
        self.p, self.q = torch.empty(BATCH, HIDDEN), torch.empty(BATCH, HIDDEN)
        self.m, self.v = torch.empty(BATCH, VISIBLE), torch.empty(BATCH, VISIBLE)

    def batches(self, data):
        return list(self.torch.from_numpy(data).split(BATCH))

    def update(self, x):
        torch, w, b, c, rate = self.torch, self.w, self.b, self.c, RATE / BATCH
        p = torch.addmm(c, x, w, out=self.p).sigmoid_()
        m = torch.addmm(b, self.h, w.T, out=self.m).sigmoid_()
        v = torch.bernoulli(m, out=self.v)
        q = torch.addmm(c, v, w, out=self.q).sigmoid_()
        torch.bernoulli(q, out=self.h)
        w.addmm_(x.T, p, alpha=rate).addmm_(v.T, q, alpha=-rate)
        b.add_(x.sum(0).sub_(v.sum(0)), alpha=rate)
        c.add_(p.sum(0).sub_(q.sum(0)), alpha=rate)

    def finish(self):
        pass

    def weights(self):
        return self.w.numpy()


class Rbms:
    """The loop of its `train` without the files: its PCD step with one Gibbs step, its optimiser."""

    def __init__(self, w, b, c, h):
        import importlib.metadata

        import torch
        from rbms.bernoulli_bernoulli.classes import BBRBM
        from rbms.training.pcd import fit_batch_pcd

        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
        torch.manual_seed(1)
        self.version = importlib.metadata.version("rbms")
        self.torch, self.fit = torch, fit_batch_pcd
        w, b, c = (torch.from_numpy(x.copy()) for x in (w, b, c))
        self.rbm = BBRBM(weight_matrix=w, vbias=b, hbias=c)
        self.rbm.init_grad()
        self.optimiser = torch.optim.SGD(self.rbm.parameters(), lr=RATE, maximize=True)
        visible = torch.bernoulli(torch.sigmoid(b).expand(BATCH, -1))
        self.chains = self.rbm.init_chains(BATCH, start_v=visible)
        self.ones = torch.ones(BATCH)

    def batches(self, data):
        return list(self.torch.from_numpy(data).split(BATCH))

    def update(self, x):
        self.optimiser.zero_grad(set_to_none=False)
        self.chains, _ = self.fit(
            batch=(x, self.ones), parallel_chains=self.chains, params=self.rbm, gibbs_steps=1, beta=1.0
        )
        self.optimiser.step()

    def finish(self):
        pass

    def weights(self):
        return self.rbm.weight_matrix.numpy()


class Sklearn:
    """`partial_fit`: what it offers for one update on one minibatch. It computes in double precision."""

    dtype = np.float64

    def __init__(self, w, b, c, h):
        import sklearn
        from sklearn.neural_network import BernoulliRBM

        self.version = sklearn.__version__
        self.rbm = rbm = BernoulliRBM(HIDDEN, learning_rate=RATE, batch_size=BATCH)
        self.rng = rbm.random_state_ = np.random.RandomState(1)
        # As its first call would leave them, down to the order in memory.
        rbm.components_ = np.asarray(w.T, dtype=self.dtype, order="F")
        rbm.intercept_visible_, rbm.intercept_hidden_ = b.astype(self.dtype), c.astype(self.dtype)
        rbm.h_samples_ = h.astype(self.dtype)
        rbm.n_features_in_ = VISIBLE

    def batches(self, data):
        return [data[i : i + BATCH].astype(self.dtype) for i in range(0, ROWS, BATCH)]

    def update(self, x):
        self.rbm.partial_fit(x)

    def finish(self):
        pass

    def weights(self):
        return self.rbm.components_.T


class SklearnFit(Sklearn):
    """The step that `fit` makes for each minibatch when its data are in single precision."""

    dtype = np.float32

    def update(self, x):
        self.rbm._fit(x, self.rng)


PEERS = {"jax": Jax, "torch": Torch, "rbms": Rbms, "sklearn": Sklearn, "sklearn-fit-f32": SklearnFit}


def main():
    data, *parameters = start()
    peer = PEERS[sys.argv[1]](*parameters)
    batches = peer.batches(data)
    clock = time.process_time if THREADS == 1 else time.perf_counter
    print(sys.argv[1], peer.version, flush=True)
    done = 0
    for line in sys.stdin:
        before = peer.weights().copy()
        assert before.shape == (VISIBLE, HIDDEN)
        n = int(line)
        t = clock()
        for _ in range(n):
            peer.update(batches[done % len(batches)])
            done += 1
        peer.finish()
        t = clock() - t
        moved = np.sqrt(np.mean((peer.weights() - before) ** 2, dtype=np.float64)) / RATE
        print(t, moved, flush=True)


if __name__ == "__main__":
    main()
