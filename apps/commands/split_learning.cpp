// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/split_learning_test.cpp, tests/hosts/split_learning_test.cpp
#include "apps/commands/commands.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

#include "apps/charlm/chart.hpp"
#include "apps/command_line.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"
#include "apps/split/cut.hpp"
#include "apps/split/feature_side.hpp"
#include "apps/split/label_side.hpp"
#include "apps/split/table.hpp"

namespace troupe::apps {

namespace {

struct split_options {
  settings of_node;
  std::string join;
  std::string labels_name = "labels";
  std::string features;
  std::string labels;
  std::string out;
  std::int64_t rows = 2000;
  std::int64_t epochs = 10;
  std::int64_t batch = 64;
  double rate = 0.1;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> noise_seed;
  std::optional<std::uint64_t> other_noise_seed;  // of the label side, for `alone`
  split::cut_options cut;
  split::cut_options other_cut;  // of the label side, for `alone`
  int deadline = 30;
  int retry = 5;
  bool try_to_read_weights = false;

  split::training_parameters training_parameters() const {
    return {epochs, batch, rate, seed, noise_seed, seed ? *seed : std::random_device()(), cut};
  }
};

settings node_settings(const split_options& options) {
  auto result = options.of_node;
  result.deadline = std::chrono::seconds(options.deadline);
  return result;
}

void print_epoch(std::int64_t epoch, double loss) {
  std::printf("epoch %lld loss %s\n", static_cast<long long>(epoch), fixed_text(loss, 9).c_str());
  std::fflush(stdout);
}

/// Makes the folder if needed. Throws std::runtime_error if files can't be written to it. Called before the first step, so that
/// no run trains and then can't write its losses.
void expect_folder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (!problem && ::access(folder.c_str(), W_OK) != 0) problem = {errno, std::generic_category()};
  if (problem)
    throw std::runtime_error("--out: " + folder + " can't be written: " + problem.message() + "; name another folder");
}

/// Writes loss.csv and loss.svg to a folder.
void write_losses(const std::string& folder, const std::vector<double>& losses) {
  if (folder.empty()) return;
  charlm::chart picture{"Split learning", "epoch", "mean loss", {{"loss", "#1f5fa8", 2, true, {}}}, {}};
  std::ofstream table(std::filesystem::path(folder) / "loss.csv");
  table << "epoch,loss\n";
  table.precision(9);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    table << i + 1 << ',' << losses[i] << "\n";
    picture.series.front().points.emplace_back(static_cast<double>(i + 1), losses[i]);
  }
  std::ofstream image(std::filesystem::path(folder) / "loss.svg");
  image << picture.to_svg();
  if (!table.flush() || !image.flush()) throw std::runtime_error("--out: " + folder + " can't be written; is the disk full?");
  std::printf("wrote %s/loss.csv and %s/loss.svg\n", folder.c_str(), folder.c_str());
}

void serve_labels(const split_options& options) {
  at::set_num_threads(1);
  const stop_signal stop;
  split::label_side mine(split::read_labels(options.labels), options.rate, options.cut, options.seed, options.noise_seed);
  auto with = node_settings(options);
  with.prepare = [&](node& here) {
    here.functions().add(split::label_side::name, [&](call_arguments& arguments) { return mine.forward(arguments); });
  };
  node self(std::move(with));
  if (!options.of_node.certificates.empty() && options.of_node.policy.empty())
    std::fprintf(
      stderr,
      "warning: without --policy every node of the cluster may do with this node whatever it likes; `troupe split-learning "
      "--help` shows a policy that lets the other party call one function\n");
  std::printf("%s\n", ready_line{options.of_node.name, options.of_node.host, self.port()}.text().c_str());
  std::fflush(stdout);
  stop.wait();
  self.stop();
}

/// Tries what a curious party would try: asks node `who` for its weights, for the parameters of a module and for its trace.
/// Throws std::runtime_error unless the node refuses all three.
void try_to_read_weights(node& here, const std::string& who) {
  const auto there = here.peer(who);
  const std::pair<const char*, std::function<void()>> attempts[] = {
    {"the function 'weights'", [&] { there.call("weights").get(); }},
    {"the parameters of a module",
     [&] {
       remote_module(there, {there.id(), 1}).parameters();
     }},
    {"its trace", [&] { here.collect_trace({who}); }}};
  for (const auto& [what, attempt] : attempts) {
    try {
      attempt();
    } catch (const error& why) {
      std::printf("%s: %s\n", why.code() == errc::refused ? "refused" : "not refused, but failed", why.what());
      if (why.code() == errc::refused) continue;
    }
    throw std::runtime_error(std::string("the other party did not refuse ") + what + "; look at its policy");
  }
}

