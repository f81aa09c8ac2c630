// SPDX-License-Identifier: BSD-3-Clause
#include "devices_rows.hpp"
#include "../support/row_program.hpp"

namespace {

constexpr const char* what_it_does =
  "Measures passes whose functions run on lanes (worker threads of the CPU and of two simulated accelerators), and prints a "
  "table. "
  "hand_over: a function goes to a worker and comes back, in turns to the CPU's and to an accelerator's; beside it a CAF "
  "message that "
  "goes to a detached actor and comes back; ratio is the first by the second. hand_over_pass: the same within a pass, whose "
  "thread may "
  "run a function itself that no worker has begun. two_devices: functions of 200 us on the CPU and on both accelerators, on "
  "one thread "
  "(beside) and on lanes; ratio is the first by the second. Also writes devices.json and devices.txt.";
constexpr const char* example = "Example: devices_bench --only two_devices --out out/bench";

}  // namespace

int main(int argc, char** argv) {
  return troupe::bench::run({"devices", what_it_does, example, "beside", troupe::bench::devices_rows}, argc, argv);
}
