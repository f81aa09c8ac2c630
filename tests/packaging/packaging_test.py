#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands in packaging/ as their programs would, with the real program troupe, and asks their probes."""
import configparser
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
TROUPE = os.environ["TROUPE_PROGRAM"]
DRIVER = os.environ["TROUPE_DRIVER"]
MODULES = os.environ["TROUPE_MODULES"]
PATIENCE_S = 60


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def script(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


class Node:
    """A node that a file of packaging/ starts. Its ports are replaced by free ones, and so is the folder of its data."""

    def __init__(self, test, command, data, environment=None, kit=None):
        self.ports = {"4001": free_port(), "9100": free_port()}
        joined = "\0".join(command).replace(data, test.folder + "/data")
        for usual, free in self.ports.items():
            test.assertIn(usual, joined)
            joined = joined.replace(usual, str(free))
        self.process = subprocess.Popen(joined.split("\0"), env={**os.environ, **(environment or {})}, text=True,
                                        stdin=open(kit) if kit else subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        test.addCleanup(self.end)
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if " listens on " in line:
                return
        test.fail("the node did not start: " + self.said)

    def page(self, path, port="9100"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[str(port)]}{path}", timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read().decode()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait(PATIENCE_S)


class Packaging(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        script(self.folder, "troupe", f'exec {shlex.quote(TROUPE)} "$@"\n')
        self.path = {"PATH": self.folder + ":" + os.environ["PATH"]}

    def kit(self, name):
        """Makes the kit of a node, in the test's folder."""
        for command in (["init"], ["node", name]):
            subprocess.run([TROUPE, "certs", *command], cwd=self.folder, check=True, capture_output=True)
        return pathlib.Path(self.folder) / f"{name}.pem"

    def test_the_container_serves_and_has_the_libraries_of_the_program(self):
        lines = (PACKAGING / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
        instructions = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
        last = {name: rest for name, rest in instructions}
        command = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
        node = Node(self, command, "/var/lib/troupe/data", self.path, self.kit(command[command.index("--name") + 1]))
        self.assertEqual(node.page("/healthz")[0], 200)
        self.assertEqual(last["EXPOSE"].split(), ["4001", "9100"])
        self.assertEqual(last["STOPSIGNAL"], "SIGTERM")
        self.assertEqual(node.end(), 0)
        installed = " ".join(rest for name, rest in instructions if name == "RUN" and "apt-get install" in rest)
        for line in subprocess.run(["ldd", TROUPE], capture_output=True, text=True, check=True).stdout.splitlines():
            library = re.search(r"=> (/\S+)", line)
            if library is None or "site-packages" in library[1]:
                continue
            owner = subprocess.run(["dpkg", "-S", os.path.realpath(library[1])], capture_output=True, text=True).stdout
            package = owner.split(":")[0]
            if package and package not in ("libc6", "libgcc-s1", "zlib1g"):  # these are in Debian's slim image
                self.assertIn(" " + package + " ", installed + " ", f"{library[1]} is of {package}")

    def test_the_pods_of_kubernetes_serve_what_their_probes_ask(self):
        documents = list(yaml.safe_load_all((PACKAGING / "kubernetes.yaml").read_text()))
        service, policy, pods = documents
        self.assertEqual([each["kind"] for each in documents], ["Service", "NetworkPolicy", "StatefulSet"])
        labels = pods["spec"]["template"]["metadata"]["labels"]
        for selector in (service["spec"]["selector"], policy["spec"]["podSelector"]["matchLabels"],
                         pods["spec"]["selector"]["matchLabels"]):
            self.assertEqual(selector, labels)
        self.assertEqual(pods["spec"]["serviceName"], service["metadata"]["name"])
        container = pods["spec"]["template"]["spec"]["containers"][0]
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        self.assertEqual(ports, {each["name"]: each["port"] for each in service["spec"]["ports"]})
        data = container["volumeMounts"][0]
        self.assertEqual(data["name"], pods["spec"]["volumeClaimTemplates"][0]["metadata"]["name"])
        name = pods["metadata"]["name"] + "-0"
        self.kit(name)
        mounts = {each["name"]: each for each in container["volumeMounts"]}
        volumes = {each["name"]: each for each in pods["spec"]["template"]["spec"]["volumes"]}
        kit = mounts["kits"]
        volume = volumes["kits"]
        self.assertEqual(volume["secret"]["defaultMode"], "0440" if isinstance(volume["secret"]["defaultMode"], str) else 0o440)
        shutil.copy(pathlib.Path(self.folder) / "troupe-authority" / "revoked.pem", self.folder)
        # A pod sees its own kit, and no other one.
        seen = pathlib.Path(self.folder) / kit["subPathExpr"].replace("$(POD_NAME)", name)
        self.assertEqual([each["mountPath"] for each in container["volumeMounts"] if each["name"] == "kits"], [kit["mountPath"]])
        self.assertIn("configMap", volumes["revoked"])
        container["args"] = [each.replace(kit["mountPath"], str(seen)).replace(mounts["revoked"]["mountPath"] + "/", self.folder + "/")
                             for each in container["args"]]
        node = Node(self, container["command"] + container["args"], data["mountPath"] + " ",
                    {**self.path, "POD_NAME": name})
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = container[name]["httpGet"]
            self.assertEqual(node.page(probe["path"], ports[probe["port"]])[0], 200)
        annotations = pods["spec"]["template"]["metadata"]["annotations"]
        self.assertIn("troupe_peers", node.page("/metrics", annotations["prometheus.io/port"])[1])
        self.assertEqual(node.end(), 0)
        second = subprocess.run(container["command"] + ["troupe() { echo \"$@\"; exit; }; " + container["args"][0].replace("exec ", "")],
                                env={**self.path, "POD_NAME": "troupe-1"}, capture_output=True, text=True, check=True)
        self.assertIn("--name troupe-1 ", second.stdout)
        seeds = [f"--join troupe-{pod}.{service['metadata']['name']}:{ports['nodes']}" for pod in range(pods["spec"]["replicas"])]
        self.assertTrue(second.stdout.endswith(" ".join(["", *seeds, "--join-wait 0\n"])), second.stdout)

    def test_the_service_of_systemd_starts_a_node(self):
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.optionxform = str
        unit.read(PACKAGING / "troupe@.service")
        command = shlex.split(unit["Service"]["ExecStart"].replace("%i", "stage1").replace("$OPTIONS", ""))
        self.assertEqual(command[0], "/usr/local/bin/troupe")
        self.assertEqual(unit["Service"]["StateDirectory"], "troupe/%i")
        node = Node(self, [TROUPE] + command[1:], "%S/troupe/stage1")
        self.assertEqual(node.page("/healthz")[0], 200)
        self.assertEqual(node.end(), 0)
        if shutil.which("systemd-analyze") is None:
            self.skipTest("SKIPPED: systemd-analyze is not there; install systemd")
        text = (PACKAGING / "troupe@.service").read_text().replace("/usr/local/bin/troupe", TROUPE)
        path = pathlib.Path(self.folder) / "troupe@stage1.service"
        path.write_text(text)
        verified = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
        complaints = [line for line in verified.stderr.splitlines() if "troupe@stage1" in line]
        self.assertEqual(complaints, [], verified.stderr)

    def test_the_job_of_slurm_starts_nodes_and_a_driver(self):
        job = PACKAGING / "troupe.sbatch"
        subprocess.run(["bash", "-n", job], check=True)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", job], check=True)
        port = free_port()
        pathlib.Path(self.folder, "cluster.json").write_text(json.dumps(
            {"nodes": [{"name": "stage", "port": port, "options": ["--load", MODULES]}, {"name": "other"}]}))
        script(self.folder, "scontrol", "echo 127.0.0.1\n")
        script(self.folder, "srun", 'while case $1 in --*) ;; *) false ;; esac; do shift; done; exec "$@"\n')
        job_here = pathlib.Path(self.folder, "job")
        job_here.write_text(job.read_text().replace(":4001", f":{port}"))
        done = subprocess.run(["bash", job_here, "cluster.json", DRIVER, "--name", "driver"], cwd=self.folder, capture_output=True,
                              text=True, timeout=PATIENCE_S, env={**os.environ, **self.path, "SLURM_JOB_NODELIST": "n1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("loss after 200 steps", done.stdout)
        failed = subprocess.run(["bash", job_here, "cluster.json", "false"], cwd=self.folder, capture_output=True, text=True,
                                timeout=PATIENCE_S, env={**os.environ, **self.path, "SLURM_JOB_NODELIST": "n1"})
        self.assertEqual(failed.returncode, 1, failed.stdout + failed.stderr)


if __name__ == "__main__":
    unittest.main()
