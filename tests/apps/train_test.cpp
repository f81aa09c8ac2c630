// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/loopback_socket.hpp"
#include "support/program.hpp"
#include "support/small_run.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::test;
using namespace std::chrono_literals;

namespace {

constexpr auto time_to_end = 2s;

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(parent) + "/task")) {
    std::ifstream in(thread.path() / "children");
    for (pid_t pid; in >> pid;) found.push_back(pid);
  }
  return found;
}

pid_t stage_of(pid_t parent, const std::string& name) {
  for (const auto pid : children_of(parent))
    if (content_of("/proc/" + std::to_string(pid) + "/cmdline").find(name) != std::string::npos) return pid;
  return -1;
}

/// The time that a process has computed in user mode, in clock ticks.
long ticks_of(pid_t pid) {
  const auto line = content_of("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream fields(line.substr(std::min(line.rfind(')'), line.size() - 1) + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  long user = 0;
  fields >> user;
  return user;
}

/// Checks that the folder has neither partial files nor a lock.
void check_no_litter(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    BOOST_TEST((name[0] != '.' && entry.path().extension() != ".part"), entry.path());
  }
}

/// Runs the command, which has to exit with 1 and to print one line that begins with "troupe: ". The last line has to contain
/// all `words`. Returns all lines.
std::string check_fails(const std::vector<std::string>& command, const std::vector<std::string>& words) {
  program run(command);
  BOOST_TEST(run.how_it_ends() == "exited with 1");
  const auto lines = run.lines();
  BOOST_TEST_REQUIRE(!lines.empty());
  BOOST_TEST(std::count_if(lines.begin(), lines.end(), [](auto& line) { return line.starts_with("troupe: "); }) == 1,
             run.text());
  for (const auto& word : words)
    BOOST_TEST(lines.back().find(word) != std::string::npos, "expected '" << word << "' in: " << run.text());
  return run.text();
}

/// Sends signal `number` to the program. The program has to exit in time with 128 + `number`, and its children have to be gone.
void check_stops_in_time(program& training, int number = SIGINT) {
  const auto children = children_of(training.pid());
  training.signal(number);
  BOOST_TEST(training.how_it_ends(time_to_end) == "exited with " + std::to_string(128 + number), training.text());
  for (const auto pid : children) BOOST_TEST(is_gone(pid));
}

/// The command after "with: " in a line.
std::string advice_in(const std::string& line) { return line.substr(line.find("with: ") + 6); }

}  // namespace

BOOST_AUTO_TEST_CASE(three_processes_train_with_the_gradients_of_one_and_leave_all_files) {  // TN-4, TC-1
  const small_run run;
  program training(run.command({"--steps", "60", "--validate-every", "20", "--single-process-seconds", "0.3"}));
  BOOST_TEST(training.how_it_ends() == "exited with 0");
  const auto text = training.text();
  BOOST_TEST(text.find("verified: in 3 steps") != std::string::npos, text);
  const auto summary = run.summary();
  BOOST_TEST(summary["gradients_verified"] == true);
  BOOST_TEST(summary["verified_parameters"] == 30);
  BOOST_TEST(summary["steps"] == 60);
  BOOST_TEST(summary["validation_loss"].get<double>() < 3.5);
  BOOST_TEST(summary["tokens_per_second"].get<double>() > 0);
  BOOST_TEST(summary["single_process_tokens_per_second"].get<double>() > 0);
  BOOST_TEST(losses(run.file("metrics.jsonl")).size() == 60u);
  BOOST_TEST(content_of(run.file("loss.svg")).find("</svg>") != std::string::npos);
  for (const char* part : {"checkpoint/checkpoint.json", "trace.json"})
    BOOST_TEST(std::filesystem::exists(run.file(part)), part);
  check_no_litter(run.out);

  const auto trace = nlohmann::json::parse(content_of(run.file("trace.json")));
  std::map<int, std::string> rows;
  for (const auto& event : trace["traceEvents"])
    if (event["name"] == "process_name") rows[event["pid"].get<int>()] = event["args"]["name"].get<std::string>();
  std::map<std::string, int> spans;
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["dur"].get<double>() > 0)
      ++spans[rows[event["pid"].get<int>()] + " " + event["cat"].get<std::string>()];
  std::map<std::uint64_t, std::string> arrows;
  for (const std::string phase : {"s", "f"})
    for (const auto& event : trace["traceEvents"])
      if (event["ph"] == phase) arrows[event["id"].get<std::uint64_t>()] += phase + std::to_string(event["pid"].get<int>());
  BOOST_TEST(std::count_if(arrows.begin(), arrows.end(), [](const auto& each) { return each.second == "s1f2"; }) >= 60);
  for (const char* span :
       {"driver request", "driver backward", "stage1 call", "stage1 backward", "stage2 call", "stage2 backward"})
    BOOST_TEST(spans[span] >= 60, span << " " << spans[span]);
  BOOST_TEST(spans["driver operator"] >= 60, "operators of the one step that is profiled: " << spans["driver operator"]);

  const std::vector<std::string> generate{"generate", "--out", run.out, "--prompt", "line", "--length", "50", "--seed", "3"};
  program once(generate);
  BOOST_TEST(once.how_it_ends() == "exited with 0");
  program twice(generate);
  BOOST_TEST(twice.how_it_ends() == "exited with 0");
  BOOST_TEST(once.text() == twice.text());
  BOOST_TEST(once.text().starts_with("line"), once.text());
  BOOST_TEST(once.text().size() == 55u);
}

