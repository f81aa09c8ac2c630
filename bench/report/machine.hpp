// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench {

/// What figures were measured with.
struct versions {
  std::string troupe;
  std::string build_type;
  std::string compiler;
  std::string libtorch;
  std::string caf;
  std::string openssl;
};

/// Where, when and with what figures were measured. A text is empty where the fact is not known.
struct machine {
  std::string cpu;
  int cores = 0;
  bool is_virtual = false;
  std::int64_t memory_mib = 0;
  std::string system;    // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;    // "Linux 6.1.0"
  std::string governor;  // of the first core's clock
  std::string date;      // "2026-11-25 19:00 UTC"
  double load = 0;       // processes that ran or waited, mean of the minute before the start
  bool quick = false;    // short runs: figures are rough
  std::string commit;    // of troupe
  versions built_with{};
};

/// The machine of this process. `root`: where proc, sys and etc are.
machine this_machine(const versions& built_with, const std::filesystem::path& root = "/");

/// Writes `<folder>/machine.json`. Throws std::runtime_error with the file's name on failure.
void write_machine(const std::filesystem::path& folder, const machine& where);

/// The machine of a folder with reports; none without a file machine.json. Throws std::runtime_error if the file can't be read.
std::optional<machine> read_machine(const std::filesystem::path& folder);

/// The facts that are known, each with its name, in the order in which a page shows them.
std::vector<std::pair<std::string, std::string>> facts_of(const machine& where);

}  // namespace troupe::bench
