// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/spare_of_thread.hpp>

#include <atomic>
#include <thread>

#include <boost/test/unit_test.hpp>

using troupe::engine::spare_of_thread;

BOOST_AUTO_TEST_SUITE(spares_of_threads)

namespace {

struct counted {
  counted() { ++alive; }
  ~counted() { --alive; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  static inline std::atomic<int> alive{0};
};

using spare = spare_of_thread<counted>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_thread_gets_back_the_last_object_that_it_kept) {
  auto* const first = new counted;
  auto* const last = new counted;
  spare::keep(first);
  spare::keep(last);
  BOOST_TEST(counted::alive == 1);
  std::thread([] { BOOST_TEST(spare::take() == nullptr); }).join();
  BOOST_TEST(spare::take() == last);
  BOOST_TEST(spare::take() == nullptr);
  delete last;
}

// KO-1
BOOST_AUTO_TEST_CASE(a_thread_that_only_keeps_objects_deletes_them_at_its_end) {
  std::thread([] { spare::keep(new counted); }).join();
  BOOST_TEST(counted::alive == 0);
}

// KO-1
BOOST_AUTO_TEST_CASE(a_thread_local_object_that_ends_later_keeps_nothing) {
  struct ends_later {
    bool used = false;
    ~ends_later() {
      if (used) spare::keep(new counted);
    }
  };
  std::thread([] {
    static thread_local ends_later object;
    object.used = true;
    spare::keep(new counted);
  }).join();
  BOOST_TEST(counted::alive == 0);
}

BOOST_AUTO_TEST_SUITE_END()
