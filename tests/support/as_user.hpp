// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/fsuid.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>

#include <boost/test/unit_test.hpp>

namespace troupe::test {

/// While an object of this class lives, the sockets that this thread makes or accepts belong to another user, as the kernel sees it.
/// Only root may do this.
class as_user {
 public:
  static constexpr uid_t somebody = 64124;

  explicit as_user(uid_t who = somebody) : before_(static_cast<uid_t>(::setfsuid(who))) {
    BOOST_REQUIRE(static_cast<uid_t>(::setfsuid(who)) == who);
  }
  ~as_user() { ::setfsuid(before_); }
  as_user(const as_user&) = delete;
  as_user& operator=(const as_user&) = delete;

 private:
  uid_t before_;
};

inline boost::test_tools::assertion_result can_be_another_user(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(::geteuid() == 0);
  if (!result) {
    result.message() << "only root makes sockets of another user";
    std::printf("SKIPPED: only root makes sockets of another user\n");
  }
  return result;
}

}  // namespace troupe::test
