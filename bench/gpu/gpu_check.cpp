// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <troupe/actors/support/texts.hpp>
#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/devices/device_map.hpp>
#include <troupe/devices/present_devices.hpp>

#include "checks.hpp"
#include "node_programs.hpp"

namespace {

using namespace troupe::bench;

const std::vector<std::string> sections{"gradients", "kernels",      "nodes",          "processes",
                                        "figures",   "node_figures", "process_figures"};

struct check_options {
  std::string device = "cuda:0";
  std::vector<std::string> only;
  bool quick = false;
  bool spoil = false;
  bool card = false;

  bool wants(const std::string& section) const {
    return only.empty() || std::find(only.begin(), only.end(), section) != only.end();
  }
};

// Algorithms that libtorch would choose by measuring may differ from pass to pass.
void repeat_bits() {
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
}

int check(const check_options& options) {
  std::optional<other_node> there;  // has to be made before anything looks for a GPU
  if (!options.card && (options.wants("processes") || options.wants("process_figures")))
    there.emplace([is_gpu = options.device.rfind("cuda", 0) == 0] {
      if (is_gpu) troupe::devices::load_cuda_kernels();
    });
  troupe::devices::present_devices();  // checks that an early look does not hide a GPU
  const gpu_device where(troupe::devices::usable_device(options.device));
  if (options.card) return std::printf("%s, libtorch %s\n", where.card().c_str(), TROUPE_TORCH_VERSION) > 0 ? 0 : 2;
  repeat_bits();
  if (where.device().is_cpu()) at::set_num_threads(1);
  std::printf("%s, libtorch %s\n\n", where.card().c_str(), TROUPE_TORCH_VERSION);
  gpu_report report(options.spoil, stdout);
  // What one section throws does not cost the rows of the others.
  const auto section = [&](const char* name, const auto& run) {
    try {
      if (options.wants(name)) run(where, options.quick, report);
    } catch (const std::exception& failed) {
      report.failure(name, troupe::support::text_of(failed));
    }
  };
  section("gradients", [](const auto& on, bool quick, auto& to) { compare_gradients(on, all_models(), quick, to); });
  section("kernels", compare_kernels);
  section("nodes", compare_nodes);
  section("processes", [&](const auto& on, bool quick, auto& to) { compare_processes(on, *there, quick, to); });
  section("figures", measure_figures);
  section("node_figures", measure_nodes);
  section("process_figures", [&](const auto& on, bool quick, auto& to) { measure_processes(on, *there, quick, to); });
  std::printf("%s", report.counts().c_str());
  return report.failed() ? 1 : 0;
}

int run(int argc, char** argv) {
  CLI::App app{
    "Compares what troupe computes on a device with libtorch and with the host, bit for bit, measures it, and prints a "
    "table. Status 1: something differs.",
    "gpu_check"};
  check_options options;
  app.add_option("--device", options.device, "The device to look at; on cpu the kernels' bodies run on the CPU")
    ->capture_default_str();
  app.add_option("--only", options.only, "Sections (all if not given)")->check(CLI::IsMember(sections));
  app.add_flag("--quick", options.quick, "Small sizes and short measurements: shows that the program works");
  app.add_flag("--card", options.card, "Only print the names of the device and of libtorch");
  app.add_flag("--break", options.spoil, "Change a bit before each comparison: each has to differ")->group("");
  CLI11_PARSE(app, argc, argv);
  return check(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "gpu_check: %s\n", failure.what());
  } catch (...) {
    std::fputs("gpu_check: an exception of an unknown type\n", stderr);
  }
  return 2;
}
