// SPDX-License-Identifier: BSD-3-Clause
// `troupe train` over separate hosts that share no folder.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "hosts/testbed.hpp"
#include "support/contains.hpp"
#include "support/small_run.hpp"

namespace {

using namespace std::chrono_literals;
using namespace troupe::apps::test;
using troupe::hosts::address_of;
using troupe::hosts::makes_hosts;
using troupe::hosts::testbed;
using troupe::test::contains;

constexpr const char* all_steps = "200";

/// A driver's host, and the hosts h1 and h2 for stage1 and stage2. The run's folder is on the driver's host alone: at its path
/// each other host sees an empty file system of its own.
struct training_hosts {
  testbed all{{"driver", "h1", "h2"}};
  small_run run;
  std::optional<program> stage1;
  std::optional<program> stage2;

  training_hosts() { start_stages(); }

  /// Starts a stage. `prepare`: shell commands that run first on its host, in the folder of the host.
  void start(const std::string& on, const std::string& name, std::optional<program>& stage, const std::string& prepare = "true",
             const std::vector<std::string>& more = {}) {
    const auto script = "cd \"$0\" && mount -t tmpfs none \"$1\" && shift && { " + prepare + "; } && exec \"$@\"";
    const auto& where = all[on];
    stage.reset();
    std::vector<std::string> command{"netns",
                                     "exec",
                                     where.net_namespace(),
                                     "sh",
                                     "-c",
                                     script,
                                     where.folder(),
                                     run.folder.path(),
                                     program_under_test(),
                                     "node",
                                     "--load",
                                     "charlm",
                                     "--name",
                                     name,
                                     "--host",
                                     "0.0.0.0",
                                     "--port",
                                     "4001",
                                     "--data-dir",
                                     ".",
                                     "--certificates",
                                     kit(name)};
    command.insert(command.end(), more.begin(), more.end());
    stage.emplace(command, "ip");
    address_of(*stage);
  }
  /// The kit of a node, with the role that a policy may give the node: the driver's host has the authority.
  std::string kit(const std::string& name) {
    const auto& home = all["driver"];
    const auto file = (home.folder() / (name + ".pem")).string();
    if (std::filesystem::exists(file)) return file;
    const auto* role = name == "driver" ? "trainer" : "stage";
    for (const auto& command : {std::vector<std::string>{"certs", "init"}, {"certs", "node", name, "--role", role}}) {
      auto made = home.troupe(command);
      made.how_it_ends();  // there is one authority: the second one is refused
    }
    return file;
  }
  void start_stages(const std::string& prepare = "true") {
    start("h1", "stage1", stage1, prepare);
    start("h2", "stage2", stage2, prepare);
  }
  /// The first policy on the page about operations.
  static std::string policy_of_handbook() {
    const std::string page = content_of(TROUPE_OPERATIONS);
    const std::string opening = "```json\n";
    const auto begin = page.find(opening + "{\"roles\"") + opening.size();
    return page.substr(begin, page.find("```", begin) - begin);
  }
  void start_stages_with(const std::string& policy) {
    const auto file = (all["driver"].folder() / "policy.json").string();
    std::ofstream(file) << policy;
    kill_stages();
    start("h1", "stage1", stage1, "true", {"--policy", file});
    start("h2", "stage2", stage2, "true", {"--policy", file});
  }
  void kill_all_after_a_checkpoint(program&& training) {
    BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
    training.signal(SIGKILL);
    training.how_it_ends();
    kill_stages();
  }
  void kill_stages() {
    for (auto* each : {&stage1, &stage2}) {
      (*each)->signal(SIGKILL);
      (*each)->how_it_ends();
    }
  }

  /// `troupe train` over the two stages, on the driver's host or on another one that reaches the run's folder.
  program train(std::vector<std::string> more, const std::string& on = "driver") {
    const auto file = run.folder.write("cluster.json", R"({"nodes": [{"name": "stage1", "host": "h1", "port": 4001},)"
                                                       R"( {"name": "stage2", "host": "h2", "port": 4001}]})");
    more.insert(more.end(), {"--cluster", file});
    return train_with(more, on);
  }
  program train_with(std::vector<std::string> more, const std::string& on = "driver") {
    more.insert(more.end(),
                {"--host", "0.0.0.0", "--certificates", kit("driver"), "--steps", all_steps, "--checkpoint-every", "20"});
    return all[on].troupe(run.command(more));
  }

