// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <dirent.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <list>
#include <stdexcept>
#include <string>

#include <troupe/actors/metrics/page_server.hpp>
#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"
#include "support/http_client.hpp"
#include "support/thread_count.hpp"

using troupe::metrics::page;
using troupe::metrics::page_server;
using troupe::test::body_of;
using troupe::test::contains;
using troupe::test::http_client;
using troupe::test::threads_of;

namespace {

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct two_pages {
  page_server server{"127.0.0.1", 0, [](const std::string& path) -> page {
                       if (path == "/hello") return {200, {}, "hello\n"};
                       if (path == "/throw") throw std::runtime_error("the page throws");
                       return {404, {}, "expected /hello\n"};
                     }};

  std::string ask(const std::string& path, const std::string& method = "GET") {
    return http_client::ask(server.port(), path, method);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(server_of_pages, two_pages)

BOOST_AUTO_TEST_CASE(a_page_is_served_and_the_connection_closed) {  // SV-2
  const auto answer = ask("/hello?x=1");
  BOOST_TEST(answer.starts_with("HTTP/1.1 200 "), answer);
  BOOST_TEST(contains(answer, "Content-Length: 6\r\n"), answer);
  BOOST_TEST(contains(answer, "Connection: close\r\n"), answer);
  BOOST_TEST(body_of(answer) == "hello\n");
  const auto head = ask("/hello", "HEAD");
  BOOST_TEST(head.starts_with("HTTP/1.1 200 "), head);
  BOOST_TEST(contains(head, "Content-Length: 6\r\n"), head);
  BOOST_TEST(body_of(head) == "");
}

BOOST_AUTO_TEST_CASE(other_requests_are_refused_with_a_status) {  // SV-3
  BOOST_TEST(ask("/other").starts_with("HTTP/1.1 404 "));
  BOOST_TEST(ask("/hello", "DELETE").starts_with("HTTP/1.1 405 "));
  const auto thrown = ask("/throw");
  BOOST_TEST(thrown.starts_with("HTTP/1.1 500 "), thrown);
  BOOST_TEST(body_of(thrown) == "the page throws\n");
  http_client stranger(server.port());
  stranger.send("what is this\r\n\r\n");
  BOOST_TEST(stranger.rest().starts_with("HTTP/1.1 400 "));
}

BOOST_AUTO_TEST_CASE(a_header_without_end_is_cut_off) {  // SV-1, SV-3
  http_client long_winded(server.port());
  long_winded.send("GET /hello HTTP/1.1\r\nX: " + std::string(page_server::longest_header, 'x'));
  BOOST_TEST(long_winded.rest().starts_with("HTTP/1.1 431 "));
  http_client flood(server.port());
  const std::string megabyte(1 << 20, 'x');
  flood.send("GET /hello HTTP/1.1\r\nX: ");
  bool taken = true;
  for (int i = 0; i < 10 && taken; ++i) taken = flood.send(megabyte);
  BOOST_TEST(!taken);
  BOOST_TEST(body_of(ask("/hello")) == "hello\n");
}

BOOST_AUTO_TEST_CASE(idle_connections_give_way_to_new_ones_and_cost_no_thread) {  // SV-1
  const auto threads = threads_of();
  const auto files = open_files();
  std::list<http_client> idle;
  for (int i = 0; i < 400; ++i) {
    idle.emplace_back(server.port());
    if (i % 100 == 99) {
      BOOST_TEST(body_of(ask("/hello")) == "hello\n");
    }
  }
  BOOST_TEST(threads_of() == threads);
  BOOST_TEST(open_files() <= files + 400 + page_server::most_connections);
  BOOST_TEST(idle.front().rest() == "");  // was closed for a newer one
}

BOOST_AUTO_TEST_CASE(a_client_that_says_nothing_is_left_after_the_patience) {  // SV-2
  http_client mute(server.port());
  mute.send("GET /hello HT");
  BOOST_TEST(mute.rest() == "");
}

BOOST_AUTO_TEST_CASE(a_server_ends_while_clients_are_connected) {
  page_server other("127.0.0.1", 0, [](const std::string&) { return page{}; });
  http_client idle(other.port());
  http_client half(other.port());
  half.send("GET ");
}

BOOST_AUTO_TEST_CASE(an_address_that_is_taken_or_none_is_named) {
  const auto make = [](const std::string&) { return page{}; };
  const auto names = [&](const std::string& text) {
    return
      [=](const troupe::error& problem) { return contains(problem.what(), text) && contains(problem.what(), "--metrics"); };
  };
  BOOST_CHECK_EXCEPTION(page_server("127.0.0.1", server.port(), make), troupe::error,
                        names("127.0.0.1:" + std::to_string(server.port())));
  BOOST_CHECK_EXCEPTION(page_server("no such host", 4001, make), troupe::error, names("no such host:4001"));
}

BOOST_AUTO_TEST_CASE(a_port_that_the_system_chose_is_free_for_a_successor) {
  const auto make = [](const std::string&) { return page{200, {}, "hello\n"}; };
  std::uint16_t port = 0;
  {
    const page_server first("127.0.0.1", 0, make);
    port = first.port();
    BOOST_TEST(body_of(http_client::ask(port, "/")) == "hello\n");  // the server closes the connection
  }
  const page_server successor("127.0.0.1", port, make);
  BOOST_TEST(successor.port() == port);
}

BOOST_AUTO_TEST_SUITE_END()
