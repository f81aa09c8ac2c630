// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/c_api.hpp>

#include <cstdio>
#include <exception>

#include <troupe/engine/drop_in/install.hpp>

namespace {

int guarded(const char* name, void (*call)()) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe: %s failed: %s\n", name, error.what());
    return -1;
  }
}

}  // namespace

int troupe_install_engine() { return guarded("troupe_install_engine", troupe::install_engine); }
int troupe_uninstall_engine() { return guarded("troupe_uninstall_engine", troupe::uninstall_engine); }