  std::filesystem::path part_folder(const std::string& host) const { return all[host].folder() / "parts"; }
};

/// Checks that the run has the bits of a run that was not interrupted, on processes of one host.
void check_bits(const small_run& of) {
  const small_run straight;
  program whole(straight.command({"--steps", all_steps}));
  BOOST_TEST(whole.how_it_ends() == "exited with 0", whole.text());
  BOOST_TEST(losses(of.file("metrics.jsonl")) == losses(straight.file("metrics.jsonl")), boost::test_tools::per_element());
  BOOST_TEST(of.summary()["validation_loss"] == straight.summary()["validation_loss"]);
}

/// Whether the folder or a folder in it holds a part of this node.
bool holds(const std::filesystem::path& folder, const std::string& node) {
  const std::filesystem::recursive_directory_iterator files(folder);
  return std::any_of(begin(files), end(files),
                     [&](const auto& each) { return each.path().filename().string().starts_with(node); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_FIXTURE_TEST_SUITE(training, training_hosts)

BOOST_AUTO_TEST_CASE(a_run_continues_on_hosts_that_never_saw_its_checkpoint) {  // OM-6
  kill_all_after_a_checkpoint(train({}));
  start_stages();
  auto again = train({"--resume"});
  BOOST_TEST(again.how_it_ends() == "exited with 0", again.text());
  BOOST_TEST(!again.line_with("continuing the run").empty(), again.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(each_host_can_keep_the_part_of_its_stage) {  // OM-6
  kill_all_after_a_checkpoint(train({"--node-checkpoints", "parts"}));
  for (const auto* name : {"stage1", "stage2"})
    BOOST_TEST(!holds(run.file("checkpoint"), name), "the part of " << name << " is with the driver");
  BOOST_TEST(holds(part_folder("h1"), "stage1"));
  BOOST_TEST(!holds(part_folder("h1"), "stage2"));
  BOOST_TEST(holds(part_folder("h2"), "stage2"));
  const auto before = content_of(run.file("checkpoint/checkpoint.json"));
  start_stages();
  auto again = train({"--resume"});
  BOOST_TEST(again.how_it_ends() == "exited with 0", again.text());
  check_bits(run);
  // Without the option the new checkpoint lies with the driver, and the old one is gone.
  BOOST_TEST(holds(run.file("checkpoint"), "stage1"));
  // A part of a save that the kill has cut off may lie there still: no manifest names such a part.
  for (const auto& each : std::filesystem::recursive_directory_iterator(part_folder("h1")))
    BOOST_TEST((each.is_directory() || before.find(each.path().filename().string()) == std::string::npos), each.path());
}

BOOST_AUTO_TEST_CASE(the_policy_of_the_handbook_lets_a_training_through) {
  start_stages_with(policy_of_handbook());
  auto training = train({});
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST(!contains(training.text(), "refused"), training.text());
  for (auto* each : {&stage1, &stage2})  // a line about what nobody has to look at hides one that somebody must
    BOOST_TEST(!contains((*each)->text(), " refused a "), (*each)->text());
  check_bits(run);
  // A certificate of another role gets nothing.
  auto guest = all["driver"].troupe({"certs", "node", "guest", "--role", "guest"});
  BOOST_TEST(guest.how_it_ends() == "exited with 0", guest.text());
  auto curious = all["driver"].troupe({"status", "h1:4001", "--certificates", "guest.pem"});
  BOOST_TEST(curious.how_it_ends() == "exited with 1", curious.text());
  BOOST_TEST(contains(curious.text(), "the policy does not let it"), curious.text());
}

BOOST_AUTO_TEST_CASE(a_run_without_the_right_to_trace_loses_only_the_trace) {
  auto policy = policy_of_handbook();
  const std::string right = R"("trace": true, )";
  policy.erase(policy.find(right), right.size());
  start_stages_with(policy);
  auto training = train({});
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST(contains(training.text(), "trace.json has what the driver did, and nothing of the other nodes: "),
             training.text());
  BOOST_TEST(contains(training.text(), "the policy does not let this role read or write its trace"), training.text());
  BOOST_TEST(contains(content_of(run.file("trace.json")), "step 1"));
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_outlives_a_link_that_was_cut) {  // TN-7
  auto training = train({"--retry", "3"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  all.cut("driver", "h2");
  const auto waiting = training.line_with("waiting for ");
  BOOST_TEST(contains(waiting, "waiting for stage2, away since "), training.text());
  all.mend("driver", "h2");
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST(!training.line_with("(retry 1 of 3)").empty(), training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_outlives_a_cut_between_two_stages) {  // TN-7
  auto training = train({"--retry", "3"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  all.cut("h1", "h2");
  BOOST_TEST(!training.line_with("lost a stage at step ").empty(), training.text());
  all.mend("h1", "h2");
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_outlives_a_stage_that_is_frozen) {  // TN-7
  auto training = train({"--retry", "3"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  stage2->signal(SIGSTOP);
  BOOST_TEST(!training.line_with("waiting for stage2, away since ").empty(), training.text());
  stage2->signal(SIGCONT);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  check_bits(run);
}

// As a laptop that slept: the stages hold the driver for gone, and have dropped what it made.
BOOST_AUTO_TEST_CASE(a_run_outlives_a_driver_that_is_frozen_until_it_is_gone) {  // TN-7
  kill_stages();
  start("h1", "stage1", stage1, "true", {"--forget-after", "1"});
  start("h2", "stage2", stage2, "true", {"--forget-after", "1"});
  auto training = train({"--retry", "3"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  training.signal(SIGSTOP);
  for (auto* each : {&stage1, &stage2}) BOOST_TEST(!(*each)->line_with("peer 'driver' is gone: ").empty(), (*each)->text());
  training.signal(SIGCONT);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_with_the_process_that_replaces_a_stage) {  // TN-7
  auto training = train({"--retry", "1"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  stage2->signal(SIGKILL);
  stage2->how_it_ends();
  BOOST_TEST(!training.line_with("waiting for stage2, away since ").empty(), training.text());
  start("h2", "stage2", stage2);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_that_joined_one_node_goes_on_with_the_process_that_replaces_another) {  // TN-7
  const auto replace = [&] {
    stage2->signal(SIGKILL);
    stage2->how_it_ends();
    start("h2", "stage2", stage2, "true", {"--join", "h1:4001"});
  };
  replace();
  auto training = train_with({"--retry", "1", "--join", "h1:4001"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  replace();
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST(contains(training.text(), "cluster: driver,stage1,stage2\n"), training.text());
  BOOST_TEST(contains(training.text(), "waiting for stage2, away since "), training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_goes_on_after_stages_that_were_stopped_in_order) {  // TN-7
  auto training = train({"--retry", "2"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  const auto restart = [&](const std::string& on, const std::string& name, std::optional<program>& stage, int number) {
    stage->signal(number);
    BOOST_TEST(stage->how_it_ends() == "exited with 0", stage->text());
    BOOST_TEST(!training.line_with("waiting for " + name + ", away since ").empty(), training.text());
    start(on, name, stage);
  };
  restart("h2", "stage2", stage2, SIGINT);
  BOOST_TEST(!training.line_with("(retry 1 of 2)").empty(), training.text());
  restart("h1", "stage1", stage1, SIGTERM);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST(contains(training.text(), "(retry 2 of 2)"), training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_waits_for_a_stage_that_starts_late) {  // TN-7
  kill_stages();
  start("h1", "stage1", stage1);
  auto training = train({"--retry", "1"});
  BOOST_TEST(contains(training.line_with("not all stages are up: "), "no node listens at h2:4001"), training.text());
  start("h2", "stage2", stage2);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  BOOST_TEST(contains(training.text(), "going on from step 0 (retry 1 of 1)"), training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_that_joins_a_cluster_waits_until_it_has_a_node_for_each_stage) {  // TN-7
  kill_stages();
  auto training = train_with({"--retry", "1", "--join", "h1:4001"});
  BOOST_TEST(contains(training.line_with("not all stages are up: "), "no node listens at h1:4001"), training.text());
  start("h1", "stage1", stage1);
  BOOST_TEST(contains(training.line_with("trying again: expected 2 nodes"), "but 1 are there"), training.text());
  start("h2", "stage2", stage2, "true", {"--join", "h1:4001"});
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_outlives_a_stage_that_is_frozen_before_the_first_step) {  // TN-7
  const auto freeze_at_start = [&](program& training) {
    BOOST_TEST(!training.line_with("cluster: driver").empty(), training.text());
    stage2->signal(SIGSTOP);
    const auto said = training.line_that(
      [](const auto& line) { return contains(line, "not all stages are up: ") || contains(line, "lost a stage "); });
    BOOST_TEST(!said.empty(), training.text());
    stage2->signal(SIGCONT);
  };
  auto training = train({"--retry", "1"});
  freeze_at_start(training);
  kill_all_after_a_checkpoint(std::move(training));
  start_stages();
  auto again = train({"--resume", "--retry", "1"});
  freeze_at_start(again);
  BOOST_TEST(again.how_it_ends(60s) == "exited with 0", again.text());
  check_bits(run);
}

// As a driver whose host lost its power, and that goes on elsewhere: nobody told the stages that it is gone.
BOOST_AUTO_TEST_CASE(a_run_waits_until_its_name_is_free_again) {  // TN-7
  kill_stages();
  start("h1", "stage1", stage1, "true", {"--forget-after", "15"});
  start("h2", "stage2", stage2, "true", {"--forget-after", "15"});
  auto training = train({});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  all.unplug("driver");
  training.signal(SIGKILL);
  training.how_it_ends();
  for (auto* each : {&stage1, &stage2})
    BOOST_TEST(!(*each)->line_with("peer 'driver' is unreachable").empty(), (*each)->text());
  auto elsewhere = train({"--resume", "--retry", "1"}, "h1");
  BOOST_TEST(contains(elsewhere.line_with("not all stages are up: "), "the name 'driver' is taken by node 'driver'"),
             elsewhere.text());
  BOOST_TEST(elsewhere.how_it_ends(60s) == "exited with 0", elsewhere.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(two_runs_use_one_cluster_under_different_names) {
  auto training = train({"--name", "driver", "--retry", "1"}, "driver");
  BOOST_TEST_REQUIRE(appears(run.file("metrics.jsonl"), training), training.text());
  const small_run other;
  auto second = all["driver"].troupe(other.command(
    {"--join", "h1:4001", "--nodes", "stage1,stage2", "--host", "0.0.0.0", "--certificates", kit("second"), "--steps", "20"}));
  BOOST_TEST(second.how_it_ends() == "exited with 0", second.text());
  BOOST_TEST(contains(second.text(), "cluster: second,stage1,stage2\n"), second.text());
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
}

BOOST_AUTO_TEST_CASE(a_run_that_may_retry_waits_for_a_stage_that_can_not_go_on_yet) {  // TN-7
  auto training = train({"--retry", "2", "--node-checkpoints", "parts"});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  const auto replace = [&](const std::string& prepare) {
    stage2->signal(SIGKILL);
    stage2->how_it_ends();
    start("h2", "stage2", stage2, prepare);
  };
  replace("mount -t tmpfs -o size=64k none parts");
  BOOST_TEST(contains(training.line_with("expected room for"), "trying again: "), training.text());
  replace("true");
  BOOST_TEST(training.how_it_ends(60s) == "exited with 0", training.text());
  check_bits(run);
}

BOOST_AUTO_TEST_CASE(a_run_without_retry_says_that_there_is_one) {  // TN-3
  auto training = train({});
  BOOST_TEST_REQUIRE(appears(run.file("checkpoint/checkpoint.json"), training), training.text());
  stage2->signal(SIGKILL);
  BOOST_TEST(training.how_it_ends(60s) == "exited with 1", training.text());
  const auto said = training.line_with("troupe: ");
  for (const auto* word : {"stage2", "with --retry N the run waits", "is whole", "--resume"})
    BOOST_TEST(contains(said, word), said);
}

BOOST_AUTO_TEST_CASE(a_host_without_disk_space_is_named_before_the_first_step) {
  kill_stages();
  start_stages("mkdir -p parts && { [ $(basename \"$PWD\") != h2 ] || mount -t tmpfs -o size=64k none parts; }");
  auto training = train({"--node-checkpoints", "parts"});
  BOOST_TEST(training.how_it_ends() == "exited with 1", training.text());
  const auto said = training.line_with("troupe: ");
  for (const auto* word : {"stage2", "expected room for", "in the folder 'parts/", "but there are only", "name another folder"})
    BOOST_TEST(contains(said, word), training.text());
  BOOST_TEST(!std::filesystem::exists(run.file("metrics.jsonl")));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()
