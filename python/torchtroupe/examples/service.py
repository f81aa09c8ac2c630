# SPDX-License-Identifier: BSD-3-Clause
"""A server that holds a small transformer, and clients that train it, each with a loss of its own.

  python -m torchtroupe.examples.service                a server and two clients, all on this machine
  python -m torchtroupe.examples.service --compare      steps a second, beside the way with a second forward pass
  python -m torchtroupe.examples.service --serve server --store tcp://HOST:PORT
  python -m torchtroupe.examples.service --train client1 --rank 1 --store tcp://HOST:PORT

The server knows no loss. It returns log-probabilities and hidden states; the client computes what it likes of them; the
backward pass goes on at the server. --certificates and --policy are those of a node. This policy lets a role train,
and another one look:

  {"roles": {"client": {"call": ["forward", "step"]}, "reader": {"call": ["forward"]}}}"""
import argparse
import functools
import multiprocessing
import os
import signal
import statistics
import tempfile
import threading
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torchtroupe
from torch import nn
from torchtroupe.rpc import RpcOptions

DEADLINE = 30.0  # seconds, of each request
MOST_WEIGHTS = 4  # versions that are kept for one client


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.before, self.within = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        query, key, value = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                             for each in self.all(self.before(x)).chunk(3, -1))
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.wide(self.within(x))


class Transformer(nn.Module):
    """Returns the log-probability of each token but the first, and the hidden states."""

    def __init__(self, letters=64, width=64, layers=4, longest=64):
        super().__init__()
        self.tokens, self.places = nn.Embedding(letters, width), nn.Embedding(longest, width)
        self.layers = nn.Sequential(*[Layer(width, 4) for _ in range(layers)])
        self.out = nn.Linear(width, letters)

    def forward(self, tokens):
        hidden = self.layers(self.tokens(tokens) + self.places.weight[:tokens.shape[1]])
        found = self.out(hidden[:, :-1]).log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
        return found, hidden


def added(some, others):
    """The sums of two lists of gradients; None stands for zero."""
    return [b if a is None else a if b is None else a + b for a, b in zip(some, others)]


class Server:
    """The model and its optimizer, for any number of clients at once, each with one context at a time. The optimizer changes
    the weights in place, unless the graph of another client's last forward pass may need them: then the model gets copies
    first. A client that only reads calls under torch.no_grad(): nothing is kept for it."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = Transformer()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.weights = list(self.model.parameters())
        self.changes = threading.Lock()
        self.used = {}  # by client: the weights that it may have gradients for

    def copy_weights(self):
        copies = {each: nn.Parameter(each.detach().clone()) for each in self.weights}
        for module in self.model.modules():
            module._parameters.update({name: copies[each] for name, each in module._parameters.items() if each is not None})
        for group in self.optimizer.param_groups:
            group["params"] = [copies[each] for each in group["params"]]
        self.optimizer.state.update({copies[each]: self.optimizer.state.pop(each) for each in list(self.optimizer.state)})
        self.weights = list(copies.values())

    def forward(self, tokens, client):
        with self.changes:
            if torch.is_grad_enabled():
                used = self.used.setdefault(client, [])
                if not used or used[-1] is not self.weights:
                    used.append(self.weights)
                    del used[:-MOST_WEIGHTS]
            return self.model(tokens)

    def step(self, client, gradients_of):
        with self.changes:
            if client not in self.used:
                raise RuntimeError(f"step: expected a forward pass of '{client}' since its last step, and there was none")
            gradients = functools.reduce(added, map(gradients_of, self.used[client]))
            del self.used[client]
            if any(used[-1] is self.weights for used in self.used.values()):
                self.copy_weights()
            for each, gradient in zip(self.weights, gradients):
                each.grad = gradient
            self.optimizer.step()

    def second_forward(self, tokens, gradients):
        """A step of the usual way: the graph of the first forward pass is gone."""
        with self.changes:
            self.optimizer.zero_grad()
            outputs = [(each, its) for each, its in zip(self.model(tokens), gradients) if its is not None]
            torch.autograd.backward(*zip(*outputs))
            self.optimizer.step()


server = None  # of this process


@torchtroupe.function("forward")
def forward(tokens):
    return server.forward(tokens, torchtroupe.caller())


@torchtroupe.function("step")
def step():
    server.step(torchtroupe.caller(), torchtroupe.gradients)


@torch.no_grad()
def first_forward(tokens):
    return server.model(tokens)


def second_forward(tokens, gradients):
    server.second_forward(tokens, gradients)


def train(to, tokens, loss_of):
    """A step: `loss_of` makes a loss of log-probabilities and hidden states."""
    with dist_autograd.context() as context:
        found, hidden = to.call("forward", tokens, timeout=DEADLINE)
        loss = loss_of(found, hidden)
        dist_autograd.backward(context, [loss])
        to.call("step", timeout=DEADLINE)
    return loss.item()


def train_twice(to, tokens, loss_of):
    """The same step as it is done without distributed autograd: gradients of outputs go back, and the server computes twice."""
    outputs = [each.requires_grad_() for each in rpc.rpc_sync(to, first_forward, args=(tokens,), timeout=DEADLINE)]
    loss = loss_of(*outputs)
    loss.backward()
    rpc.rpc_sync(to, second_forward, args=(tokens, [each.grad for each in outputs]), timeout=DEADLINE)
    return loss.item()


def likelihood(found, hidden):
    return -found.mean()


def weighted(found, hidden):
    """A loss of the client's own: rare tokens count more, and large hidden states are dear."""
    return (found.detach().exp() * found).neg().mean() - found.mean() + 1e-3 * hidden.square().mean()


