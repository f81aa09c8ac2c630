// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/tracing/tracer.hpp>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/span.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/tracing/generated/trace.pb.h>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/framing.hpp>

namespace troupe::tracing {

namespace {

constexpr std::size_t longest_text = 256;
constexpr std::size_t most_text_bytes = std::size_t{4} << 20;  // a message has at most 16 MiB of values

constexpr std::int64_t time_plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::malformed_message, "trace: expected what pack() wrote, got " + what);
}

void check(const trace_wire::Log& log, std::size_t most) {
  if (log.spans() > most) refuse(std::to_string(log.spans()) + " spans, of which at most " + std::to_string(most) + " come");
  for (const auto& text : log.texts())
    if (text.size() > longest_text) refuse("a text of " + std::to_string(text.size()) + " bytes");
  const auto entries = [&](std::size_t count, const char* what) {
    if (!log.has_spans() || count != log.spans())
      refuse(std::to_string(count) + ' ' + what + " for " +
             (log.has_spans() ? std::to_string(log.spans()) : "an unknown number of") + " spans");
  };
  entries(static_cast<std::size_t>(log.names_size()), "names");
  entries(static_cast<std::size_t>(log.categories_size()), "categories");
  entries(static_cast<std::size_t>(log.tracks_size()), "tracks");
  entries(static_cast<std::size_t>(log.begins_ns_size()), "begins");
  entries(static_cast<std::size_t>(log.lengths_ns_size()), "lengths");
  if (log.flows_size() > 0) entries(static_cast<std::size_t>(log.flows_size()), "flows");
}

// Whether the bytes are few enough for `most` spans. To be checked before the bytes are parsed, because most entries take eight
// times their bytes once libprotobuf has parsed them, and short texts take more.
bool are_few(std::string_view bytes, std::size_t most) {
  constexpr std::size_t of_span = 64;  // upper bound of the bytes of a span without its texts
  constexpr std::size_t of_log = 64;   // upper bound of the fields that are not texts
  return bytes.size() <= most_text_bytes + of_span * (most + 1) &&
         fields_in(caf::as_bytes(caf::make_span(bytes.data(), bytes.size()))).value_or(bytes.size()) <= 3 * most + of_log;
}

// The index of the oldest span that is packed.
std::size_t first_packed(const std::vector<trace_span>& spans) {
  std::unordered_set<std::string_view> known;
  std::size_t bytes = 0;
  for (auto i = spans.size(); i > 0; --i)
    for (const std::string_view text :
         std::initializer_list<std::string_view>{spans[i - 1].name, spans[i - 1].category, spans[i - 1].track})
      if (known.insert(text.substr(0, longest_text)).second && (bytes += std::min(text.size(), longest_text)) > most_text_bytes)
        return i;
  return 0;
}

}  // namespace

std::string pack(const trace_log& log) {
  const auto first = first_packed(log.spans);
  trace_wire::Log to;
  trace_wire::Log of_flows;  // serialised before `to`: so truncated bytes lack fields of `to`, such as `spans`
  to.set_spans(log.spans.size() - first);
  to.set_dropped(log.dropped + first);
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  const auto number_of = [&](std::string_view text) {
    text = text.substr(0, longest_text);
    const auto [entry, fresh] = numbers.try_emplace(text, static_cast<std::uint32_t>(to.texts_size()));
    if (fresh) to.add_texts(text.data(), text.size());
    return entry->second;
  };
  const auto packed = std::span(log.spans).subspan(first);
  const bool flows = std::any_of(packed.begin(), packed.end(), [](const trace_span& span) { return span.flow != 0; });
  std::int64_t last = 0;
  for (const auto& span : packed) {
    to.add_names(number_of(span.name));
    to.add_categories(number_of(span.category));
    to.add_tracks(number_of(span.track));
    to.add_begins_ns(time_minus(span.begin_ns, last));
    to.add_lengths_ns(time_minus(span.end_ns, span.begin_ns));
    if (flows) of_flows.add_flows(span.flow);
    last = span.begin_ns;
  }
  return of_flows.SerializeAsString() + to.SerializeAsString();
}

trace_log unpack(std::string_view bytes, std::size_t most) {
  trace_wire::Log from;
  if (!are_few(bytes, most)) refuse("more bytes or names than " + std::to_string(most) + " spans have");
  if (!from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) refuse("other bytes");
  check(from, most);
  const auto text = [&](std::uint32_t number) -> const std::string& {
    if (number >= static_cast<std::uint32_t>(from.texts_size()))
      refuse("text " + std::to_string(number) + " of " + std::to_string(from.texts_size()));
    return from.texts(static_cast<int>(number));
  };
  trace_log result;
  result.dropped = from.dropped();
  result.spans.reserve(from.spans());
  std::int64_t last = 0;
  for (int i = 0; i < from.names_size(); ++i) {
    last = time_plus(last, from.begins_ns(i));
    result.spans.push_back({text(from.names(i)), text(from.categories(i)), last, time_plus(last, from.lengths_ns(i)),
                            text(from.tracks(i)), from.flows_size() > 0 ? from.flows(i) : 0});
  }
  return result;
}

void span_ring::add(trace_span span) {
  if (spans_.size() < capacity_) {
    spans_.push_back(std::move(span));
    return;
  }
  spans_[oldest_] = std::move(span);
  oldest_ = (oldest_ + 1) % capacity_;
  ++dropped_;
}

trace_log span_ring::log() const {
  trace_log result;
  result.spans.reserve(spans_.size());
  const auto middle = spans_.begin() + static_cast<std::ptrdiff_t>(oldest_);
  result.spans.insert(result.spans.end(), middle, spans_.end());
  result.spans.insert(result.spans.end(), spans_.begin(), middle);
  result.dropped = dropped_;
  return result;
}

tracer_actor::behavior_type make_tracer(tracer_actor::stateful_pointer<tracer_state> self, std::size_t capacity) {
  self->state.ring = span_ring(capacity);
  return {
    [=](trace_span& span) { self->state.ring.add(std::move(span)); },
    [=](support::collect_atom) { return self->state.ring.log(); },
  };
}

tracer_actor spawn_tracer(caf::actor_system& system, std::size_t capacity) { return system.spawn(make_tracer, capacity); }

trace_recorder::trace_recorder(tracer_actor to, bool enabled) : shared_(new shared{enabled, false, std::move(to)}) {}

void trace_recorder::enable(bool on) noexcept {
  if (shared_) shared_->enabled.store(on, std::memory_order_relaxed);
}

void trace_recorder::profile(bool on) noexcept {
  if (!shared_) return;
  if (on) enable(true);
  shared_->profiling.store(on, std::memory_order_relaxed);
}

void trace_recorder::record(trace_span span) const {
  if (enabled()) caf::anon_send(shared_->to, std::move(span));
}

void trace_recorder::record(std::string_view name, std::string_view category, std::int64_t begin_ns, std::int64_t end_ns,
                            std::string_view track, std::uint64_t flow) const {
  if (!enabled()) return;
  caf::anon_send(shared_->to, trace_span{std::string(name), std::string(category), begin_ns, end_ns,
                                         std::string(track.empty() ? category : track), flow});
}

}  // namespace troupe::tracing