/// Ends the process when a stop signal comes. It does so even in the middle of a step, because a step may wait long for the
/// other party.
class end_at_signal {
 public:
  end_at_signal()
      : end_(stop_, std::chrono::milliseconds(0), [] { std::fprintf(stderr, "stopped by a signal; this run can't go on\n"); }) {
  }

 private:
  const stop_signal stop_;
  const last_exit end_;
};

/// Throws std::runtime_error if the other party's node is not in the cluster within the deadline.
void expect_other_party(node& here, const split_options& options) {
  try {
    static_cast<void>(here.peer(options.labels_name, std::chrono::seconds(options.deadline)));
  } catch (const error& missing) {
    if (missing.code() != errc::unknown_peer) throw;
    throw std::runtime_error(std::string(missing.what()) + "; --labels-node names the node of the other party");
  }
}

void train_features(const split_options& options) {
  expect_folder(options.out);
  at::set_num_threads(1);
  const end_at_signal end;
  const auto mine = split::read_table(options.features);
  auto with = node_settings(options);
  with.join = {options.join};
  node self(std::move(with));
  expect_other_party(self, options);
  if (options.try_to_read_weights) return try_to_read_weights(self, options.labels_name);
  split::feature_side party(self, options.labels_name, mine, options.training_parameters(),
                            {std::chrono::seconds(options.deadline), options.retry});
  std::vector<double> losses;
  for (std::int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    losses.push_back(party.train(epoch, [&](const split::failed_step& failed) {
      std::fprintf(stderr, "step %lld failed, attempt %d of %d: %s; it is tried again\n", static_cast<long long>(failed.step),
                   failed.attempt, options.retry + 1, failed.reason.c_str());
    }));
    print_epoch(epoch, losses.back());
  }
  write_losses(options.out, losses);
}

void train_in_one_process(const split_options& options) {
  expect_folder(options.out);
  at::set_num_threads(1);
  const end_at_signal end;
  const auto losses =
    split::train_alone(split::read_table(options.features), split::read_labels(options.labels), options.training_parameters(),
                       options.other_cut, options.other_noise_seed, print_epoch);
  write_losses(options.out, losses);
}

CLI::App* add_command(CLI::App& to, const char* name, const char* what) {
  auto* command = to.add_subcommand(name, what);
  command->option_defaults()->always_capture_default();
  return command;
}

void add_seed(CLI::App& to, split_options& options) {
  to.add_option("--seed", options.seed,
                "Seed of this party's first weights, for tests: who knows it knows the weights. Without it nobody does")
    ->check(between<std::int64_t>(0, split::normal_numbers::greatest_seed))
    ->default_str("");
}

void add_rate(CLI::App& to, split_options& options) {
  to.add_option("--rate", options.rate, "Learning rate of this party's half")->check(within(0.0, 1e6, "0 or more"));
}

void add_cut(CLI::App& to, split::cut_options& cut, std::optional<std::uint64_t>& seed, const char* clip, const char* noise,
             const char* what) {
  to.add_option(clip, cut.clip, std::string("Largest norm of a row of ") + what + "; 0: any")
    ->check(within(0.0, 1e9, "0 or more"));
  to.add_option(noise, cut.noise, std::string("Gaussian noise on ") + what + ": its deviation, in multiples of " + clip)
    ->check(within(0.0, 1e9, "0 or more"))
    ->needs(clip);
  to.add_option(std::string(noise) + "-seed", seed,
                "Seed of this noise, for tests: who knows it can take the noise away. Without it nobody can")
    ->check(between<std::int64_t>(0, split::normal_numbers::greatest_seed))
    ->default_str("");
}

void add_file(CLI::App& to, const char* name, std::string& file, const char* what) {
  to.add_option(name, file, what)->type_name("FILE")->required();
}

void add_course(CLI::App& to, split_options& options) {
  to.add_option("--epochs", options.epochs, "Times to go through all rows")->check(between(1, 1'000'000));
  to.add_option("--batch", options.batch, "Rows of a step")->check(between(1, 1'000'000));
  to.add_option("--out", options.out, "Folder for loss.csv and loss.svg")->type_name("FOLDER");
  add_rate(to, options);
  add_seed(to, options);
}