def text(seed, count=4, length=32):
    """Counting modulo 8, from random numbers on."""
    start = torch.randint(8, (count, 1), generator=torch.Generator().manual_seed(seed))
    return (start + torch.arange(length)) % 8


def open_worker(name, rank, given):
    """`given`: the words of the command line."""
    options = RpcOptions(init_method=given.store, host=given.host, certificates=given.certificates, policy=given.policy,
                         rpc_timeout=DEADLINE)
    rpc.init_rpc(name, backend=rpc.BackendType.TROUPE, rank=rank, rpc_backend_options=options)


def serve(given, ready, ended):
    """Sets `ready` once clients may come, and serves until `ended` is set."""
    open_worker(given.serve, 0, given)
    print(f"{given.serve} serves", flush=True)
    ready.set()
    ended.wait()
    rpc.shutdown()


def run_client(given):
    open_worker(given.train, given.rank, given)
    loss_of, to = (likelihood, weighted)[given.rank % 2], torchtroupe.peer(given.server)
    for number in range(given.steps):
        loss = train(to, text(given.rank * 10_000 + number), loss_of)
        if number in (0, given.steps - 1):
            print(f"{given.train}: loss {loss:.3f} in step {number + 1}", flush=True)
    rpc.shutdown()


def together(given):
    """A server and two clients in processes of their own."""
    global server
    server = Server()
    processes = multiprocessing.get_context("fork")
    ready, ended = processes.Event(), processes.Event()
    with tempfile.TemporaryDirectory() as folder:
        given.store, given.serve = f"file://{folder}/store", given.server
        holder = processes.Process(target=serve, args=(given, ready, ended))
        holder.start()
        if not ready.wait(DEADLINE):
            raise RuntimeError("the server has not started")
        clients = []
        for given.rank in (1, 2):
            given.train = f"client{given.rank}"
            clients.append(processes.Process(target=run_client, args=(given,)))
            clients[-1].start()
        for each in clients:
            each.join()
        ended.set()
        holder.join()
    return int(any(each.exitcode for each in [holder, *clients]))


WAYS = {"TROUPE": train, "TENSORPIPE": train_twice}


