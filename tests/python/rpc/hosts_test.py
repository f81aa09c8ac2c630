#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Workers of torch.distributed.rpc on two hosts (network namespaces), with kits of `troupe certs` and without.

The environment names the program troupe: TROUPE_PROGRAM. Takes root and iproute2."""
import os
import subprocess
import sys
import tempfile
import unittest

SECONDS = 60
TROUPE = os.environ.get("TROUPE_PROGRAM", "")


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=10, check=True)


def worker(rank, folder, kit):
    import torch
    import torch.distributed.rpc as rpc
    import torchtroupe
    more = {"certificates": f"{folder}/{kit}.pem"} if kit else {}
    try:
        options = torchtroupe.RpcOptions(init_method=f"file://{folder}/store", host=f"10.97.0.{rank + 1}", rpc_timeout=15, **more)
        rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, world_size=2, rpc_backend_options=options)
        print("sum", rpc.rpc_sync(f"worker{1 - rank}", torch.add, args=(torch.ones(2), rank)).sum().item())
        rpc.shutdown()
    except Exception as error:
        print("error", error)


class Hosts(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(TROUPE):
            self.skip_aloud("TROUPE_PROGRAM names no program troupe")
        self.names = [f"trpy{os.getpid()}{each}" for each in "ab"]
        try:
            for name in self.names:
                ip("netns", "add", name)
                self.addCleanup(ip, "netns", "del", name)
            ip("-n", self.names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.names[1])
            for rank, name in enumerate(self.names):
                ip("-n", name, "addr", "add", f"10.97.0.{rank + 1}/24", "dev", "eth0")
                for link in "lo", "eth0":
                    ip("-n", name, "link", "set", link, "up")
        except (OSError, subprocess.SubprocessError) as error:
            self.skip_aloud(f"no network namespaces here: {getattr(error, 'stderr', error)}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for words in ("init", "--cluster", "mine"), ("node", "worker0"), ("node", "worker1"), ("node", "other"):
            subprocess.run([TROUPE, "certs", *words], cwd=self.folder, capture_output=True, timeout=20, check=True)

    def skip_aloud(self, why):
        print("SKIPPED:", why)
        self.skipTest(why)

    def told(self, *kits):
        """What the worker of each host prints, with a kit of this name or without one."""
        running = [subprocess.Popen(["ip", "netns", "exec", name, sys.executable, __file__, str(rank), self.folder, kit], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for rank, (name, kit) in enumerate(zip(self.names, kits))]
        try:
            return [each.communicate(timeout=SECONDS)[0] for each in running]
        finally:
            for each in running:
                each.kill()
                each.wait()

    def test_workers_with_kits_call_each_other(self):
        told = self.told("worker0", "worker1")
        self.assertIn("sum 2.0", told[0])
        self.assertIn("sum 4.0", told[1])

    def test_a_worker_without_a_kit_is_refused(self):
        for text in self.told("worker0", ""):
            self.assertIn("error", text)
            self.assertIn("certificates", text)
            self.assertNotIn("sum", text)

    def test_a_kit_of_another_name_is_refused(self):
        for text in self.told("worker0", "other"):
            self.assertIn("error", text)
            self.assertIn("'other'", text)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        worker(int(sys.argv[1]), *sys.argv[2:])
    else:
        unittest.main()
