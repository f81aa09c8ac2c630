// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/memory_reader.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <troupe/actors/services/device_wait.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/support/deadline_clock.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/expect.hpp>

namespace troupe::transfers {

namespace {

/// The offers on devices whose copies run.
class device_copies {
 public:
  explicit device_copies(arriving_tensors& arriving) : arriving_(arriving) {}

  bool empty() const { return running_.empty(); }

  /// Begins the copy. Throws troupe::error if it can't begin.
  void begin(devices::foreign_devices& devices, const contracts::incoming_offer_ptr& job) {
    try {
      job->copy = devices.copy(job->offer);
    } catch (...) {
      arriving_.give_up(job->offer, job->piece);
      throw;
    }
    if (empty()) begin_ns_ = support::steady_ns();
    running_.push_back(job);
  }

  /// Returns the offers whose copies are done.
  std::vector<contracts::incoming_offer_ptr> ended() {
    const auto first = std::stable_partition(running_.begin(), running_.end(), [this](const auto& job) { return runs(*job); });
    std::vector<contracts::incoming_offer_ptr> result(std::make_move_iterator(first), std::make_move_iterator(running_.end()));
    running_.erase(first, running_.end());
    if (!result.empty()) begin_ns_ = support::steady_ns();
    return result;
  }

  /// Lets some time pass before the devices are asked again.
  void pause() const { services::pause_after(support::steady_ns() - begin_ns_); }

 private:
  bool runs(contracts::incoming_offer& job) {
    try {
      if (!job.copy->is_done()) return true;
      job.failure = arriving_.add(job.offer, job.piece, job.copy->elements());
    } catch (const c10::Error& reason) {
      job.failure = error(errc::function_failed, reason.what_without_backtrace());
      arriving_.give_up(job.offer, job.piece);
    }
    job.copy = nullptr;
    return false;
  }

  arriving_tensors& arriving_;
  std::vector<contracts::incoming_offer_ptr> running_;
  std::int64_t begin_ns_ = 0;  // when the last copy ended, or the first one began
};

}  // namespace

contracts::memory_reader_actor spawn_memory_reader(uses<with_network, with_actors> here,
                                                   std::shared_ptr<devices::foreign_devices> devices) {
  const auto make = [here, devices = std::move(devices)](const contracts::memory_reader_actor& self) {
    services::sleep_precisely();
    const auto copies = std::make_shared<device_copies>(*here.network.arriving);
    const auto look = [here, self, copies] {
      for (auto& each : copies->ended()) caf::anon_send(here.actors.gateway, std::move(each));
      if (!copies->empty()) caf::anon_send(self, support::tick_atom::value);
    };
    return std::tuple{[here, devices, copies, look](contracts::incoming_offer_ptr& job) {
                        const bool waited = !copies->empty();
                        try {
                          if (job->offer.allocation.empty())
                            job->failure = here.network.arriving->read(job->offer, job->piece);
                          else
                            copies->begin(*devices, job);
                        } catch (const error& reason) {
                          job->failure = reason;
                        } catch (const std::exception& reason) {  // for example no memory for the tensor
                          job->failure = error(errc::function_failed, reason.what());
                        }
                        if (job->failure || !job->copy) caf::anon_send(here.actors.gateway, std::move(job));
                        if (!waited) look();
                      },
                      [copies, look](support::tick_atom) {
                        copies->pause();
                        look();
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
    readers_.push_back(spawn_memory_reader(here_, devices_));
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
