// SPDX-License-Identifier: BSD-3-Clause
#include "../support/row_program.hpp"

namespace {

constexpr const char* what_it_does =
  "Measures backward passes on libtorch's own engine, on troupe's and in a bare loop over the same functions, in turns on one "
  "thread, and prints a table: ratio is libtorch's cost by troupe's (of a ..._memory row troupe's by libtorch's, of "
  "chain_1000000 its cost per function by that of chain_1000). parallel_... compare troupe without and with one worker, in the "
  "columns libtorch and troupe. Also writes engine.json and engine.txt.";
constexpr const char* example = "Example: engine_bench --only chain_1000 mlp_batch_1 --out out/bench";

}  // namespace

int main(int argc, char** argv) {
  return troupe::bench::run({"engine", what_it_does, example, "libtorch", troupe::bench::engine_rows}, argc, argv);
}