def _side(backend, rank, folder, orders):
    """A process of the comparison. The client's takes numbers of steps from `orders`, and answers with seconds and the last
    loss."""
    torch.set_num_threads(1)
    kind = RpcOptions if backend == "TROUPE" else rpc.TensorPipeRpcBackendOptions
    options = kind(init_method=f"file://{folder}/{backend}")
    rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType[backend], rank=rank, world_size=2, rpc_backend_options=options)
    number, to = 0, torchtroupe.peer("worker0") if backend == "TROUPE" else "worker0"
    while orders is not None and (count := orders.recv()):
        for step in range(count + 1):  # the first one warms up
            if step == 1:
                begun = time.perf_counter()
            number += 1
            loss = WAYS[backend](to, text(number), weighted)
        orders.send((time.perf_counter() - begun, loss))
    rpc.shutdown()


def _seconds_of(orders, steps):
    orders.send(steps)
    if not orders.poll(DEADLINE + steps):
        raise RuntimeError(f"{steps} steps have not ended")
    return orders.recv()


def compare(rounds=45, steps=4):
    """Seconds a step of both ways, round by round: (one forward on troupe, two on TensorPipe). Both have the same losses. The
    rounds are short, because the speed of a machine may change within a second.
    TensorPipe's threads poll without an end, so its processes are stopped while troupe's are measured."""
    global server
    server = Server()
    processes = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        orders, running = {}, {}
        for backend in WAYS:
            orders[backend], theirs = processes.Pipe()
            running[backend] = [processes.Process(target=_side, args=(backend, rank, folder, theirs if rank else None),
                                                  daemon=True)
                                for rank in (0, 1)]
            for each in running[backend]:
                each.start()
            _seconds_of(orders[backend], 1)  # until both are up

        def let_tensorpipe(how):
            for each in running["TENSORPIPE"]:
                os.kill(each.pid, how)

        found, losses = {backend: [] for backend in WAYS}, {}
        try:
            for number in range(rounds + 1):  # the first one warms up
                for backend in list(WAYS)[::1 if number % 2 else -1]:
                    let_tensorpipe(signal.SIGSTOP if backend == "TROUPE" else signal.SIGCONT)
                    seconds, losses[backend] = _seconds_of(orders[backend], steps)
                    found[backend].append(seconds / steps)
                if len(set(losses.values())) > 1:
                    raise RuntimeError(f"expected the same loss of both ways, got {losses}")
        finally:
            let_tensorpipe(signal.SIGCONT)  # a process that is stopped does not end
        for backend in WAYS:
            orders[backend].send(0)
        for each in running["TROUPE"] + running["TENSORPIPE"]:
            each.join()
    return [each[1:] for each in found.values()]


def main():
    global server
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--compare", action="store_true")
    options.add_argument("--serve", metavar="NAME", help="be the server")
    options.add_argument("--train", metavar="NAME", help="be a client")
    options.add_argument("--rank", type=int, default=1, help="of the client, 1 or more, and no other client's")
    options.add_argument("--server", default="server", help="the name of the server")
    options.add_argument("--store", help="where server and clients find each other, such as tcp://HOST:PORT")
    options.add_argument("--steps", type=int, default=60)
    for word, usual in (("host", "127.0.0.1"), ("certificates", ""), ("policy", "")):
        options.add_argument("--" + word, default=usual, help="as the node's option")
    given = options.parse_args()
    if (given.serve or given.train) and not given.store:
        options.error("expected --store with --serve and --train")
    if given.compare:
        once, twice = (1 / statistics.median(each) for each in compare())
        print(f"{once:.1f} steps a second with one forward pass on troupe, {twice:.1f} with two on TensorPipe: "
              f"{once / twice:.2f}")
    elif given.serve:
        server = Server()
        serve(given, threading.Event(), threading.Event())
    elif given.train:
        run_client(given)
    else:
        return together(given)
    return 0


if __name__ == "__main__":
    # torch.distributed.rpc names functions by their module, so this module must not be __main__.
    from torchtroupe.examples import service
    raise SystemExit(service.main())
