// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <future>

#include <boost/test/unit_test.hpp>
#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/send.hpp>

namespace troupe::test {

/// A message that asks a broker to run a function. The function has to live until the broker has run it.
struct posted_work {
  std::function<void()>* run;
};

/// How long a test waits for an event that has to come.
constexpr std::chrono::seconds long_enough{20};

/// Makes the broker run the work. Returns when the broker has run it.
inline void run_in(const caf::actor& broker, const std::function<void()>& work) {
  std::promise<void> done;
  std::function<void()> all = [&] {
    work();
    done.set_value();
  };
  caf::anon_send(broker, posted_work{&all});
  const auto how = done.get_future().wait_for(long_enough);  // `work` may use Boost.Test: only one thread may use it at a time
  BOOST_REQUIRE((how == std::future_status::ready));
}

}  // namespace troupe::test

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::test::posted_work)
