#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The example torchtroupe.examples.service. TROUPE_PROGRAM: the program troupe, for the test of roles."""
import argparse
import json
import os
import subprocess
import threading
import unittest

import torch.distributed.rpc as rpc
import torchtroupe
import workers
from torchtroupe.examples import service


class a_service(unittest.TestCase):
    def test_two_clients_train_at_once(self):
        self.assertEqual(service.together(argparse.Namespace(server="server", host="127.0.0.1", certificates="", policy="", steps=5)), 0)

    @unittest.skipUnless("TROUPE_PROGRAM" in os.environ, "expected TROUPE_PROGRAM")
    def test_a_role_may_do_what_the_policy_says(self):
        """A reader gets log-probabilities, and may not train."""
        service.server = service.Server()

        def body(rank, folder):
            name = ("server", "client", "reader")[rank]
            given = argparse.Namespace(store=f"file://{folder}/store", host="127.0.0.1", serve="server", server="server", policy="",
                                       certificates=f"{folder}/{name}.pem")
            arrived = [f"{folder}/{each}" for each in ("ready", "1", "2")]
            if rank == 0:
                troupe = lambda *words: subprocess.run([os.environ["TROUPE_PROGRAM"], "certs", *words], cwd=folder, check=True,
                                                       capture_output=True)
                troupe("init")
                for each in ("server", "client", "reader"):
                    troupe("node", each, "--role", each)
                given.policy = f"{folder}/policy"
                with open(given.policy, "w", encoding="ascii") as file:
                    json.dump({"roles": {"client": {"call": ["forward", "step"]}, "reader": {"call": ["forward"]}}}, file)
                ready, ended = threading.Event(), threading.Event()
                served = threading.Thread(target=service.serve, args=(given, ready, ended))
                served.start()
                ready.wait()
                open(arrived[0], "w").close()
                while not all(map(os.path.exists, arrived[1:])):
                    served.join(0.05)
                ended.set()
                served.join()
                return True
            while not os.path.exists(arrived[0]):
                threading.Event().wait(0.05)
            service.open_worker(name, rank, given)
            try:
                service.train(torchtroupe.peer("server"), service.text(rank), service.likelihood)
                text = ""
            except PermissionError as error:
                text = str(error)
            open(arrived[rank], "w").close()
            rpc.shutdown()
            return text == "" if rank == 1 else "the policy does not let this role call the function 'step'" in text or text

        self.assertEqual(workers.run(3, body), [True] * 3)

    def test_both_ways_have_the_same_losses(self):
        once, twice = service.compare(1, 2)
        self.assertTrue(len(once) == len(twice) == 1)


if __name__ == "__main__":
    unittest.main()