BOOST_AUTO_TEST_CASE(a_run_compresses_what_goes_between_the_stages) {
  const small_run run;
  program training(run.command({"--steps", "20", "--single-process-seconds", "0", "--wire", "int8"}));
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
  const auto text = training.text();
  BOOST_TEST(text.find("verified: in 3 steps") != std::string::npos, text);
  BOOST_TEST(text.find("wire             int8") != std::string::npos, text);
  BOOST_TEST(run.summary()["wire"] == "int8");

  program other(run.command({"--resume", "--steps", "40", "--wire", "bf16"}));
  BOOST_TEST(other.how_it_ends() == "exited with 1");
  BOOST_TEST(other.text().find("it has --wire int8, but bf16 is asked for") != std::string::npos, other.text());
  program wrong(run.command({"--steps", "20", "--wire", "int4"}));
  BOOST_TEST(wrong.how_it_ends() == "exited with 2", wrong.text());
}

// As many steps as the run that README shows, with a smaller model. All activations and gradients are large enough to be compressed.
BOOST_AUTO_TEST_CASE(a_compressed_run_ends_with_the_loss_of_an_exact_one) {  // PI-4
  const auto loss_with = [](const std::string& wire) {
    const small_run run;
    program training({"train",  "--data",
                      run.data, "--out",
                      run.out,  "--steps",
                      "347",    "--blocks",
                      "2",      "--width",
                      "32",     "--heads",
                      "2",      "--context",
                      "32",     "--batch",
                      "16",     "--micro-batches",
                      "4",      "--verify-steps",
                      "0",      "--single-process-seconds",
                      "0",      "--sample",
                      "20",     "--wire",
                      wire});
    BOOST_REQUIRE_MESSAGE(training.how_it_ends(60s) == "exited with 0", training.text());
    BOOST_TEST(run.summary()["steps"] == 347);
    return run.summary()["validation_loss"].get<double>();
  };
  const auto exact = loss_with("exact");
  BOOST_TEST(exact < 1);
  for (const char* wire : {"bf16", "fp16", "int8"}) {
    const auto found = loss_with(wire);
    BOOST_TEST(std::abs(found - exact) <= 0.01 * exact, wire << ": " << found << " instead of " << exact);
    BOOST_TEST(found != exact, wire << " compressed nothing");
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_lost_a_stage_names_it_and_continues_to_the_same_bits) {  // TN-2, TN-3
  const small_run straight;
  const std::vector<std::string> steps{"--steps", "400", "--checkpoint-every", "20"};
  program whole(straight.command(steps));

  const small_run broken;
  program training(broken.command(steps));
  BOOST_TEST_REQUIRE(appears(broken.file("checkpoint/checkpoint.json"), training), training.text());
  const auto children = children_of(training.pid());
  const auto victim = stage_of(training.pid(), "stage2");
  BOOST_TEST_REQUIRE(victim > 0);
  kill(victim, SIGKILL);
  BOOST_TEST(training.how_it_ends(time_to_end) == "exited with 1");
  const auto said = training.lines().back();
  for (const auto& word : {std::string("lost node stage2"), std::to_string(victim), std::string("killed by signal 9"),
                           std::string("--retry N"), std::string("--resume")})
    BOOST_TEST(said.find(word) != std::string::npos, training.text());
  for (const auto pid : children) BOOST_TEST(is_gone(pid));
  check_no_litter(broken.out);

  const auto done = losses(broken.file("metrics.jsonl")).size();
  program again(broken.command({"--steps", "400", "--checkpoint-every", "20", "--resume"}));
  BOOST_TEST(again.how_it_ends() == "exited with 0", again.text());
  const auto from = again.line_with("continuing the run");
  const auto step = std::stoul(from.substr(from.rfind(' ') + 1));
  // A save that was still being written was lost too.
  BOOST_TEST((step % 20 == 0 && step + 41 > done), from << ", but " << done << " steps were done");
  BOOST_TEST(whole.how_it_ends() == "exited with 0", whole.text());
  BOOST_TEST(losses(broken.file("metrics.jsonl")) == losses(straight.file("metrics.jsonl")), boost::test_tools::per_element());
  BOOST_TEST(broken.summary()["validation_loss"] == straight.summary()["validation_loss"]);
}

BOOST_AUTO_TEST_CASE(the_driver_and_the_stages_that_it_starts_have_the_interval_of_heartbeats_that_was_asked_for) {
  const small_run run;
  program training(run.command({"--steps", "1000000", "--heartbeat-ms", "1100"}));
  BOOST_TEST_REQUIRE(!training.line_with("verified").empty(), training.text());
  const auto stage = stage_of(training.pid(), "stage2");
  BOOST_TEST_REQUIRE(stage > 0);
  const auto option = std::string("--heartbeat-ms") + '\0' + "1100" + '\0';
  BOOST_TEST(content_of("/proc/" + std::to_string(stage) + "/cmdline").find(option) != std::string::npos);
  const auto begin = std::chrono::steady_clock::now();
  kill(stage, SIGSTOP);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 1", training.text());
  // With the usual interval the driver would miss the stage after a second.
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 3s), training.text());
}

