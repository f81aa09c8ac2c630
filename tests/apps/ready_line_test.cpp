// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ready_line.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::apps;

BOOST_AUTO_TEST_CASE(a_ready_line_with_a_token_is_read_by_who_knows_the_token) {  // RL-1
  const ready_line ready{"stage1", "::1", 40123};
  const auto token = ready_line::new_token();
  BOOST_TEST(ready.text(token) == "stage1 listens on [::1]:40123 (token " + token + ")");
  BOOST_REQUIRE(ready_line::parse(ready.text(token), token));
  BOOST_TEST(ready_line::parse(ready.text(token), token)->address() == "[::1]:40123");
  BOOST_TEST(!ready_line::parse(ready.text(), token));
  BOOST_TEST(!ready_line::parse(ready.text(token)));
  BOOST_TEST(!ready_line::parse(ready.text(ready_line::new_token()), token));
}

BOOST_AUTO_TEST_CASE(a_ready_line_is_read_as_it_is_written) {
  ready_line ready{"stage1", "127.0.0.1", 40123};
  BOOST_TEST(ready.text() == "stage1 listens on 127.0.0.1:40123");
  auto read = ready_line::parse(ready.text());
  BOOST_REQUIRE(read);
  BOOST_TEST(read->name == "stage1");
  BOOST_TEST(read->address() == "127.0.0.1:40123");
  ready_line six{"stage1", "::1", 40123};
  BOOST_TEST(six.text() == "stage1 listens on [::1]:40123");
  BOOST_TEST(ready_line::parse(six.text())->host == "::1");
  for (auto* other : {"", "stage1", "stage1 listens on ", "stage1 listens on 127.0.0.1",
                      "stage1 listens on 127.0.0.1:", "stage1 listens on 127.0.0.1:0", "stage1 listens on 127.0.0.1:99999",
                      " listens on 127.0.0.1:1", "a listens on :1", "a b listens on 127.0.0.1:1"})
    BOOST_TEST(!ready_line::parse(other), other);
}