void add_party(CLI::App& to, split_options& options, const char* name, severity log_level) {
  options.of_node.name = name;
  options.of_node.log_level = log_level;
  constexpr std::array<std::string_view, 4> own{"--name", "--host", "--advertise", "--port"};
  for (const auto names : {option_names(own), option_names(proof_and_policy), option_names(log_options)})
    add_node_options(to, options.of_node, names);
  to.get_option("--name")->description("Name of this party's node, as in its kit");
  to.add_option("--deadline", options.deadline, "Seconds that a call or a pass may take")->check(between(1, 86'400));
}

constexpr const char* split_examples =
  R"(One party has numbers of people, another one has a label of each person. They train one model, and each keeps its data and
its half of the model. docs/split_learning.md explains what the parties learn of each other.

Example, in one folder on one host
  troupe split-learning data .                                            features.csv and labels.csv
  troupe certs init --cluster study
  troupe certs node labels --role labels
  troupe certs node features --role features
  echo '{"roles": {"features": {"call": ["forward"]}}}' > policy.json
  troupe split-learning labels --labels labels.csv --port 4001 --certificates labels.pem --policy policy.json --seed 1 \
    --log-file access.log
  troupe split-learning features --features features.csv --join 127.0.0.1:4001 --certificates features.pem --seed 1 \
    --out run
  troupe split-learning alone --features features.csv --labels labels.csv --seed 1     the same losses, in one process)";

}  // namespace

void add_split_learning_command(CLI::App& app) {
  auto* all = app.add_subcommand("split-learning", "Train a model of two parties, each of which keeps its data and its half");
  all->require_subcommand(1);
  all->footer(split_examples);

  auto data = std::make_shared<split_options>();
  auto* example = add_command(*all, "data", "Write an example: features.csv for one party, labels.csv for the other");
  example->add_option("FOLDER", data->out, "Folder to write to")->type_name("")->required();
  example->add_option("--rows", data->rows, "People in the example")->check(between(1, 10'000'000));
  data->seed = 1;
  example->add_option("--seed", data->seed, "Seed of the example")->default_str("1");
  example->callback([data] {
    split::write_example(data->out, data->rows, *data->seed);
    std::printf("wrote %s/features.csv and %s/labels.csv\n", data->out.c_str(), data->out.c_str());
  });

  auto labels = std::make_shared<split_options>();
  auto* serving =
    add_command(*all, "labels", "Be the party with the labels: serve one function, `forward`, until a signal comes");
  add_file(*serving, "--labels", labels->labels, "Labels of people: a line of names, then a line 'person,label' each");
  add_rate(*serving, *labels);
  add_seed(*serving, *labels);
  add_cut(*serving, labels->cut, labels->noise_seed, "--clip", "--noise", "gradients that leave");
  add_party(*serving, *labels, "labels", severity::debug);
  serving->callback([labels] { serve_labels(*labels); });

  auto features = std::make_shared<split_options>();
  auto* training =
    add_command(*all, "features", "Be the party with the features: train both halves together with the other party");
  add_file(*training, "--features", features->features,
           "Numbers of people: a line of names, then a line 'person,x1,x2,...' each");
  training->add_option("--join", features->join, "Address of the other party's node")
    ->check(host_and_port())
    ->type_name("HOST:PORT")
    ->required();
  training->add_option("--labels-node", features->labels_name, "Name of the other party's node")->check(node_name());
  add_course(*training, *features);
  add_cut(*training, features->cut, features->noise_seed, "--clip", "--noise", "activations that leave");
  training->add_option("--retry", features->retry, "Times to try a step again, after 1, 2, 4, ... 30 s")
    ->check(between(0, 1000));
  training->add_flag("--try-to-read-weights", features->try_to_read_weights,
                     "Do not train; ask for what the other party has to refuse, and print its answers");
  add_party(*training, *features, "features", severity::warn);
  training->callback([features] { train_features(*features); });

  auto alone = std::make_shared<split_options>();
  auto* one = add_command(*all, "alone", "Train both halves in this process, to compare the losses");
  add_file(*one, "--features", alone->features, "Numbers of people");
  add_file(*one, "--labels", alone->labels, "Labels of people");
  add_course(*one, *alone);
  add_cut(*one, alone->cut, alone->noise_seed, "--clip", "--noise", "activations");
  add_cut(*one, alone->other_cut, alone->other_noise_seed, "--clip-gradients", "--noise-of-gradients", "gradients");
  one->callback([alone] { train_in_one_process(*alone); });
}

}  // namespace troupe::apps
