// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/services/running_work_test.cpp, tests/actors/nodes/node_runtime_test.cpp
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/intrusive/list.hpp>

#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::services {

/// The work that the threads of a node run, for the error of a node that can't stop. Any thread may use running_work.
///   RW-1  text() names all work whose `entry` lives, the oldest first; beyond `most_named` it says how many more there are.
///   RW-2  an entry allocates nothing, so it can be made where no exception may leave.
class running_work {
  using hook = boost::intrusive::list_base_hook<>;

 public:
  static constexpr std::size_t most_named = 5;

  /// Stands for one piece of work, from its begin to its end.
  class entry : public hook {
   public:
    /// `kind`, `name`: such as "the call of" and "f"; both texts have to outlive the entry. The name may be empty. `now_ns`:
    /// nanoseconds of the steady clock.
    entry(running_work& all, std::string_view kind, std::string_view name, std::int64_t now_ns) noexcept
        : all_(all), kind_(kind), name_(name), begin_ns_(now_ns) {
      const checked_lock lock(all_.mutex_);
      all_.work_.push_back(*this);
    }
    ~entry() {
      const checked_lock lock(all_.mutex_);
      all_.work_.erase(all_.work_.iterator_to(*this));
    }
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;

   private:
    friend class running_work;

    running_work& all_;
    const std::string_view kind_;
    const std::string_view name_;
    const std::int64_t begin_ns_;
  };

  /// The work that runs; "" if nothing runs.
  std::string text(std::int64_t now_ns) const {
    const checked_lock lock(mutex_);
    std::string result;
    std::size_t named = 0;
    for (const auto& each : work_) {
      if (named++ == most_named) return result + " and " + std::to_string(work_.size() - most_named) + " more";
      result += (result.empty() ? "" : ", ") + std::string(each.kind_);
      if (!each.name_.empty()) result += " '" + std::string(each.name_) + "'";
      result += " (for " + support::seconds_text(std::chrono::milliseconds((now_ns - each.begin_ns_) / 1'000'000)) + ")";
    }
    return result;
  }

 private:
  mutable checked_mutex mutex_;
  boost::intrusive::list<entry> work_ TROUPE_GUARDED_BY(mutex_);
};

/// Marks a thread that runs a call or a burst of a node, as long as the object lives.
class own_thread {
 public:
  /// `work`: the work of the node. `kind`, `name`: see running_work::entry.
  explicit own_thread(running_work& work, std::string_view kind, std::string_view name = {}) noexcept;
  ~own_thread() { current_ = outer_; }
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;
  static bool of(const running_work& which) noexcept { return current_ == &which; }

 private:
  static inline thread_local const running_work* current_ = nullptr;
  const running_work::entry entry_;
  const running_work* outer_;
};

}  // namespace troupe::services
