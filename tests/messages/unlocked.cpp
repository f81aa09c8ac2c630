// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/mutex.hpp>

namespace troupe {

/// clang refuses a part of each function.
class unlocked {
 public:
  int get() const { return value_; }
  void add() { change(1); }
  void add_late() {
    checked_unique_lock lock(mutex_);
    lock.unlock();
    change(2);
  }

 private:
  void change(int by) TROUPE_REQUIRES(mutex_) { value_ += by; }

  mutable checked_mutex mutex_;
  int value_ TROUPE_GUARDED_BY(mutex_) = 0;
};

void use() {
  unlocked all;
  all.add();
  all.add_late();
  all.get();
}

}  // namespace troupe