BOOST_AUTO_TEST_CASE(a_run_that_may_retry_starts_lost_stages_again_and_ends_with_the_same_bits) {  // TN-7
  const small_run straight;
  const std::vector<std::string> steps{"--steps", "400", "--checkpoint-every", "20", "--retry", "2"};
  program whole(straight.command(steps));

  const small_run broken;
  program training(broken.command(steps));
  const auto kill_stage = [&](const std::string& name) {
    const auto victim = stage_of(training.pid(), name);
    BOOST_TEST_REQUIRE(victim > 0);
    kill(victim, SIGKILL);
  };
  BOOST_TEST_REQUIRE(appears(broken.file("metrics.jsonl"), training), training.text());
  kill_stage("stage1");  // perhaps before the first checkpoint
  BOOST_TEST(!training.line_with("(retry 1 of 2)").empty(), training.text());
  BOOST_TEST_REQUIRE(appears(broken.file("checkpoint/checkpoint.json"), training), training.text());
  kill_stage("stage2");
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
  BOOST_TEST(!training.line_with("(retry 2 of 2)").empty(), training.text());
  BOOST_TEST(whole.how_it_ends() == "exited with 0", whole.text());
  BOOST_TEST(losses(broken.file("metrics.jsonl")) == losses(straight.file("metrics.jsonl")), boost::test_tools::per_element());
  BOOST_TEST(broken.summary()["validation_loss"] == straight.summary()["validation_loss"]);
  check_no_litter(broken.out);
}

BOOST_AUTO_TEST_CASE(a_run_that_lost_more_stages_than_it_may_retry_ends_and_continues) {  // TN-3, TN-7
  const small_run run;
  program training(run.command({"--steps", "1000000", "--checkpoint-every", "20", "--retry", "1"}));
  for (int i = 0; i < 2; ++i) {
    if (i == 1) BOOST_TEST_REQUIRE(!training.line_with("(retry 1 of 1)").empty(), training.text());
    std::filesystem::remove(run.file("checkpoint/checkpoint.json"));
    BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
    kill(stage_of(training.pid(), "stage2"), SIGKILL);
  }
  BOOST_TEST(training.how_it_ends(10s) == "exited with 1", training.text());
  BOOST_TEST(training.line_with("troupe: ").find("continue with: ") != std::string::npos, training.text());
}

BOOST_AUTO_TEST_CASE(a_signal_saves_a_checkpoint_and_ends_every_process_in_time) {  // TC-1
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const small_run run;
    program training(run.command({"--steps", "1000000", "--checkpoint-every", "1000000"}));
    BOOST_TEST_REQUIRE(!training.line_with("verified").empty(), training.text());
    BOOST_TEST(children_of(training.pid()).size() == 2u);
    check_stops_in_time(training, number);
    const auto saved = nlohmann::json::parse(content_of(run.file("checkpoint/checkpoint.json")));
    BOOST_TEST(saved.dump().find("\"step\"") != std::string::npos);
    check_no_litter(run.out);

    // The advised command works as it is printed.
    program again({"-c", "exec " + advice_in(training.line_with("continue with: "))}, "sh");
    BOOST_TEST(!again.line_with("continuing the run").empty(), again.text());
    check_stops_in_time(again);
  }
}

BOOST_AUTO_TEST_CASE(a_signal_while_the_nodes_come_up_ends_every_process_in_time) {
  const small_run run;
  program training(run.command({"--steps", "10"}));
  BOOST_TEST_REQUIRE(!training.line_with("model: ").empty(), training.text());
  training.signal(SIGINT);
  BOOST_TEST(training.how_it_ends(time_to_end) == "exited with 130", training.text());
}

BOOST_AUTO_TEST_CASE(a_signal_while_the_text_is_awaited_ends_it_in_time) {  // TN-5
  const small_run run;
  const auto pipe = run.folder.path() / "pipe";
  BOOST_TEST_REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  program training({"train", "--data", pipe, "--out", run.out});
  BOOST_TEST_REQUIRE(appears(run.file(".lock"), training), training.text());
  check_stops_in_time(training);
  BOOST_TEST(!training.line_with("stopped by a signal").empty(), training.text());
  BOOST_TEST(std::filesystem::is_empty(run.out));
}

