// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <sys/utsname.h>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "figure_text.hpp"
#include "../support/json_file.hpp"

namespace troupe::bench {

namespace {

/// What follows `key` and `separator` in the first line of a file that begins with `key`; empty if there is none.
std::string field_of(const std::filesystem::path& file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto end = line.find(separator);
    if (end == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const auto begin = line.find_first_not_of(" \t\"", end + 1);
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\"") + 1 - begin);
  }
  return {};
}

std::string first_line_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

int cores_in(const std::filesystem::path& cpuinfo) {
  std::ifstream in(cpuinfo);
  int count = 0;
  for (std::string line; std::getline(in, line);) count += line.rfind("processor", 0) == 0 ? 1 : 0;
  return count;
}

std::string kernel_as_text() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.sysname) + " " + names.release + " " + names.machine : "";
}

std::string printed(const char* how, double value) {
  char text[64];
  std::snprintf(text, sizeof text, how, value);
  return text;
}

}  // namespace

machine this_machine(const versions& built_with, const std::filesystem::path& root) {
  const auto cpuinfo = root / "proc/cpuinfo";
  machine found;
  found.cpu = field_of(cpuinfo, "model name", ':');
  found.cores = cores_in(cpuinfo);
  found.is_virtual = (field_of(cpuinfo, "flags", ':') + " ").find(" hypervisor ") != std::string::npos;
  std::istringstream(field_of(root / "proc/meminfo", "MemTotal", ':')) >> found.memory_mib;
  found.memory_mib /= 1024;
  found.system = field_of(root / "etc/os-release", "PRETTY_NAME", '=');
  found.kernel = kernel_as_text();
  found.governor = first_line_of(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  found.date = date_text(std::time(nullptr));
  std::istringstream(first_line_of(root / "proc/loadavg")) >> found.load;
  found.built_with = built_with;
  return found;
}

void write_machine(const std::filesystem::path& folder, const machine& where) {
  const auto& with = where.built_with;
  const nlohmann::json made{{"cpu", where.cpu},
                            {"cores", where.cores},
                            {"virtual", where.is_virtual},
                            {"memory_mib", where.memory_mib},
                            {"system", where.system},
                            {"kernel", where.kernel},
                            {"governor", where.governor},
                            {"date", where.date},
                            {"load", where.load},
                            {"quick", where.quick},
                            {"commit", where.commit},
                            {"troupe", with.troupe},
                            {"build_type", with.build_type},
                            {"compiler", with.compiler},
                            {"libtorch", with.libtorch},
                            {"caf", with.caf},
                            {"openssl", with.openssl}};
  write_text(folder / "machine.json", made.dump(1) + "\n");
}

std::optional<machine> read_machine(const std::filesystem::path& folder) {
  const auto file = folder / "machine.json";
  if (!std::filesystem::exists(file)) return {};
  const auto from = read_json(file);
  try {
    return machine{
      from.at("cpu"),
      from.at("cores"),
      from.at("virtual"),
      from.at("memory_mib"),
      from.at("system"),
      from.at("kernel"),
      from.at("governor"),
      from.at("date"),
      from.at("load"),
      from.at("quick"),
      from.at("commit"),
      {from.at("troupe"), from.at("build_type"), from.at("compiler"), from.at("libtorch"), from.at("caf"), from.at("openssl")}};
  } catch (const std::exception& wrong) {
    throw std::runtime_error("'" + file.string() + "' describes no machine (" + wrong.what() + "); remove it");
  }
}

std::vector<std::pair<std::string, std::string>> facts_of(const machine& where) {
  std::vector<std::pair<std::string, std::string>> all;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) all.emplace_back(name, text);
  };
  const auto& with = where.built_with;
  const std::string cores = where.cores == 0 ? "" : std::to_string(where.cores) + (where.cores == 1 ? " core" : " cores");
  add("measured", where.date + (where.quick ? ", quick run" : ""));
  add("processor",
      where.cpu + (where.cpu.empty() || cores.empty() ? "" : ", ") + cores + (where.is_virtual ? ", virtual machine" : ""));
  add("memory", where.memory_mib == 0 ? "" : printed("%.1f GiB", static_cast<double>(where.memory_mib) / 1024));
  add("system", where.system + (where.system.empty() ? "" : ", ") + where.kernel);
  add("clock governor", where.governor);
  add("load before", printed("%.2f", where.load));
  add("troupe",
      with.troupe + (where.commit.empty() ? "" : " (" + where.commit + ")") + ", " + with.build_type + ", " + with.compiler);
  add("libraries", "libtorch " + with.libtorch + ", CAF " + with.caf + ", OpenSSL " + with.openssl);
  return all;
}

}  // namespace troupe::bench
