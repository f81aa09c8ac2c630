// SPDX-License-Identifier: BSD-3-Clause
#include "turns.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "../support/other_process.hpp"
#include "peers/torch_rpc.hpp"
#include "../support/tcp_floor.hpp"
#include "troupe_rpc.hpp"

namespace troupe::bench {

namespace {

const char* name_of(side who) { return who == side::torch ? "PyTorch" : who == side::troupe ? "troupe" : "the floor"; }

using served = std::vector<std::unique_ptr<other_process>>;

/// The processes of a side, without the driver.
template <class Serve>
served serve(side who, int count, Serve run) {
  served all;
  for (int place = 1; place <= count; ++place)
    all.push_back(std::make_unique<other_process>([&](int stop, const auto& tell) { run(place, stop, tell); }));
  for (const auto& each : all) each->watch(name_of(who), [] {});
  return all;
}

std::vector<double> runs_of(int count, const std::function<double()>& once) {
  std::vector<double> taken;
  for (int i = -2; i < count; ++i)  // the first two runs warm up
    if (const auto time = once(); i >= 0) taken.push_back(time);
  return taken;
}

int runs_in_turn(const definition& row, double share) { return std::max(2, static_cast<int>(row.runs * share)); }

times drive(round_trips& driver, const std::vector<definition>& rows, double share) {
  times all;
  for (const auto& row : rows)
    all.push_back(row.run ? runs_of(runs_in_turn(row, share), [&] { return row.run(driver); }) : std::vector<double>{});
  return all;
}

times torch_turn(const std::vector<definition>& rows, double share, const std::string& meeting_file) {
  const auto others =
    serve(side::torch, chain_length - 1, [&](int place, int stop, const auto&) { serve_torch(meeting_file, place, stop); });
  const auto driver = make_torch_driver(meeting_file);
  const auto stop_others = [&] {  // all at once, because PyTorch's agents end together
    for (const auto& each : others) each->stop();
  };
  try {
    auto taken = drive(*driver, rows, share);
    stop_others();
    return taken;
  } catch (...) {
    stop_others();
    throw;
  }
}

times troupe_turn(const std::vector<definition>& rows, double share, bool quick) {
  const auto others =
    serve(side::troupe, chain_length - 1, [](int place, int stop, const auto& tell) { serve_troupe(place, tell, stop); });
  std::vector<std::uint16_t> ports;
  for (const auto& each : others) ports.push_back(each->told());
  const auto driver = make_troupe_driver(ports);
  auto taken = drive(*driver, rows, share);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].alone) {
      const auto found = rows[i].alone(*driver, ports.front(), quick);
      taken[i] = {found.value.peer, found.value.troupe, found.ratio};
    }
  return taken;
}

times floor_turn(const std::vector<definition>& rows, double share) {
  const auto others = serve(side::floor, 1, [](int, int, const auto& tell) { serve_echo(tell); });
  tcp_floor floor(others.front()->told());
  others.front()->stop();  // from now on the process may end
  times all;
  for (const auto& row : rows)
    all.push_back(row.least.trips > 0
                    ? runs_of(runs_in_turn(row, share), [&] { return floor.seconds(row.least.trips, row.least.bytes); })
                    : std::vector<double>{});
  return all;
}

void write(const times& all, const std::filesystem::path& file) {
  std::ofstream out(file);
  out.precision(17);
  for (const auto& row : all) {
    out << row.size();
    for (const double each : row) out << ' ' << each;
    out << '\n';
  }
  if (!out.flush()) throw std::runtime_error("cannot write '" + file.string() + "'");
}

times read(const std::filesystem::path& file, std::size_t rows) {
  std::ifstream in(file);
  times all(rows);
  for (auto& row : all) {
    std::size_t size = 0;
    in >> size;
    row.resize(size);
    for (double& each : row) in >> each;
  }
  if (!in) throw std::runtime_error("'" + file.string() + "' is not whole");
  return all;
}

}  // namespace

times take_turn(side who, const std::vector<definition>& rows, double share, bool quick, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto file = folder / "times";
  const other_process turn([&](int, const auto& tell) {
    write(who == side::torch    ? torch_turn(rows, share, (folder / "store").string())
          : who == side::troupe ? troupe_turn(rows, share, quick)
                                : floor_turn(rows, share),
          file);
    tell(0);
  });
  try {
    turn.told();
  } catch (const std::exception&) {
    throw std::runtime_error(std::string("the turn of ") + name_of(who) + " failed; nothing was written");
  }
  return read(file, rows.size());
}

}  // namespace troupe::bench