BOOST_AUTO_TEST_CASE(a_signal_in_the_middle_of_a_long_step_ends_every_process_in_time) {  // TN-5
  const small_run run;
  program training({"train", "--data",         run.data, "--out",
                    run.out, "--steps",        "5",      "--blocks",
                    "2",     "--width",        "512",    "--context",
                    "256",   "--batch",        "64",     "--micro-batches",
                    "2",     "--verify-steps", "0",      "--single-process-seconds",
                    "0"});
  BOOST_TEST_REQUIRE(appears(run.file("metrics.jsonl"), training), training.text());
  const auto first = stage_of(training.pid(), "stage1");
  BOOST_TEST_REQUIRE(first > 0);
  for (const auto before = ticks_of(first); ticks_of(first) < before + 5 && training.how_it_ends(5ms) == "still runs";) {
  }
  check_stops_in_time(training);
  const auto said = training.line_with("stopped by a signal");
  BOOST_TEST(said.find("in the middle of work") != std::string::npos, said);
  BOOST_TEST(said.find("--resume") == std::string::npos, said);
  check_no_litter(run.out);
}

BOOST_AUTO_TEST_CASE(a_signal_after_the_last_step_ends_every_process_in_time) {  // TN-5
  const small_run run;
  program training(run.command({"--steps", "3", "--sample", "1000000"}));
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  check_stops_in_time(training);
  const auto said = training.line_with("stopped by a signal");
  for (const char* word : {"the checkpoint of step 3", "is whole", "generate --out"})
    BOOST_TEST(said.find(word) != std::string::npos, said);
  check_no_litter(run.out);
}

BOOST_AUTO_TEST_CASE(text_comes_as_it_is_made_and_ends_at_a_signal) {
  const small_run run;
  program first(run.command({"--steps", "5"}));
  BOOST_TEST(first.how_it_ends() == "exited with 0", first.text());
  program text({"generate", "--out", run.out, "--length", "100000000", "--temperature", "2"});
  BOOST_TEST_REQUIRE(!text.line_that([](const std::string&) { return true; }).empty());
  check_stops_in_time(text);
}

BOOST_AUTO_TEST_CASE(a_driver_that_is_killed_leaves_no_process_behind) {
  const small_run run;
  program training(run.command({"--steps", "1000000"}));
  BOOST_TEST_REQUIRE(!training.line_with("verified").empty(), training.text());
  const auto children = children_of(training.pid());
  BOOST_TEST(children.size() == 2u);
  training.signal(SIGKILL);
  for (const auto pid : children) BOOST_TEST(is_gone(pid));
}

BOOST_AUTO_TEST_CASE(every_bad_text_is_one_line_and_leaves_nothing) {  // TC-1
  const small_run run;
  const auto with = [&](const std::string& data) {
    return std::vector<std::string>{"train", "--data", data, "--out", run.out};
  };
  check_fails(with("no/such/file"), {"no/such/file", "there is none", "--data"});
  check_fails(with(run.folder.write("empty.txt", "")), {"empty.txt", "is empty", "--data"});
  check_fails(with(run.folder.write("binary", std::string("a\0b", 3))), {"binary", "byte 1", "--data"});
  check_fails(with(run.folder.write("latin.txt", "caf\xE9")), {"latin.txt", "byte 3", "UTF-8", "iconv"});
  check_fails(with(run.folder.write("short.txt", "to be or not to be")),
              {"short.txt", "at least 18065 characters", "has 18", "--data"});
  BOOST_TEST((!std::filesystem::exists(run.out) || std::filesystem::is_empty(run.out)));
}

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_are_named_by_their_options) {  // TC-1
  const small_run run;
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "--data", run.data, "--out", run.out});
    return more;
  };
  check_fails(with({"--width", "100", "--heads", "3"}), {"--width 100", "--heads 3", "--width 102"});
  check_fails(with({"--stages", "5"}), {"--stages", "1 to 4", "is 5"});
  check_fails(with({"--batch", "4", "--micro-batches", "8"}), {"--micro-batches", "from 1 to 4", "is 8"});
  check_fails(with({"--context", "9000"}), {"at least 27001 characters", "text.txt"});
}

BOOST_AUTO_TEST_CASE(a_port_in_use_is_named) {
  const small_run run;
  program first({"node", "--name", "other", "--print-port", "--log-level", "warn"});
  while (first.lines().empty() && first.how_it_ends(10ms) == "still runs") {
  }
  const auto port = first.lines().at(0);
  check_fails(run.command({"--steps", "5", "--port", port}), {port, "in use"});
}

BOOST_AUTO_TEST_CASE(a_node_that_is_not_there_is_named) {
  const small_run run;
  const auto file = run.folder.write("cluster.json", R"({"nodes": [{"name": "far", "port": 1}, {"name": "away", "port": 2}]})");
  check_fails(run.command({"--steps", "5", "--cluster", file, "--deadline", "1"}), {"127.0.0.1:1"});
  const auto without = run.folder.write("portless.json", R"({"nodes": [{"name": "far"}]})");
  check_fails(run.command({"--steps", "5", "--cluster", without}), {"portless.json", "far", "no port"});
}

