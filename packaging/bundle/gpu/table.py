# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the table that check.sh prints. Each is written as soon as it is known."""


def row(what, result, ratio="", bar=""):
    print("|", " | ".join(each.replace("|", "/") for each in (what, result, ratio, bar)), "|", flush=True)


def figure(what, result, ratio, bar=None):
    """A ratio that should be at least `bar`."""
    row(what, result, f"{ratio:.2f}" + (", **short**" if bar and ratio < bar else ""), f"{bar:.2f}" if bar else "")


def same(what, *digests):
    row(what, "same bits" if len(set(digests)) == 1 else "**differs**: " + " and ".join(map(str, digests)))


def failed(what, why):
    row(what, "**failed**: " + (str(why).strip().splitlines() or ["no reason"])[-1])
