// SPDX-License-Identifier: BSD-3-Clause
// The lines that nodes write to their logs. A test reads a log after its node has ended, so its nodes live in an inner scope.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/stderr_in_pipe.hpp"
#include "actors/temporary_folder.hpp"
#include "support/contains.hpp"

namespace {

using troupe::severity;
using troupe::test::contains;
using troupe::test::read_text;

/// Two nodes, "a" and "b", each with a log in the folder. "b" has functions for "a".
struct two_logs {
  troupe::settings logged(const std::string& name, severity level) const {
    auto result = troupe::test::loopback_settings(name);
    result.log_level = level;
    result.log_file = folder / name;
    return result;
  }

  static void add_functions(troupe::node& b) {
    b.functions().add("twice",
                      [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
    b.functions().add("throw", [](troupe::call_arguments&) -> troupe::call_reply { throw std::runtime_error("no\nluck"); });
    b.functions().add("refuse_backward", [](troupe::call_arguments& arguments) {
      auto y = arguments.tensors.at(0) * 2;
      y.register_hook([](at::Tensor) -> at::Tensor { throw std::runtime_error("hook refuses"); });
      return troupe::call_reply{{y}};
    });
  }

  /// Runs forward through `function` on "b", and then backward. Returns the id of the context as text.
  static std::string pass_through(troupe::node& a, const std::string& function) {
    troupe::context pass(a);
    auto x = at::ones({2}).requires_grad_();
    auto y = a.peer("b").call(function, {x}).get().tensors.at(0).sum();
    try {
      pass.backward({y}).get();
    } catch (const troupe::error&) {
    }
    return to_string(pass.id());
  }

  /// Runs a pass that succeeds, a pass that fails, and a call that fails. Returns the ids of the two contexts as text.
  std::vector<std::string> work(severity level) {
    troupe::node b(logged("b", level));
    troupe::node a(logged("a", level));
    add_functions(b);
    a.join("127.0.0.1", b.port());
    std::vector<std::string> contexts{pass_through(a, "twice"), pass_through(a, "refuse_backward")};
    BOOST_CHECK_THROW(a.peer("b").call("throw").get(), troupe::error);
    port_of_b = b.port();
    return contexts;
  }

  /// "a" joins "b", which leaves. Checks what both log.
  void meet_and_leave(bool shared) {
    std::uint16_t port_of_a = 0;
    bool has_memory = shared;
    {
      auto options = logged("b", severity::info);
      options.shared_memory = shared;
      std::optional<troupe::node> b(std::in_place, options);
      troupe::node a(logged("a", severity::info));
      if (a.options().network == troupe::network_kind::caf) has_memory = false;
      a.join("127.0.0.1", b->port());
      port_of_a = a.port();
      port_of_b = b->port();
      b.reset();
      BOOST_TEST(troupe::test::becomes_true([&] { return a.peers().empty(); }));
    }
    const std::string address_of_b = "127.0.0.1:" + std::to_string(port_of_b);
    const std::string transport = has_memory ? "shared memory" : "TCP";
    has_line("b", "info  node=b room=nodes listens at " + address_of_b);
    has_line("a", "info  node=a room=membership peer 'b' is up: " + address_of_b + ", " + transport);
    has_line("b", "info  node=b room=membership peer 'a' is up: 127.0.0.1:" + std::to_string(port_of_a) + ", " + transport);
    has_line("a", "info  node=a room=membership peer 'b' is gone: " + address_of_b + ", left: its node stopped");
    has_line("b", "info  node=b room=nodes stopped");
  }

  /// The log of the node, without the warning of nodes on CAF's network, which have no gate.
  std::string log_of(const std::string& name) const {
    return std::regex_replace(read_text(folder / name), std::regex("[^\n]* --insecure: [^\n]*\n"), "");
  }

  /// Checks that exactly one line in the log of the node matches `expected` from its level on (after date and time).
  bool has_line(const std::string& name, const std::string& expected) const {
    const auto text = log_of(name);
    const std::regex line("^[-0-9]{10} [:.0-9]{12} " + expected + "$", std::regex::multiline);
    const auto count = std::distance(std::sregex_iterator(text.begin(), text.end(), line), std::sregex_iterator());
    BOOST_TEST(count == 1, count << " lines of '" << name << "' match '" << expected << "':\n" << text);
    return count == 1;
  }

  troupe::test::temporary_folder folder;
  std::uint16_t port_of_b = 0;
};

constexpr const char* time_text = R"(\d+\.\d{3} ms)";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(logged_events, two_logs)

BOOST_AUTO_TEST_CASE(peers_that_come_and_go_have_lines_with_address_transport_and_reason) { meet_and_leave(true); }

BOOST_AUTO_TEST_CASE(the_line_of_a_peer_that_comes_says_tcp_without_shared_memory) { meet_and_leave(false); }

BOOST_AUTO_TEST_CASE(calls_and_passes_that_fail_have_lines_at_info_and_others_have_none) {
  const auto contexts = work(severity::info);
  const std::string after = std::string(": failed after ") + time_text + ": ";
  has_line("a", "info  node=a room=calls call of 'throw' on node 'b'" + after + ".*no\\\\nluck.*");
  has_line("b", "info  node=b room=calls 'throw' called by node 'a'" + after + "no\\\\nluck");
  has_line("a",
           "info  node=a room=passes pass 1 of context " + contexts.at(1) + " over 'a', 'b'" + after + ".*'b'.*hook refuses.*");
  for (const auto* name : {"a", "b"}) BOOST_TEST(!contains(log_of(name), contexts.at(0)), log_of(name));
}

BOOST_AUTO_TEST_CASE(at_debug_each_call_and_pass_has_a_line_with_its_context) {
  const auto contexts = work(severity::debug);
  const auto in_context = " in context " + contexts.at(0);
  has_line("a", "debug node=a room=calls call of 'twice' on node 'b'" + in_context + ": answered after " + time_text);
  has_line("b", "debug node=b room=calls 'twice' called by node 'a'" + in_context + ": done after " + time_text);
  has_line("a", "debug node=a room=passes pass 1 of context " + contexts.at(0) + " over 'a', 'b': complete after " + time_text);
  BOOST_TEST(contains(log_of("a"), "hook refuses"));
}

// What a program loses when it forgets the context: one line for each function, and none if it is meant.
BOOST_AUTO_TEST_CASE(a_tensor_that_requires_grad_and_leaves_outside_any_context_has_a_line_for_each_function) {
  const auto weight = at::ones({2}).requires_grad_();
  const auto run = [&](bool warns) {
    auto options = logged("a", severity::warn);
    options.warn_detached = warns;
    troupe::node a(options);
    troupe::node b(logged("b", severity::warn));
    add_functions(b);
    for (const auto* name : {"trained", "meant", "in a context"})
      b.functions().add(
        name, [&](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * weight}}; });
    a.join("127.0.0.1", b.port());
    const auto there = a.peer("b");
    const auto x = at::ones({2});
    for (int i = 0; i < 3; ++i) {
      there.call("twice", {x}).get();  // nothing requires grad
      there.call("twice", {x.clone().requires_grad_()}).get();
      std::thread([&] { there.call("trained", {x}).get(); }).join();  // only the answer
      troupe::join_graphs(there, {weight});
      const at::NoGradGuard no_graph;
      there.call("meant", {weight}).get();
      troupe::join_graphs(a.self(), {weight});
    }
    const troupe::context pass(a);
    there.call("in a context", {weight}).get();
  };
  run(true);
  const std::string end = ": a tensor that requires grad left outside any context and was detached.*";
  for (const auto* what :
       {"the call of 'twice' on node 'b'", "the call of 'trained' on node 'b'", "a message to an actor on node 'b'"})
    has_line("a", "warn  node=a room=calls " + std::string(what) + end);
  const auto count = [&] {
    const auto text = log_of("a");
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto lines = count();
  BOOST_TEST(lines == 3, log_of("a"));
  BOOST_TEST(log_of("b") == "");
  run(false);
  BOOST_TEST(count() == lines, log_of("a"));
}

BOOST_AUTO_TEST_CASE(a_pass_that_fails_has_no_line_unless_told) {
  {
    auto options = logged("a", troupe::settings().log_level);
    troupe::node a(options);
    troupe::node b(logged("b", severity::off));
    a.join("127.0.0.1", b.port());
    add_functions(b);
    pass_through(a, "refuse_backward");
  }
  BOOST_TEST(log_of("a") == "");
}

BOOST_AUTO_TEST_CASE(a_node_that_is_refused_has_a_line_at_warn) {
  {
    troupe::node b(logged("b", severity::warn));
    troupe::node first(troupe::test::loopback_settings("a"));
    troupe::node second(troupe::test::loopback_settings("a"));
    first.join("127.0.0.1", b.port());
    BOOST_CHECK_THROW(second.join("127.0.0.1", b.port()), troupe::error);
  }
  has_line("b", "warn  node=b room=membership refused node 'a' .* at 127.0.0.1:\\d+: the name 'a' is taken by node .*");
}

BOOST_AUTO_TEST_CASE(what_a_handler_throws_has_a_line_at_error) {
  {
    troupe::node a(logged("a", severity::warn));
    std::optional<troupe::node> b(std::in_place, troupe::test::loopback_settings("b"));
    a.on_peer_down([](const std::string&, const std::string&) { throw std::runtime_error("not now"); });
    a.join("127.0.0.1", b->port());
    b.reset();
    BOOST_TEST(troupe::test::becomes_true([&] { return a.peers().empty(); }));
  }
  has_line("a", "error node=a room=nodes the handler of on_peer_down threw: not now");
}

BOOST_AUTO_TEST_CASE(a_node_works_on_if_nobody_reads_its_stderr) {
  troupe::test::stderr_in_pipe pipe;
  pipe.fill();
  {
    auto options = logged("a", severity::debug);
    options.log_file.clear();
    troupe::node a(options);
    troupe::node b(logged("b", severity::off));
    add_functions(b);
    a.join("127.0.0.1", b.port());
    for (int i = 0; i < 2000; ++i) a.peer("b").call("twice", {at::ones({1})}).get();
    pass_through(a, "twice");
    std::string text;
    BOOST_TEST(troupe::test::becomes_true([&] {  // once somebody reads, the log says what was lost
      a.peer("b").call("twice", {at::ones({1})}).get();
      text += pipe.read();
      return contains(text, "call of 'twice'") && (contains(text, "could not be written") || contains(text, "were lost"));
    }));
  }
}

BOOST_AUTO_TEST_CASE(a_log_file_that_cannot_be_written_stops_the_start_of_the_node) {
  auto options = logged("a", severity::info);
  options.log_file = folder / "missing/log";
  const auto says = troupe::test::says("the log file '" + options.log_file + "' can't be written: ");
  BOOST_CHECK_EXCEPTION(troupe::node{options}, troupe::error, says);
}

BOOST_AUTO_TEST_SUITE_END()
