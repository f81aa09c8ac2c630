// SPDX-License-Identifier: BSD-3-Clause
// Two parties on hosts of their own, with kits of two roles and a policy. Each keeps its data and its half of the model.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "hosts/testbed.hpp"
#include "support/contains.hpp"

using namespace troupe::hosts;
using troupe::test::contains;

namespace {

namespace fs = std::filesystem;
using words = std::vector<std::string>;

/// The party with labels is on h1, the party with features on h2. The authority is on h1.
struct study {
  testbed all{{"h1", "h2"}};

  study() {
    done("h1", {"split-learning", "data", ".", "--rows", "400"});
    done("h1", {"certs", "init", "--cluster", "study"});
    done("h1", {"certs", "node", "labels", "--role", "labels"});
    done("h1", {"certs", "node", "features", "--role", "features"});
    for (const auto* file : {"features.csv", "features.pem"}) fs::rename(all["h1"].folder() / file, all["h2"].folder() / file);
    std::ofstream(all["h1"].folder() / "policy.json") << R"({"roles": {"features": {"call": ["forward"]}}})";
  }

  std::string done(const std::string& on, const words& arguments) {
    auto run = all[on].troupe(arguments);
    BOOST_TEST(run.how_it_ends(std::chrono::seconds(100)) == "exited with 0", run.text());
    return run.text();
  }

