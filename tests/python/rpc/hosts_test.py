#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Workers of torch.distributed.rpc on two hosts, with kits of `troupe certs` and without."""
import unittest

import hosts
import torch
import torch.distributed.rpc as rpc
import workers


class kits(hosts.Hosts):
    def told(self, *names):
        """What the worker of each host finds, with a kit of this name or without one."""

        def body(rank, folder):
            self.start(rank, 2, folder, names[rank], rpc_timeout=15)
            told = rpc.rpc_sync(f"worker{1 - rank}", torch.add, args=(1, 2))
            rpc.shutdown()
            return told

        return workers.run(2, body)

    def test_workers_with_kits_call_each_other(self):
        self.assertEqual(self.told("worker0", "worker1"), [3, 3])

    def test_a_worker_without_a_kit_is_refused(self):
        for text in self.told("worker0", ""):
            self.assertRegex(str(text), "raised.*certificates")

    def test_a_kit_of_another_name_is_refused(self):
        for text in self.told("worker0", "other"):
            self.assertRegex(str(text), "raised.*'other'")


if __name__ == "__main__":
    unittest.main()
