# SPDX-License-Identifier: BSD-3-Clause
"""Some of the Savina programs with Pykka's actors: savina_pykka.py PROGRAM ROUNDS EXPECTED NAME=NUMBER... Prints the seconds of each round.

Without a round that does not count: a round is long. Ends with status 1 if a result is wrong or does not come."""
import queue
import sys
import time

import pykka

LONGEST_WAIT_S = 100


class Ponger(pykka.ThreadingActor):
    def on_receive(self, message):
        message.tell("pong")


class Pinger(pykka.ThreadingActor):
    def __init__(self, found, messages, to):
        super().__init__()
        self.found, self.messages, self.to, self.answers = found, messages, to, 0

    def on_receive(self, message):
        if message == "pong":
            self.answers += 1
        if self.answers == self.messages:
            self.found.put(self.answers)
        else:
            self.to.tell(self.actor_ref)


class Counter(pykka.ThreadingActor):
    def __init__(self, found, messages):
        super().__init__()
        self.found, self.left, self.sum = found, messages, 0

    def on_receive(self, message):
        self.sum += message
        self.left -= 1
        if self.left == 0:
            self.found.put(self.sum)


class Member(pykka.ThreadingActor):
    def __init__(self, found, number):
        super().__init__()
        self.found, self.number, self.next = found, number, None

    def on_receive(self, message):
        if isinstance(message, pykka.ActorRef):
            self.next = message
        elif message > 0:
            self.next.tell(message - 1)
        else:
            self.found.put(self.number)


def ping_pong(found, messages):
    Pinger.start(found, messages, Ponger.start()).tell("begin")
    return found.get(timeout=LONGEST_WAIT_S)


def counting(found, messages):
    counter = Counter.start(found, messages)
    for _ in range(messages):
        counter.tell(1)
    return found.get(timeout=LONGEST_WAIT_S)


def fork_join_throughput(found, actors, messages):
    counters = [Counter.start(found, messages) for _ in range(actors)]
    for number in range(messages):
        for each in counters:
            each.tell(number)
    return sum(found.get(timeout=LONGEST_WAIT_S) for _ in counters)


def thread_ring(found, actors, hops):
    ring = [Member.start(found, number) for number in range(actors)]
    for number, each in enumerate(ring):
        each.tell(ring[(number + 1) % actors])
    ring[0].tell(hops)
    return found.get(timeout=LONGEST_WAIT_S)


def main(program, rounds, expected, *parameters):
    given = {name: int(number) for name, number in (each.split("=") for each in parameters)}
    for _ in range(int(rounds)):
        begin = time.monotonic()
        came = globals()[program](queue.Queue(), **given)
        took = time.monotonic() - begin
        pykka.ActorRegistry.stop_all()
        if came != int(expected):
            sys.exit(f"expected the result {expected}, got {came}")
        print(f"{took:.9f}")


main(*sys.argv[1:])