BOOST_AUTO_TEST_CASE(a_run_takes_the_nodes_of_a_cluster_that_runs) {
  const small_run run;
  const auto first_line = [](program& node) {
    const auto line = node.line_that([](const std::string& text) { return !text.empty(); });
    BOOST_TEST_REQUIRE(!line.empty());
    return line;
  };
  program two({"node", "--load", "charlm", "--name", "two", "--print-port", "--log-level", "warn"});
  const auto address = "127.0.0.1:" + first_line(two);
  program one({"node", "--load", "charlm", "--name", "one", "--join", address, "--print-port", "--log-level", "warn"});
  first_line(one);
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--steps", "3", "--join", address});
    return run.command(more);
  };
  program training(with({}));
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
  BOOST_TEST(training.text().find("cluster: driver,one,two\n") != std::string::npos, training.text());
  program other_order(with({"--nodes", "two,one"}));
  BOOST_TEST(other_order.how_it_ends() == "exited with 0", other_order.text());
  BOOST_TEST(other_order.text().find("cluster: driver,two,one\n") != std::string::npos, other_order.text());

  check_fails(with({"--nodes", "one,three"}), {"a node three in the cluster of " + address, "that are up are one, two"});
  check_fails(with({"--nodes", "one,one"}), {"--nodes", "one is named twice"});
  program three({"node", "--load", "charlm", "--name", "three", "--join", address, "--print-port", "--log-level", "warn"});
  first_line(three);
  check_fails(with({}), {"2 nodes in the cluster of " + address, "3 are there", "--stages", "--nodes"});
}

BOOST_AUTO_TEST_CASE(nodes_without_charlm_are_named_with_what_helps) {
  const small_run run;
  program plain({"node", "--name", "plain", "--print-port", "--log-level", "warn"});
  const auto address = "127.0.0.1:" + plain.line_with("");
  check_fails(run.command({"--join", address}), {"2 nodes in the cluster of " + address, "0 are there", "--load charlm"});
  program stage({"node", "--load", "charlm", "--name", "stage", "--join", address, "--print-port", "--log-level", "warn"});
  BOOST_TEST_REQUIRE(!stage.line_with("").empty());
  check_fails(run.command({"--join", address, "--nodes", "stage,plain", "--retry", "1"}),
              {"a node with charlm", "'plain' has no module type 'charlm.stage'", "--load charlm"});
}

BOOST_AUTO_TEST_CASE(a_stage_that_comes_back_without_charlm_is_told_and_waited_for) {  // TN-7
  const small_run run;
  std::optional<program> one, two;
  const auto start = [](std::optional<program>& node, const std::string& name, const std::string& port,
                        const std::vector<std::string>& more) {
    std::vector<std::string> all{"node", "--name", name, "--port", port, "--print-port", "--log-level", "warn"};
    all.insert(all.end(), more.begin(), more.end());
    node.emplace(all);
    return node->line_with("");
  };
  const std::vector<std::string> charlm{"--load", "charlm"};
  const auto port = start(two, "two", "0", charlm);
  const auto file = run.folder.write("cluster.json", R"({"nodes": [{"name": "one", "port": )" + start(one, "one", "0", charlm) +
                                                       R"(}, {"name": "two", "port": )" + port + "}]}");
  program training(run.command({"--steps", "400", "--checkpoint-every", "20", "--retry", "1", "--cluster", file}));
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  const auto replace = [&](const std::vector<std::string>& more) {
    two->signal(SIGKILL);
    two->how_it_ends();
    BOOST_TEST(start(two, "two", port, more) == port, two->text());
  };
  replace({});
  BOOST_TEST(!training.line_with("trying again: expected a node with charlm, but node 'two'").empty(), training.text());
  replace(charlm);
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
}

BOOST_AUTO_TEST_CASE(two_runs_that_join_one_cluster_take_no_driver_for_a_stage) {
  const small_run runs[2];
  program one({"node", "--load", "charlm", "--name", "one", "--print-port", "--log-level", "warn"});
  const auto address = "127.0.0.1:" + one.line_with("");
  const auto train = [&](const small_run& run, const std::string& name) {
    return program(run.command({"--steps", "3", "--retry", "1", "--join", address, "--name", name}));
  };
  auto first = train(runs[0], "first");
  BOOST_TEST(!first.line_with("trying again: expected 2 nodes").empty(), first.text());
  auto second = train(runs[1], "second");
  BOOST_TEST(!second.line_with("trying again: expected 2 nodes").empty(), second.text());
  program two({"node", "--load", "charlm", "--name", "two", "--join", address, "--log-level", "warn"});
  for (auto* each : {&first, &second}) {
    BOOST_TEST(each->how_it_ends() == "exited with 0", each->text());
    const auto* name = each == &first ? "first" : "second";
    BOOST_TEST(!each->line_with("cluster: " + std::string(name) + ",one,two").empty(), each->text());
  }
}

