// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/apps/cli_test.cpp
#include "apps/commands/commands.hpp"

#include <array>
#include <limits>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>

#include "apps/charlm/training.hpp"
#include "apps/command_line.hpp"
#include "apps/signals.hpp"

namespace troupe::apps {

namespace {

constexpr auto many = std::numeric_limits<std::int64_t>::max();
constexpr auto a_year = 366.0 * 24 * 3600;
constexpr auto largest = std::numeric_limits<double>::max();

constexpr const char* at_least_1 = "at least 1";

constexpr const char* train_examples = R"(The text is cut into blocks of 2,000 characters; every tenth is for validation.
With --steps a run can be repeated bit for bit; with --seconds the learning rate follows the clock.
Nodes that run already need charlm: those of `troupe node --load charlm` and of `troupe launch` have it.

Examples:
  troupe train
  troupe train --data novel.txt --out out/novel --seconds 300
  troupe train --resume --out out/novel)";

void add_options(CLI::App& command, charlm::train_options& options) {
  command.option_defaults()->always_capture_default();
  command.add_option("--data", options.data, "Text to train on: a UTF-8 file, or a folder of them, of at most 1 GiB");
  command.add_option("--out", options.out, "Folder for checkpoints, metrics, chart and trace");
  auto* resume = command.add_flag("--resume", options.resume, "Continue from the checkpoint in the folder");
  command
    .add_flag("--overwrite", options.overwrite,
              "Remove the run that is in the folder; without this option it moves to previous-1, previous-2, ... in the folder")
    ->excludes(resume);
  auto* seconds = command.add_option("--seconds", options.seconds, "Seconds to train for")->check(between(1.0, a_year));
  command.add_option("--steps", options.steps, "Steps to train for, instead of a time")
    ->check(within(std::int64_t{1}, many, at_least_1))
    ->default_str("")
    ->excludes(seconds);
  command.add_option("--checkpoint-every", options.checkpoint_every, "Steps between checkpoints")
    ->check(within(std::int64_t{1}, many, at_least_1));
  command
    .add_option("--node-checkpoints", options.node_checkpoints,
                "Folder for each node's own part of a checkpoint: with --cluster or --join a path below the node's --data-dir; "
                "without this "
                "option the parts are sent to the driver, which writes them to --out")
    ->type_name("FOLDER");
  command.add_option("--validate-every", options.validate_every, "Steps between validations")
    ->check(within(std::int64_t{1}, many, at_least_1));
  command
    .add_option("--verify-steps", options.verify_steps,
                "Steps at the start whose gradients are compared with those of a single process")
    ->check(within(std::int64_t{0}, many, "0 or more"));
  command
    .add_option(
      "--single-process-seconds", options.single_process_seconds,
      "Seconds to measure a single process for, half of them at the start, the rest during the training; 0: not at all")
    ->check(between(0.0, a_year));
  command.add_option("--sample", options.sample, "Characters to generate at the end")
    ->check(between(std::int64_t{0}, std::int64_t{1'000'000}));

  command.option_defaults()->group("Model");
  const auto model = [&](const char* name, std::int64_t& value, const char* what) {
    command.add_option(name, value, what)->check(between(std::int64_t{1}, std::int64_t{1'000'000}));
  };
  model("--blocks", options.shape.blocks, "Transformer blocks");
  model("--width", options.shape.width, "Width of the hidden values");
  model("--heads", options.shape.heads, "Attention heads; they divide the width");
  model("--context", options.shape.context, "Characters that the model sees");
  model("--batch", options.how.batch, "Windows of text in a step");
  model("--micro-batches", options.how.micro_batches, "Parts of a batch that follow each other through the stages");
  command.add_option("--learning-rate", options.how.learning_rate, "Highest learning rate of AdamW")
    ->check(within(std::numeric_limits<double>::min(), largest, "above 0"));
  command.add_option("--clip-norm", options.how.clip_norm, "Largest norm of a step's gradients, over all nodes");
  command.add_option("--seed", options.how.seed, "Seed of the first parameters and of the order of the text")
    ->check(within(std::int64_t{0}, many, "0 or more"));

  command.option_defaults()->group("Cluster");
  command.add_option("--stages", options.stages, "Processes that the blocks are spread over")
    ->check(between(std::int64_t{1}, std::int64_t{64}));
  command
    .add_option(
      "--schedule", options.schedule,
      "What a stage does next: dataflow, whatever has come, forwards and backwards at once; gpipe, all forwards, then "
      "all backwards; 1f1b, one forward, one backward; zero-bubble, as 1f1b, with gradients of weights while a stage "
      "would wait. All give the same bits")
    ->check(one_of({"dataflow", "gpipe", "1f1b", "zero-bubble"}))
    ->type_name("NAME");
  command
    .add_option(
      "--wire", options.wire,
      "How activations and gradients travel: exact; bf16 or fp16, half of the bytes; int8, a quarter, in which what rounding "
      "takes from a gradient is added to the next one. Verified steps and evaluations are exact")
    ->check(one_of({"exact", "bf16", "fp16", "int8"}))
    ->type_name("FORMAT");
  command.add_option("--device", options.device,
                     "Device on which each stage's node computes, as in cuda:0; the driver has to have it too");
  auto* cluster =
    command.add_option("--cluster", options.cluster, "Use the running nodes of this cluster file (see troupe launch)");
  auto* join =
    command.add_option("--join", options.join, "Use the running nodes of the cluster that the node at HOST:PORT is in")
      ->check(host_and_port())
      ->type_name("HOST:PORT")
      ->excludes(cluster);
  command
    .add_option(
      "--nodes", options.nodes,
      "Which nodes of that cluster hold the stages, in this order, as in stage1,stage2; without it all that are up, in "
      "the order of their names, without the drivers of other runs")
    ->delimiter(',')
    ->type_name("NAMES")
    ->default_str("")
    ->needs(join);
  constexpr std::array<std::string_view, 5> of_driver{"--name", "--host", "--advertise", "--port", "--heartbeat-ms"};
  add_node_options(command, options.driver, of_driver, "Cluster");
  command.get_option("--name")->description(
    "Name of the driver in that cluster; without it the name in its kit, or driver. Runs that use one cluster at the same time "
    "need "
    "different names");
  command.get_option("--heartbeat-ms")
    ->description(
      "Milliseconds between two heartbeats of the driver and of the processes that it starts; a node that answers none of 3 is "
      "unreachable");
  command.add_option("--deadline", options.deadline, "Seconds that a call or a pass may take")->check(between(1.0, 86'400.0));
  command
    .add_option("--retry", options.retry,
                "How often the run waits for a stage that is away, at the start too, and goes on from the last checkpoint once "
                "all stages are up")
    ->check(within(std::int64_t{0}, many, "0 or more"));
  command.add_option("--retry-wait", options.retry_wait, "Seconds that the run waits each time")
    ->check(between(std::int64_t{1}, static_cast<std::int64_t>(a_year)));
  command.add_flag("--trace", options.trace,
                   "Record what every node does, for trace.json (so it is unless --no-trace is given)");
  command.add_flag_callback(
    "--no-trace", [&options] { options.trace = false; }, "Record nothing of that");
  command
    .add_option("--profile-steps", options.profile_steps,
                "Steps, after the verified ones, whose operators on all nodes are in trace.json")
    ->check(within(std::int64_t{0}, many, "0 or more"));
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto options = std::make_shared<charlm::train_options>();
  auto* command = app.add_subcommand("train", "Train a language model whose layers are spread over processes");
  add_options(*command, *options);
  for (const auto names : {option_names(proof_and_policy), option_names(log_options)})
    add_node_options(*command, options->driver, names);
  command->footer(train_examples);
  command->callback([options, command] {
    for (const auto* option : command->get_options())
      if (option->count() > 0) options->given.insert(option->get_single_name());
    if (options->starts_stages())
      for (const char* name : {"name", "host", "advertise", "certificates", "revoked", "policy", "insecure"})
        if (options->given.contains(name)) throw CLI::RequiresError(std::string("--") + name, "--cluster or --join");
    const stop_signal stop;
    if (const auto status = charlm::train(*options, stop); status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace troupe::apps
