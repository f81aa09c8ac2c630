// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/chrome_trace.hpp>

#include <algorithm>
#include <map>
#include <string_view>

namespace troupe::tracing {

namespace {

// One bar of the picture: a span with its node's and row's numbers, on the common clock.
struct bar {
  const trace_span* span;
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::size_t process;
  std::size_t thread;
};

// A row holds spans that follow or enclose one another: the ends of those that are open, innermost last.
using open_ends = std::vector<std::int64_t>;

bool fits(open_ends& row, const bar& next) {
  while (!row.empty() && row.back() <= next.begin_ns) row.pop_back();
  return row.empty() || next.end_ns <= row.back();
}

// Length of the valid UTF-8 sequence at the start of `text`; 0 where there is none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = at(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  const bool too_long = (first == 0xe0 && at(1) < 0xa0) || (first == 0xf0 && at(1) < 0x90);
  const bool no_character = (first == 0xed && at(1) > 0x9f) || (first == 0xf4 && at(1) > 0x8f);
  return length > 2 && (too_long || no_character) ? 0 : length;
}

void write_text(std::string& to, std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  to += '"';
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const auto c = text.front();
    if (length == 0)
      to += "\\ufffd";
    else if (c == '"' || c == '\\')
      (to += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      ((to += "\\u00") += digits[c >> 4]) += digits[c & 15];
    else
      to += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  to += '"';
}

// Nanoseconds as microseconds, exactly.
void write_microseconds(std::string& to, std::uint64_t ns) {
  const auto fraction = std::to_string(ns % 1000);
  to += std::to_string(ns / 1000) + '.' + std::string(3 - fraction.size(), '0') + fraction;
}

void write_name(std::string& to, const char* what, std::size_t process, std::size_t thread, std::string_view name) {
  to += std::string("{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(process) +
        ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":";
  write_text(to, name);
  to += "}},\n";
}

void write_order(std::string& to, const char* what, std::size_t process, std::size_t thread) {
  to += std::string("{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(process) +
        ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"sort_index\":" + std::to_string(thread == 0 ? process : thread) +
        "}},\n";
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

// Gives every bar of a node its row; the names of the rows go to `to`.
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
  for (const auto& next : bars) {
    result += "{\"ph\":\"X\",\"name\":";
    write_text(result, next.span->name);
    result += ",\"cat\":";
    write_text(result, next.span->category);
    result += ",\"pid\":" + std::to_string(next.process) + ",\"tid\":" + std::to_string(next.thread) + ",\"ts\":";
    write_microseconds(result, static_cast<std::uint64_t>(time_minus(next.begin_ns, origin)));
    result += ",\"dur\":";
    write_microseconds(result, static_cast<std::uint64_t>(time_minus(next.end_ns, next.begin_ns)));
    result += "},\n";
  }
  if (result.ends_with(",\n")) result.erase(result.size() - 2, 1);
  return result + "],\"otherData\":{\"origin_ns\":" + std::to_string(origin) + "}}\n";
}

}  // namespace troupe::tracing
