# SPDX-License-Identifier: BSD-3-Clause
"""What functions and hooks change of the thread's state and leave behind: it ends with them."""
import torch
from record import error_of, record
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

kept = []  # a context that is freed would set its state back


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Another(FunctionMode):
    pass


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def enter(make):
    def run():
        kept.append(make())
        kept[-1].__enter__()

    return run


changes = {
    "grad mode": enter(torch.enable_grad),
    "inference mode": enter(torch.inference_mode),
    "autocast": enter(lambda: torch.autocast("cpu", dtype=torch.float16)),
    "forward mode": enter(lambda: torch.autograd.forward_ad._set_fwd_grad_enabled(False)),
    "one thread": lambda: kept.append(torch.autograd.set_multithreading_enabled(False)),
    "saved tensors": enter(lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x * 2, lambda x: x)),
    "no saved tensors": enter(lambda: torch.autograd.graph.disable_saved_tensors_hooks("told to")),
    "function mode": enter(FunctionMode),
    "dispatch mode": enter(DispatchMode),
    "device": enter(lambda: torch.device("meta")),
    "grad layer": lambda: torch._C._functorch._grad_increment_nesting(),
    "vmap layer": lambda: torch._C._functorch._vmap_increment_nesting(3, "error"),
}
if hasattr(torch.autograd.graph, "node_creation_hook"):
    changes["creation hook"] = enter(lambda: torch.autograd.graph.node_creation_hook(lambda node: made.append(node.name())))
made = []


def functions_of_a_sum():
    """What hooks of the creation of functions are told."""
    made.clear()
    with torch.enable_grad(), torch.inference_mode(False):
        torch.ones(1, requires_grad=True).sum()
    return made[:]


def state():
    return (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"), torch._C._is_fwd_grad_enabled(), torch._C._is_multithreading_enabled(),
            torch._C._autograd._saved_tensors_hooks_is_enabled(),
            torch._C._autograd._top_saved_tensors_default_hooks(True) is None, torch._C._len_torch_function_stack(),
            torch._C._len_torch_dispatch_stack(), torch._C._functorch.maybe_current_level(), functions_of_a_sum())


class Changing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, change):
        ctx.change = change
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.change()
        return gradient, None


def hook_of(change):
    def hook(*gradients):
        change()

    return hook


def by_function(x, change):
    return Changing.apply(x, change)


def by_tensor_hook(x, change):
    y = x.clone()
    y.register_hook(hook_of(change))
    return y


def by_pre_hook(x, change):
    y = x.clone()
    y.grad_fn.register_prehook(hook_of(change))
    return y


def by_post_hook(x, change):
    y = x.clone()
    y.grad_fn.register_hook(hook_of(change))
    return y


def pass_with(changer, change, trace):
    x = torch.ones(4, 4, requires_grad=True)
    w = torch.full((4, 4), 1.0009765625 / 3)
    below = x.clone()
    below.register_hook(lambda gradient: trace.append(("below", *state())))
    changer(below @ w, change).sum().backward()
    trace.append(("after", *state()))
    return x.grad


for name, change in changes.items():
    for changer in (by_function, by_tensor_hook, by_pre_hook, by_post_hook):
        trace = []
        gradient = pass_with(changer, change, trace)
        record(f"{name} {changer.__name__}", (gradient, trace))

trace = []
leaf = torch.ones(3, requires_grad=True)
leaf.register_post_accumulate_grad_hook(hook_of(changes["autocast"]))
last = torch.ones(3, requires_grad=True)
((last * 2).clone() * leaf).sum().backward()
trace.append(state())
captured = leaf * 2
captured.register_hook(hook_of(changes["autocast"]))
torch.autograd.grad(captured.sum(), captured)
trace.append(state())
record("accumulated and captured", trace)


def failing():
    changes["inference mode"]()
    raise ValueError("told to")


record("error", error_of(lambda: pass_with(by_function, failing, [])))
record("after an error", state())

trace = []
queueing = torch.ones(2, requires_grad=True) * 2


def queue(gradient):
    queue_callback = torch.autograd.Variable._execution_engine.queue_callback
    queue_callback(lambda: (trace.append(("first", *state())), changes["autocast"]()))
    queue_callback(lambda: trace.append(("second", *state())))
    changes["function mode"]()


queueing.register_hook(queue)
queueing.sum().backward()
trace.append(("after", *state()))
record("callbacks", trace)

trace = []


def swap():
    """Leaves as many modes behind as there were."""
    torch._C._pop_torch_function_stack()
    torch._C._push_on_torch_function_stack(Another())


with FunctionMode():
    x = torch.ones(4, requires_grad=True)
    below = x.clone()
    top = lambda: type(torch._C._get_function_stack_at(0)).__name__
    below.register_hook(lambda gradient: trace.append(top()))
    loss = by_function(below, swap).sum()
    # backward() itself would take the mode off for as long as it runs.
    torch.autograd.Variable._execution_engine.run_backward(
        (loss,), (torch.ones(()),), False, False, (), allow_unreachable=True, accumulate_grad=True)
    trace.append(top())
record("swapped", trace)

torch.set_autocast_dtype("cpu", torch.bfloat16)
pass_with(by_function, lambda: torch.set_autocast_dtype("cpu", torch.float16), [])
record("autocast's type after a pass", torch.get_autocast_dtype("cpu"))
