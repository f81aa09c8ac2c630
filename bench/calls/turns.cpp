// SPDX-License-Identifier: BSD-3-Clause
#include "distributed.hpp"

#include "../support/other_process.hpp"
#include "../support/peers.hpp"
#include "../support/scratch_folder.hpp"

namespace troupe::bench {

namespace {

const char* name_of(side who) { return who == side::torch ? "PyTorch" : who == side::troupe ? "troupe" : "the floor"; }

using served = std::vector<std::unique_ptr<other_process>>;

/// The processes of a side, without the driver.
template <class Serve>
served serve(side who, int count, Serve run) {
  served all;
  for (int position = 1; position <= count; ++position)
    all.push_back(std::make_unique<other_process>([&](int stop, const auto& tell) { run(position, stop, tell); }));
  for (const auto& each : all) each->watch(name_of(who), [] {});
  return all;
}

std::vector<double> runs_of(int count, const std::function<double()>& once) {
  std::vector<double> taken;
  for (int i = -2; i < count; ++i)  // the first two runs warm up
    if (const auto time = once(); i >= 0) taken.push_back(time);
  return taken;
}

int runs_in_turn(const call_row& row, double share) { return std::max(2, static_cast<int>(row.runs * share)); }

times drive(round_trips& driver, const std::vector<call_row>& rows, double share) {
  times all;
  for (const auto& row : rows)
    all.push_back(row.run ? runs_of(runs_in_turn(row, share), [&] { return row.run(driver); }) : std::vector<double>{});
  return all;
}

times torch_turn(const std::vector<call_row>& rows, double share) {
  const scratch_folder folder;
  const auto meeting_file = (folder.path() / "store").string();
  const auto others = serve(side::torch, chain_length - 1,
                            [&](int position, int stop, const auto&) { serve_torch(meeting_file, position, stop); });
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

times troupe_turn(const std::vector<call_row>& rows, double share, bool quick) {
  const auto others =
    serve(side::troupe, chain_length - 1, [](int position, int stop, const auto& tell) { serve_troupe(position, tell, stop); });
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

times floor_turn(const std::vector<call_row>& rows, double share) {
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

}  // namespace

times take_turn(side who, const std::vector<call_row>& rows, double share, bool quick) {
  const auto flat = in_own_process([&] {  // of each row: how many runs, and the runs
    std::vector<double> all;
    for (const auto& row : who == side::torch    ? torch_turn(rows, share)
                           : who == side::troupe ? troupe_turn(rows, share, quick)
                                                 : floor_turn(rows, share)) {
      all.push_back(static_cast<double>(row.size()));
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  });
  times all;
  for (auto at = flat.begin(); at != flat.end();) {
    const auto end = at + 1 + static_cast<std::ptrdiff_t>(*at);
    all.emplace_back(at + 1, end);
    at = end;
  }
  return all;
}

}  // namespace troupe::bench
