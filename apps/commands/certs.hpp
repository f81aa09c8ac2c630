// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/certs_test.cpp
#pragma once

namespace CLI {
class App;
}

namespace troupe::apps {

/// Adds `troupe certs`: makes, renews, revokes and shows the certificates with which the nodes of a cluster prove who they are.
void add_certs_command(CLI::App& app);

}  // namespace troupe::apps
