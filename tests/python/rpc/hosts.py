# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for tests: network namespaces that a bridge joins. Takes root, iproute2 and iptables, and the program troupe for kits (the
environment names it: TROUPE_PROGRAM)."""
import ctypes
import os
import subprocess
import tempfile
import unittest

import workers

TROUPE = os.environ.get("TROUPE_PROGRAM", "")
CLONE_NEWNET = 0x40000000


def run(command, folder=None):
    subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, timeout=20, check=True)


class Hosts(unittest.TestCase):
    """Each test has three hosts: host i has the address 10.97.0.(i + 1), and there is a kit for worker<i>."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(TROUPE):
            cls.skip_aloud("TROUPE_PROGRAM names no program troupe")
        try:
            for pid in {each[4:-1] for each in os.listdir("/run/netns") if each.startswith("trpy")} if os.path.exists("/run/netns") else ():
                if not os.path.exists(f"/proc/{pid}"):  # left by a test that was killed
                    for each in "sabc":
                        subprocess.run(["ip", "netns", "del", f"trpy{pid}{each}"], capture_output=True, timeout=20, check=False)
            name = f"trpy{os.getpid()}s"
            run(f"ip netns add {name}")
            run(f"ip netns exec {name} iptables -L -n")
            run(f"tc -n {name} qdisc show")
            run(f"ip netns del {name}")
        except (OSError, subprocess.SubprocessError) as error:
            cls.skip_aloud(f"no network namespaces here: {getattr(error, 'stderr', error)}")

    def setUp(self):
        switch, *self.names = [f"trpy{os.getpid()}{each}" for each in "sabc"]
        self.links = [(switch, f"host{rank}") for rank in range(3)] + [(name, "eth0") for name in self.names]
        for name in switch, *self.names:
            run(f"ip netns add {name}")
            self.addCleanup(run, f"ip netns del {name}")
        run(f"ip -n {switch} link add bridge type bridge")
        run(f"ip -n {switch} link set bridge up")
        for rank, name in enumerate(self.names):
            run(f"ip -n {switch} link add host{rank} type veth peer name eth0 netns {name}")
            run(f"ip -n {switch} link set host{rank} master bridge up")
            run(f"ip -n {name} addr add 10.97.0.{rank + 1}/24 dev eth0")
            run(f"ip -n {name} link set eth0 up")
            run(f"ip -n {name} link set lo up")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kits = folder.name
        for words in "init --cluster mine", "node worker0", "node worker1", "node worker2", "node other":
            run(f"{TROUPE} certs {words}", self.kits)

    @staticmethod
    def skip_aloud(why):
        print("SKIPPED:", why)
        raise unittest.SkipTest(why)

    def start(self, rank, world, folder, kit=None, **options):
        """init_rpc for the worker of this rank on its host, with the kit of this name; "" is none."""
        with open(f"/run/netns/{self.names[rank]}", encoding="utf-8") as namespace:
            self.assertEqual(ctypes.CDLL(None).setns(namespace.fileno(), CLONE_NEWNET), 0)
        kit = f"worker{rank}" if kit is None else kit
        workers.start(rank, world, folder, host=f"10.97.0.{rank + 1}", certificates=kit and f"{self.kits}/{kit}.pem", **options)

    def limit_rates(self, rate):
        for name, link in self.links:
            run(f"tc -n {name} qdisc replace dev {link} root tbf burst 64k limit 1m rate {rate}")
