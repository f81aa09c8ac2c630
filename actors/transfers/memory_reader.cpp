// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/memory_reader.hpp>

#include <algorithm>
#include <exception>
#include <system_error>
#include <tuple>
#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::transfers {

contracts::memory_reader_actor spawn_memory_reader(uses<with_network, with_actors> here) {
  const auto make = [here](const contracts::memory_reader_actor&) {
    return std::tuple{[here](contracts::incoming_offer_ptr& job) {
      try {
        job->failure = here.network.arriving->read(job->offer, job->piece);
      } catch (const std::exception& reason) {  // for example no memory for a text
        job->failure = error(errc::function_failed, reason.what());
      }
      caf::anon_send(here.actors.gateway, std::move(job));
    }};
  };
  return support::spawn_handlers_with_thread<contracts::memory_reader_actor>(*here.actors.system, "troupe.reader", make);
}

bool lazy_memory_readers::read(contracts::incoming_offer_ptr job) {
  TROUPE_EXPECT(here_.network);
  checked_lock lock(mutex_);
  if (stopped_) return false;
  if (readers_.size() <= std::min<std::uint64_t>(not_read_, most - 1)) add();
  ++not_read_;
  caf::anon_send(readers_[offers_++ % readers_.size()], std::move(job));
  return true;
}

void lazy_memory_readers::add() {
  if (readers_.empty()) guards_.clear();  // those of readers that have ended
  try {
    readers_.push_back(spawn_memory_reader(here_));
    guards_.push_back(here_.network.peers.own->add(readers_.back().id(), gate::own_actors::kind::inner));
  } catch (const std::system_error&) {
    if (readers_.empty()) throw;
  }
}

void lazy_memory_readers::was_read() {
  checked_lock lock(mutex_);
  if (--not_read_ == 0 && !stopped_ && !std::exchange(is_watched_, true)) watch();
}

void lazy_memory_readers::watch() {
  here_.deadlines.set(idle_time_, [this, offers = offers_] { end_if_unused(offers); });
}

void lazy_memory_readers::end_if_unused(std::uint64_t offers) {
  checked_lock lock(mutex_);
  is_watched_ = not_read_ == 0 && offers_ != offers;
  if (is_watched_) return watch();
  if (not_read_ > 0) return;
  for (const auto& each : std::exchange(readers_, {})) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
}

std::vector<contracts::memory_reader_actor> lazy_memory_readers::stop() {
  checked_lock lock(mutex_);
  stopped_ = true;
  return std::exchange(readers_, {});
}

}  // namespace troupe::transfers
