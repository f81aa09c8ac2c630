// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <troupe/actors/support/durable_file.hpp>

namespace troupe::apps::charlm {

namespace fs = std::filesystem;

constexpr std::array files_of_a_run{"metrics.jsonl", "summary.json", "loss.svg", "trace.json", "checkpoint"};

namespace {

fs::path made(fs::path path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (!fs::is_directory(path))
    throw std::runtime_error("expected a folder to write to at " + path.string() + ", but it can't be made: " +
                             (failure ? failure.message() : std::string("a file is in its place")) +
                             "; name another with --out");
  return path;
}

}  // namespace

run_folder::run_folder(fs::path path) : path_(made(std::move(path))), lock_(path_, ", or name another with --out") {}

void run_folder::abandon() const noexcept {
  std::error_code ignored;
  for (const auto& folder : {path_, fs::path(checkpoint())})
    for (fs::directory_iterator each(folder, ignored), end; !ignored && each != end; each.increment(ignored))
      if (each->path().extension() == ".part") ::unlink(each->path().c_str());
  lock_.remove();
}

bool run_folder::has_checkpoint() const { return fs::exists(fs::path(checkpoint()) / "checkpoint.json"); }

void run_folder::expect_disk_space(std::uintmax_t bytes) const {
  std::error_code failure;
  const auto free = fs::space(path_, failure).available;
  if (failure || free >= bytes) return;
  const auto megabytes = [](std::uintmax_t n) { return std::to_string((n + 999'999) / 1'000'000) + " MB"; };
  throw std::runtime_error("expected room for " + megabytes(bytes) + " in the folder " + path_.string() +
                           ", but there are only " + megabytes(free) +
                           " (no space left on the device); free some, or name another folder with --out");
}

std::optional<std::string> run_folder::set_aside() const {
  const auto is_here = [this](const char* name) { return fs::exists(path_ / name); };
  if (std::none_of(files_of_a_run.begin(), files_of_a_run.end(), is_here)) return {};
  fs::path aside;
  int number = 0;
  do {
    aside = path_ / ("previous-" + std::to_string(++number));
  } while (!fs::create_directory(aside));
  for (const auto* name : files_of_a_run)
    if (is_here(name)) fs::rename(path_ / name, aside / name);
  return aside.string();
}

bool run_folder::remove_run() const {
  std::uintmax_t removed = 0;
  for (const auto* name : files_of_a_run) removed += fs::remove_all(path_ / name);
  return removed > 0;
}

void write_whole_file(const std::string& path, const std::string& content) {
  support::durable_file file{path};
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace troupe::apps::charlm
