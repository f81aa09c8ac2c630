// SPDX-License-Identifier: BSD-3-Clause
/// The program of a node that only serves: the encoder lives here.
#include <cstdio>
#include <exception>

#include <troupe/troupe.hpp>

#include "encoder.hpp"

// stage:begin
int main(int argc, char** argv) try {
  troupe::settings options(argc, argv);  // --name=stage --host=0.0.0.0 --port=4001 --until-left=driver ...
  options.prepare = add_encoder;         // before the node joins others
  troupe::node here(options);
  std::printf("%s listens on %s:%d\n", here.name().c_str(), here.options().host.c_str(), here.port());
  std::fflush(stdout);
  here.serve();  // until SIGTERM, SIGINT, or the end of the driver
} catch (const std::exception& failure) {
  std::fprintf(stderr, "stage: %s\n", failure.what());
  return 1;
}
// stage:end
