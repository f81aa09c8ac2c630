// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/contracts/send_credits.hpp>

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <troupe/actors/future.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::contracts {

bool credit_accounts::take(const account& of, std::uint64_t bytes) {
  auto& in = all_[of];
  if (!in.line.empty() || !fits(in, bytes)) return false;
  in.bytes += bytes;
  ++in.calls;
  return true;
}

credit_accounts::ticket credit_accounts::wait(const account& of, std::uint64_t bytes) {
  all_[of].line.push_back({++last_, bytes});
  return last_;
}

bool credit_accounts::take_in_turn(const account& of, ticket which) {
  auto& in = all_.at(of);
  if (in.line.front().number != which || !fits(in, in.line.front().bytes)) return false;
  in.bytes += in.line.front().bytes;
  ++in.calls;
  in.line.pop_front();
  return true;
}

void credit_accounts::give_up(const account& of, ticket which) {
  std::erase_if(all_.at(of).line, [&](const waiting& each) { return each.number == which; });
  drop_if_unused(of);
}

bool credit_accounts::give_back(const account& of, std::uint64_t bytes) {
  auto& in = all_.at(of);
  in.bytes -= bytes;
  --in.calls;
  const bool is_awaited = !in.line.empty();
  drop_if_unused(of);
  return is_awaited;
}

std::uint64_t credit_accounts::under_way(const account& of) const {
  const auto found = all_.find(of);
  return found == all_.end() ? 0 : found->second.bytes;
}

void credit_accounts::drop_if_unused(const account& of) {
  const auto& in = all_.at(of);
  if (in.calls == 0 && in.line.empty()) all_.erase(of);
}

struct send_credits::ledger {
  explicit ledger(std::uint64_t limit) : accounts(limit) {}

  checked_mutex mutex;
  std::condition_variable changed;
  credit_accounts accounts TROUPE_GUARDED_BY(mutex);
  bool stopped TROUPE_GUARDED_BY(mutex) = false;
};

send_credits::credit::credit(std::shared_ptr<ledger> from, const account& of, std::uint64_t bytes)
    : from_(std::move(from)), of_(of), bytes_(bytes) {}

send_credits::credit& send_credits::credit::operator=(credit&& other) noexcept {
  give_back();
  from_ = std::move(other.from_);
  of_ = other.of_;
  bytes_ = other.bytes_;
  return *this;
}

void send_credits::credit::give_back() noexcept {
  const auto from = std::exchange(from_, nullptr);
  if (!from) return;
  bool is_awaited = false;
  {
    checked_lock lock(from->mutex);
    is_awaited = from->accounts.give_back(of_, bytes_);
  }
  if (is_awaited) from->changed.notify_all();
}

send_credits::send_credits(std::uint64_t limit) : ledger_(std::make_shared<ledger>(limit)) {}

send_credits::result send_credits::take(const account& of, std::uint64_t bytes, std::chrono::steady_clock::time_point until,
                                        const std::atomic<bool>* stop) {
  const auto how = take_or_wait({of, bytes, until, stop});
  return {how, how == outcome::taken ? credit(ledger_, of, bytes) : credit()};
}

send_credits::outcome send_credits::take_or_wait(const wish& what) {
  {
    checked_lock lock(ledger_->mutex);
    if (ledger_->stopped) return outcome::stopped;
    if (ledger_->accounts.take(what.of, what.bytes)) return outcome::taken;
  }
  if (detail::continuation_scope::active()) return outcome::busy;
  auto* observer = support::call_scope::observer();
  if (observer != nullptr) observer->blocked();
  const auto result = wait(what);
  if (observer != nullptr) observer->resumed();
  return result;
}

send_credits::outcome send_credits::wait(const wish& what) {
  auto& all = *ledger_;
  checked_unique_lock lock(all.mutex);
  const auto mine = all.accounts.wait(what.of, what.bytes);
  bool took = false;
  const auto is_over = [&]() TROUPE_REQUIRES(all.mutex) { return all.stopped || (what.stop != nullptr && what.stop->load()); };
  const auto goes_on = [&]() TROUPE_REQUIRES(all.mutex) {
    took = !is_over() && all.accounts.take_in_turn(what.of, mine);
    return took || is_over();
  };
  if (what.until == std::chrono::steady_clock::time_point::max())
    all.changed.wait(lock, goes_on);
  else
    all.changed.wait_until(lock, what.until, goes_on);
  if (!took) all.accounts.give_up(what.of, mine);
  const auto result = took ? outcome::taken : is_over() ? outcome::stopped : outcome::deadline_passed;
  lock.unlock();
  all.changed.notify_all();  // another call may have its turn now
  return result;
}

void send_credits::wake() {
  { const checked_lock lock(ledger_->mutex); }  // so that no thread misses wake() between its look at `stop` and its wait
  ledger_->changed.notify_all();
}

std::uint64_t send_credits::under_way(const account& of) const {
  checked_lock lock(ledger_->mutex);
  return ledger_->accounts.under_way(of);
}

void send_credits::stop() {
  {
    checked_lock lock(ledger_->mutex);
    ledger_->stopped = true;
  }
  ledger_->changed.notify_all();
}

}  // namespace troupe::contracts