  program labels(const words& more = {}) {
    words arguments{"split-learning", "labels",     "--labels", "labels.csv",  "--host", "0.0.0.0", "--port",     "4001",
                    "--certificates", "labels.pem", "--policy", "policy.json", "--seed", "1",       "--log-file", "access.log"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return all["h1"].troupe(arguments);
  }

  words features(const words& more = {}) const {
    words result{"split-learning", "features", "--features",     "features.csv", "--host", "0.0.0.0",
                 "--join",         "h1:4001",  "--certificates", "features.pem", "--seed", "1"};
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }

  /// The lines with losses that one process prints that has all data.
  std::vector<std::string> expected(const words& more = {}) {
    const auto there = (all["h2"].folder() / "features.csv").string();
    words arguments{"split-learning", "alone", "--features", there, "--labels", "labels.csv", "--seed", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return losses_in(done("h1", arguments));
  }

  static std::vector<std::string> losses_in(const std::string& text) {
    std::vector<std::string> result;
    for (std::size_t at = text.find("epoch "); at != std::string::npos; at = text.find("epoch ", at + 1))
      result.push_back(text.substr(at, text.find('\n', at) - at));
    return result;
  }

  static std::size_t count_of(const std::string& text, const std::string& what) {
    std::size_t result = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++result;
    return result;
  }

  std::string log() const {
    std::ifstream in(all["h1"].folder() / "access.log");
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hosts, *boost::unit_test::precondition(makes_hosts))

BOOST_FIXTURE_TEST_SUITE(split_learning, study)

BOOST_AUTO_TEST_CASE(two_parties_get_the_losses_of_one_process_and_each_access_is_logged) {
  auto serving = labels();
  address_of(serving);
  const auto text = done("h2", features({"--out", "run", "--epochs", "3"}));
  const auto losses = losses_in(text);
  BOOST_TEST(losses.size() == 3U, text);
  BOOST_TEST(losses == expected({"--epochs", "3"}), boost::test_tools::per_element());
  BOOST_TEST(fs::file_size(all["h2"].folder() / "run" / "loss.svg") > 1000U);
  // What a curious party asks for beyond the policy is refused, and the other party sees it.
  const auto refused = done("h2", features({"--try-to-read-weights"}));
  BOOST_TEST(contains(refused, "the policy does not let this role call the function 'weights'"), refused);
  BOOST_TEST(contains(refused, "the policy does not let this role read weights"), refused);
  serving.signal(SIGTERM);
  BOOST_TEST(serving.how_it_ends() == "exited with 0", serving.text());
  const auto seen = log();
  BOOST_TEST(contains(seen, "'forward' called by node 'features' of the role 'features'"), seen);
  // A step is a call for the loss, a pass, and a call that the other side learns.
  const auto passes = count_of(seen, ": node 'features' runs it here");
  BOOST_TEST(passes > 3U, seen);
  BOOST_TEST(count_of(seen, "'forward' called by node 'features'") == 2 * passes, seen);
  BOOST_TEST(contains(seen, "refused a request: 'weights' called by node 'features' of the role 'features'"), seen);
  BOOST_TEST(contains(seen, "refused a request: 'troupe.parameters' called by node 'features'"), seen);
}

BOOST_AUTO_TEST_CASE(what_crosses_the_cut_is_clipped_and_noised_as_each_party_says) {
  auto serving = labels({"--clip", "0.05", "--noise", "0.2", "--noise-seed", "3"});
  address_of(serving);
  const auto text = done("h2", features({"--epochs", "3", "--clip", "2", "--noise", "0.1", "--noise-seed", "4"}));
  const words of_both{"--epochs",
                      "3",
                      "--clip",
                      "2",
                      "--noise",
                      "0.1",
                      "--noise-seed",
                      "4",
                      "--clip-gradients",
                      "0.05",
                      "--noise-of-gradients",
                      "0.2",
                      "--noise-of-gradients-seed",
                      "3"};
  BOOST_TEST(losses_in(text) == expected(of_both), boost::test_tools::per_element());
  BOOST_TEST((losses_in(text) != expected({"--epochs", "3"})), text);
  auto noise_alone = all["h2"].troupe(features({"--noise", "0.1"}));
  BOOST_TEST(noise_alone.how_it_ends() != "exited with 0", noise_alone.text());
  BOOST_TEST(contains(noise_alone.text(), "--clip"), noise_alone.text());
}

BOOST_AUTO_TEST_CASE(a_wrong_name_of_the_other_party_is_no_reason_to_try_again) {
  auto serving = labels();
  address_of(serving);
  auto training = all["h2"].troupe(features({"--labels-node", "label", "--deadline", "1"}));
  BOOST_TEST(training.how_it_ends() == "exited with 1", training.text());
  const auto text = training.text();
  BOOST_TEST(contains(text, "no peer 'label' became known within 1000 ms; up are: labels"), text);
  BOOST_TEST(contains(text, "--labels-node names the node of the other party"), text);
}

BOOST_AUTO_TEST_CASE(without_a_policy_the_label_side_warns) {
  auto serving = all["h1"].troupe({"split-learning", "labels", "--labels", "labels.csv", "--certificates", "labels.pem"});
  address_of(serving);
  BOOST_TEST(contains(serving.text(), "warning: without --policy every node of the cluster may do"), serving.text());
}

BOOST_AUTO_TEST_CASE(a_signal_ends_the_training) {
  auto serving = labels();
  address_of(serving);
  auto training = all["h2"].troupe(features({"--epochs", "1000"}));
  BOOST_TEST(!training.line_with("epoch 2 ").empty(), training.text());
  training.signal(SIGTERM);
  BOOST_TEST(training.how_it_ends(std::chrono::seconds(5)) == "exited with 143", training.text());
}

BOOST_AUTO_TEST_CASE(a_signal_ends_the_training_while_it_waits_for_the_other_party) {
  auto serving = labels();
  address_of(serving);
  auto waiting = all["h2"].troupe(features({"--deadline", "60", "--epochs", "1000"}));
  BOOST_TEST(!waiting.line_with("epoch 1 ").empty(), waiting.text());
  serving.signal(SIGSTOP);
  waiting.signal(SIGINT);
  BOOST_TEST(waiting.how_it_ends(std::chrono::seconds(5)) == "exited with 130", waiting.text());
  serving.signal(SIGCONT);
}

BOOST_AUTO_TEST_CASE(a_cut_that_nobody_notices_changes_no_loss) {
  auto serving = labels();
  address_of(serving);
  auto training = all["h2"].troupe(features({"--deadline", "2", "--epochs", "40", "--retry", "10"}));
  BOOST_TEST(!training.line_with("epoch 2 ").empty(), training.text());
  all.cut("h1", "h2");
  BOOST_TEST(!training.line_with("it is tried again").empty(), training.text());
  all.mend("h1", "h2");
  BOOST_TEST(training.how_it_ends(std::chrono::seconds(100)) == "exited with 0", training.text());
  const auto losses = losses_in(training.text());
  BOOST_TEST(losses.size() == 40U, training.text());
  BOOST_TEST(losses == expected({"--epochs", "40"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(slow_links, *boost::unit_test::label("slow_links") * boost::unit_test::precondition(makes_slow_links))

BOOST_FIXTURE_TEST_CASE(a_slow_link_between_the_parties_changes_no_loss, study) {
  for (const auto* each : {"h1", "h2"}) all.limit_rate(each, "2mbit");
  auto serving = labels();
  address_of(serving);
  auto training = all["h2"].troupe(features());
  BOOST_TEST(training.how_it_ends(std::chrono::seconds(100)) == "exited with 0", training.text());
  BOOST_TEST(!contains(training.text(), "it is tried again"), training.text());
  BOOST_TEST(losses_in(training.text()) == expected(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