BOOST_AUTO_TEST_CASE(a_frozen_stage_is_waited_for_no_longer_than_asked_for) {  // TN-7
  const small_run run;
  const loopback_socket mute;
  const auto file = run.folder.write(
    "cluster.json", R"({"nodes": [{"name": "one", "port": )" + mute.port() + R"(}, {"name": "two", "port": 1}]})");
  program training(run.command({"--cluster", file, "--retry", "1", "--retry-wait", "1", "--deadline", "8"}));
  BOOST_TEST(!training.line_with("not all stages are up").empty(), training.text());
  BOOST_TEST(training.how_it_ends(5s) == "exited with 1", training.text());
  BOOST_TEST(!training.line_with("(--retry-wait), but node 'one' of " + file + ": ").empty(), training.text());
}

BOOST_AUTO_TEST_CASE(a_run_waits_until_it_has_met_the_whole_cluster) {
  const small_run run;
  // A frozen node is up for its peers until 3 heartbeats are unanswered.
  const std::vector<std::string> quiet{"--load", "charlm", "--print-port", "--log-level", "warn", "--heartbeat-ms", "20000"};
  const auto node_with = [&](std::vector<std::string> more) {
    more.insert(more.end(), quiet.begin(), quiet.end());
    more.insert(more.begin(), "node");
    return program(more);
  };
  const auto first_line = [](program& node) { return node.line_that([](const std::string& text) { return !text.empty(); }); };
  auto one = node_with({"--name", "one"});
  const auto address = "127.0.0.1:" + first_line(one);
  auto two = node_with({"--name", "two", "--join", address});
  BOOST_TEST_REQUIRE(!first_line(two).empty());
  two.signal(SIGSTOP);
  program training(run.command({"--steps", "3", "--join", address, "--heartbeat-ms", "20000"}));
  BOOST_TEST(training.line_with("model: ") != "");
  BOOST_TEST(training.how_it_ends(std::chrono::milliseconds(500)) == "still runs");
  two.signal(SIGCONT);
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
}

BOOST_AUTO_TEST_CASE(a_run_continues_only_what_it_fits) {
  const small_run run;
  check_fails(run.command({"--resume"}), {"there is none", "--resume"});
  program first(run.command({"--steps", "5"}));
  BOOST_TEST(first.how_it_ends() == "exited with 0", first.text());
  const auto before = content_of(run.file("checkpoint/checkpoint.json"));
  check_fails({"train", "--resume", "--out", run.out, "--width", "32"}, {"another model", "--width 16", "32", "--out"});
  const auto other = run.folder.write("other.txt", some_text() + "and more");
  check_fails({"train", "--resume", "--out", run.out, "--data", other}, {"another text", "other.txt", "--data"});
  check_fails({"train", "--resume", "--out", run.out},
              {"has trained 5 steps in", "--seconds count from the beginning of the run"});
  BOOST_TEST(content_of(run.file("checkpoint/checkpoint.json")) == before);

  program more({"train", "--resume", "--out", run.out, "--steps", "8", "--single-process-seconds", "0"});
  BOOST_TEST(more.how_it_ends() == "exited with 0", more.text());
  BOOST_TEST(run.summary()["steps"] == 8);
}

BOOST_AUTO_TEST_CASE(stages_that_a_run_starts_keep_their_parts_in_the_folder_that_was_asked_for) {
  const small_run run;
  const auto parts = run.folder.path() / "parts";
  program first(run.command({"--steps", "5", "--node-checkpoints", parts.string()}));
  BOOST_TEST(first.how_it_ends() == "exited with 0", first.text());
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(parts))
    if (entry.is_regular_file()) kept.push_back(entry.path());
  BOOST_TEST(kept.size() == 2u);
  program again({"train", "--resume", "--out", run.out, "--single-process-seconds", "0", "--node-checkpoints", parts.string(),
                 "--steps", "8"});
  BOOST_TEST(again.how_it_ends() == "exited with 0", again.text());
  check_fails({"generate", "--out", run.out}, {"expected the part of node stage1 at", "--data-dir", "copy the file"});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(parts))
    if (entry.is_regular_file()) std::filesystem::copy(entry.path(), run.file("checkpoint") / entry.path().filename());
  program text({"generate", "--out", run.out});
  BOOST_TEST(text.how_it_ends() == "exited with 0", text.text());
}

