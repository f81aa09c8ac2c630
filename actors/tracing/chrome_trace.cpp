// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/chrome_trace.hpp>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json.hpp>

namespace troupe::tracing {

namespace {

using json = nlohmann::ordered_json;

// One bar of the picture: a span with the number of its node and of its row. Times are on the clock of the whole trace.
struct bar {
  const trace_span* span;
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::size_t process;
  std::size_t thread;
};

// The ends of the open spans of a row, innermost last. The spans of a row follow or enclose one another.
using open_ends = std::vector<std::int64_t>;

bool fits(open_ends& row, const bar& next) {
  while (!row.empty() && row.back() <= next.begin_ns) row.pop_back();
  return row.empty() || next.end_ns <= row.back();
}

// Writes one line of the list of events. A JSON value of the whole trace would take many times the memory of its text, so each
// event is written as soon as it is made.
void write(std::string& to, const json& event) {
  to += event.dump(-1, ' ', false, json::error_handler_t::replace);
  to += ",\n";
}

void write_name(std::string& to, const char* what, std::size_t process, std::size_t thread, std::string_view name) {
  write(to, {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
}

void write_order(std::string& to, const char* what, std::size_t process, std::size_t thread) {
  const auto sort_index = thread == 0 ? process : thread;
  write(to, {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"sort_index", sort_index}}}});
}

// A double can distinguish any two nanoseconds within 104 days.
double microseconds(std::int64_t later, std::int64_t earlier) {
  return static_cast<double>(static_cast<std::uint64_t>(time_minus(later, earlier))) / 1000;
}

std::vector<bar> bars_of(const node_trace& node, std::size_t process) {
  std::vector<bar> result;
  result.reserve(node.spans.size());
  for (const auto& span : node.spans) {
    const auto begin = time_minus(span.begin_ns, node.offset_ns);
    result.push_back({&span, begin, std::max(begin, time_minus(span.end_ns, node.offset_ns)), process, 0});
  }
  std::stable_sort(result.begin(), result.end(), [](const bar& a, const bar& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return result;
}

// Gives every bar of a node its row. Writes the names of the rows to `to`.
void lay_out(std::vector<bar>& bars, std::size_t process, std::string& to) {
  std::map<std::string_view, std::vector<bar*>> tracks;
  for (auto& next : bars) tracks[next.span->track].push_back(&next);
  std::size_t rows_before = 0;
  for (auto& [track, members] : tracks) {
    std::vector<open_ends> rows;
    for (auto* next : members) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](open_ends& r) { return fits(r, *next); });
      if (row == rows.end()) row = rows.emplace(rows.end());
      row->push_back(next->end_ns);
      next->thread = rows_before + static_cast<std::size_t>(row - rows.begin()) + 1;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto thread = rows_before + i + 1;
      write_name(to, "thread_name", process, thread, std::string(track) + (i == 0 ? "" : " " + std::to_string(i + 1)));
      write_order(to, "thread_sort_index", process, thread);
    }
    rows_before += rows.size();
  }
}

// The span of a call on the calling node, and the span of the call on the called node.
struct arrow {
  const bar* from = nullptr;
  const bar* to = nullptr;
};

std::unordered_map<std::uint64_t, arrow> arrows_of(const std::vector<bar>& bars) {
  std::unordered_map<std::uint64_t, arrow> arrows;
  for (const auto& next : bars)
    if (next.span->flow != 0)
      (next.span->category == "request" ? arrows[next.span->flow].from : arrows[next.span->flow].to) = &next;
  std::erase_if(arrows, [](const auto& each) { return each.second.from == nullptr || each.second.to == nullptr; });
  return arrows;
}

}  // namespace

std::string chrome_trace(const std::vector<node_trace>& nodes) {
  std::string result = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  std::vector<bar> bars;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto process = i + 1;
    write_name(result, "process_name", process, 0, nodes[i].node);
    write_order(result, "process_sort_index", process, 0);
    auto own = bars_of(nodes[i], process);
    lay_out(own, process, result);
    bars.insert(bars.end(), own.begin(), own.end());
  }
  std::stable_sort(bars.begin(), bars.end(), [](const bar& a, const bar& b) { return a.begin_ns < b.begin_ns; });
  const auto origin = bars.empty() ? 0 : bars.front().begin_ns;
  const auto arrows = arrows_of(bars);
  json event{{"ph", "X"}};  // one object for all spans: its keys are allocated once
  for (const auto& next : bars) {
    event["name"] = next.span->name;
    event["cat"] = next.span->category;
    event["pid"] = next.process;
    event["tid"] = next.thread;
    event["ts"] = microseconds(next.begin_ns, origin);
    event["dur"] = microseconds(next.end_ns, next.begin_ns);
    write(result, event);
    const auto call = arrows.find(next.span->flow);
    if (call == arrows.end() || (call->second.from != &next && call->second.to != &next)) continue;
    write(result, {{"ph", call->second.from == &next ? "s" : "f"},
                   {"bp", "e"},
                   {"name", "call"},
                   {"cat", "call"},
                   {"id", next.span->flow},
                   {"pid", next.process},
                   {"tid", next.thread},
                   {"ts", event["ts"]}});
  }
  if (result.ends_with(",\n")) result.erase(result.size() - 2, 1);
  return result + "],\"otherData\":" + json{{"origin_ns", origin}}.dump() + "}\n";
}

}  // namespace troupe::tracing