BOOST_AUTO_TEST_CASE(a_damaged_checkpoint_is_refused) {
  const small_run run;
  program first(run.command({"--steps", "5"}));
  BOOST_TEST(first.how_it_ends() == "exited with 0", first.text());
  for (const auto& entry : std::filesystem::directory_iterator(run.file("checkpoint")))
    if (entry.path().filename().string().starts_with("stage2"))
      std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) / 2);
  check_fails({"generate", "--out", run.out}, {"stage2"});
  const auto said =
    check_fails({"train", "--resume", "--out", run.out, "--steps", "8", "--single-process-seconds", "0"}, {"stage2"});
  for (const char* advice : {"is whole", "continue with"}) BOOST_TEST(said.find(advice) == std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(nodes_that_can_not_give_the_same_bits_are_told_before_training) {
  const small_run run;
  const auto start = [](program& node) {
    const auto line = node.line_that([](const std::string& text) { return !text.empty(); });
    BOOST_TEST_REQUIRE(!line.empty());
    return line;
  };
  program one({"node", "--load", "charlm", "--name", "one", "--print-port", "--log-level", "warn"});
  program two({"node", "--load", "charlm", "--name", "two", "--threads", "2", "--print-port", "--log-level", "warn"});
  const auto file = run.folder.write("cluster.json", R"({"nodes": [{"name": "one", "port": )" + start(one) +
                                                       R"(}, {"name": "two", "port": )" + start(two) + "}]}");
  const auto command = run.command({"--steps", "3", "--cluster", file});
  check_fails(command, {"node two", "uses 2", "\"threads\": 1", "--verify-steps 0"});
  BOOST_TEST(!std::filesystem::exists(run.file("metrics.jsonl")));
  program training(run.command({"--steps", "3", "--cluster", file, "--verify-steps", "0"}));
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
}

BOOST_AUTO_TEST_CASE(starts_that_fail_cost_no_run_that_is_finished) {  // TN-6
  const small_run run;
  program first(run.command({"--steps", "5"}));
  BOOST_TEST(first.how_it_ends() == "exited with 0", first.text());
  const auto before = content_of(run.file("checkpoint/checkpoint.json"));
  program other({"node", "--name", "other", "--print-port", "--log-level", "warn"});
  const auto port = other.line_that([](const std::string& text) { return !text.empty(); });
  for (int i = 0; i < 2; ++i) check_fails(run.command({"--steps", "5", "--port", port}), {port, "in use"});
  BOOST_TEST(content_of(run.file("checkpoint/checkpoint.json")) == before);
  BOOST_TEST(run.summary()["steps"] == 5);
  for (int i = 0; i < 2; ++i)
    check_fails(run.command({"--steps", "50", "--learning-rate", "1e30", "--verify-steps", "0"}),
                {"not finite", "learning rate"});
  BOOST_TEST(content_of(run.file("previous-1/checkpoint/checkpoint.json")) == before);
}

BOOST_AUTO_TEST_CASE(a_text_without_line_breaks_gives_a_sample_of_the_length_asked_for_and_its_trigram_figure) {
  const small_run run;
  std::string text;
  for (unsigned state = 7; text.size() < 20'000; state = state * 1103515245u + 12345u)
    text += "abcd"[text.size() % 3 == 0 ? (state >> 16) % 4 : text.back() - 'a' == 3 ? 0 : text.back() - 'a' + 1];
  const auto data = run.folder.write("letters.txt", text);
  program training(
    {"train", "--data",   data, "--out",     run.out, "--steps", "3", "--blocks",        "2", "--width",
     "16",    "--heads",  "2",  "--context", "16",    "--batch", "8", "--micro-batches", "4", "--single-process-seconds",
     "0",     "--sample", "37", "--no-trace"});
  BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
  const auto sample = training.line_with("  | ");
  BOOST_TEST(sample.size() == 4u + 37u, sample);
  BOOST_TEST(sample.find_first_not_of("abcd", 4) == std::string::npos, sample);
  BOOST_TEST(training.line_with("files  ").find("trace.json") == std::string::npos);
  BOOST_TEST(!std::filesystem::exists(run.file("trace.json")));

  // The last of ten blocks of 2,000 characters is for validation.
  std::map<std::string, double> pairs, triples;
  for (std::size_t i = 2; i < 18'000; ++i) ++pairs[text.substr(i - 2, 2)], ++triples[text.substr(i - 2, 3)];
  double loss = 0;
  for (std::size_t i = 18'002; i < text.size(); ++i)
    loss -= std::log((triples[text.substr(i - 2, 3)] + 0.1) / (pairs[text.substr(i - 2, 2)] + 0.1 * 4));
  BOOST_TEST(run.summary()["trigram_loss"].get<double>() == loss / 1998, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_new_run_keeps_every_earlier_one_unless_it_may_overwrite) {  // TN-6
  const small_run run;
  std::vector<std::string> saved;
  const auto train = [&](std::vector<std::string> more, const std::string& news) {
    more.insert(more.end(), {"--steps", "3", "--verify-steps", "0"});
    program training(run.command(more));
    BOOST_TEST(training.how_it_ends() == "exited with 0", training.text());
    BOOST_TEST((training.text().find(news) != std::string::npos), training.text());
    saved.push_back(content_of(run.file("checkpoint/checkpoint.json")));
  };
  train({}, "validation loss");
  BOOST_TEST(!std::filesystem::exists(run.file("previous-1")));
  train({}, "is now in " + run.file("previous-1").string());
  train({}, "is now in " + run.file("previous-2").string());
  train({"--overwrite"}, "removed the run that was in ");
  for (std::size_t i = 0; i < 2; ++i)
    BOOST_TEST(content_of(run.file("previous-" + std::to_string(i + 1) + "/checkpoint/checkpoint.json")) == saved[i]);
  BOOST_TEST(!std::filesystem::exists(run.file("previous-3")));
}

BOOST_AUTO_TEST_CASE(text_without_a_checkpoint_or_with_an_unknown_character_is_refused) {
  const small_run run;
  check_fails({"generate", "--out", run.out}, {"there is none", "troupe train", "--out"});
  program first(run.command({"--steps", "5"}));
  BOOST_TEST(first.how_it_ends() == "exited with 0", first.text());
  check_fails({"generate", "--out", run.out, "--prompt", "\xC3\xA9"}, {"U+00E9", "trained on"});
}

namespace {

/// Arguments of `unshare` for a shell script in a mount namespace of its own, where it may mount small file systems. $0 is the
/// program, $1 a folder.
std::vector<std::string> with_mounts(const std::string& script, const std::filesystem::path& folder) {
  return {"--map-root-user", "--mount", "sh", "-c", script, program_under_test(), folder};
}

constexpr const char* mount = "mount -t tmpfs -o size=20m none \"$1\" || exit 99\n";
constexpr const char* small_model =
  "--blocks 2 --width 16 --heads 2 --context 16 --batch 8 --micro-batches 4 --single-process-seconds 0";

}  // namespace

BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_is_told_and_the_last_checkpoint_stays_whole) {  // TN-1
  const small_run run;
  const auto disk = run.folder.path() / "disk";
  std::filesystem::create_directory(disk);
  program test(with_mounts(std::string(mount) +
                             "\"$0\" train --data \"$1/../text.txt\" --out \"$1/run\" --steps 1000000 --checkpoint-every 10 " +
                             small_model +
                             " & training=$!\n"
                             "while [ ! -e \"$1/run/checkpoint/checkpoint.json\" ] && kill -0 $training; do :; done\n"
                             "cat /dev/zero > \"$1/filler\"\n"
                             "wait $training; echo status $?\n"
                             "rm \"$1/filler\"\n"
                             "\"$0\" generate --out \"$1/run\" --length 5 > /dev/null && echo still whole\n"
                             "find \"$1\" -name '.*' -type f | grep -q . || echo no litter\n",
                           disk),
               "unshare");
  const auto how = test.how_it_ends();
  if (how == "exited with 99" || test.text().find("unshare failed") != std::string::npos) {
    BOOST_TEST_MESSAGE("no file system can be mounted here, so the next test stands alone: " << test.text());
    return;
  }
  for (const char* line : {"status 1", "still whole", "no litter"}) BOOST_TEST(!test.line_with(line).empty(), test.text());
  const auto said = test.line_with("troupe: ");
  const auto says = [&](const char* words) { return said.find(words) != std::string::npos; };
  for (const char* words : {"is whole", "--resume"}) BOOST_TEST(says(words), said);
  // A save looks for space before it writes; the file of the metrics does not.
  BOOST_TEST((says("make room on the disk") || says("No space left on device")), said);
}

// The same test for systems where nothing can be mounted. No file may grow beyond 150 blocks of the shell (75 KiB in dash). The
// file of the metrics reaches this limit first.
BOOST_AUTO_TEST_CASE(a_file_that_may_not_grow_is_told_and_what_was_written_stays_whole) {  // TN-1, MX-1
  const small_run run;
  program training(
    {"-c",
     "ulimit -f 150 && exec \"$0\" train --data \"$1\" --out \"$2\" --steps 1000000 --checkpoint-every 10 --no-trace " +
       std::string(small_model),
     program_under_test(), run.data, run.out},
    "sh");
  BOOST_TEST(training.how_it_ends(60s) == "exited with 1", training.text());
  const auto said = training.line_with("troupe: ");
  for (const char* word : {"metrics.jsonl", "File too large", "is whole", "--resume"})
    BOOST_TEST(said.find(word) != std::string::npos, said);
  BOOST_TEST(losses(run.file("metrics.jsonl")).size() > 100u);
  check_no_litter(run.out);
  program text({"generate", "--out", run.out, "--length", "5"});
  BOOST_TEST(text.how_it_ends() == "exited with 0", text.text());
}

BOOST_AUTO_TEST_CASE(a_disk_without_space_is_told_before_anything_is_written) {
  const small_run run;
  const auto disk = run.folder.path() / "disk";
  std::filesystem::create_directory(disk);
  program test(
    with_mounts("mount -t tmpfs -o size=4m none \"$1\" || exit 99\n\"$0\" train --data \"$1/../text.txt\" --out \"$1/run\" " +
                  std::string(small_model),
                disk),
    "unshare");
  const auto how = test.how_it_ends();
  if (how == "exited with 99" || test.text().find("unshare failed") != std::string::npos) {
    BOOST_TEST_MESSAGE("no file system can be mounted here: " << test.text());
    return;
  }
  BOOST_TEST(how == "exited with 1");
  const auto said = test.line_with("troupe: ");
  for (const char* word : {"expected room for", "disk/run", "--out"}) BOOST_TEST(said.find(word) != std::string::npos, said);
}
