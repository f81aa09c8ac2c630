// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/train_test.cpp, tests/apps/cli_test.cpp
#include "apps/commands/commands.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "apps/charlm/generation.hpp"
#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/model.hpp"
#include "apps/charlm/run_state.hpp"
#include "apps/charlm/text.hpp"
#include "apps/command_line.hpp"
#include "apps/signals.hpp"
#include "apps/weights.hpp"

namespace troupe::apps {

namespace {

struct generate_options {
  std::string out = "out/charlm";
  std::string prompt = "\n";
  charlm::generation_settings how;
};

/// Writes text to stdout at once. Throws std::runtime_error with the reason if the text can't be written.
void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw std::runtime_error("expected to write the text to stdout, but: " + std::string(std::strerror(errno)));
}

std::u32string characters_of(const std::string& prompt) {
  try {
    return charlm::from_utf8(prompt);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error("--prompt is expected to be UTF-8, but its " + std::string(e.what()));
  }
}

/// A checkpoint that was read: the state of the run, the vocabulary, and a model with all stages.
struct checkpointed_model {
  charlm::run_state state;
  charlm::vocabulary words;
  std::shared_ptr<charlm::whole_model> model;
};

/// Returns the parameter's name without its prefix. The optimizer writes the name as "<index of the module on its
/// node>/<parameter>". The index is 0, because each node has one stage.
std::string parameter_name(const std::string& in_checkpoint) {
  constexpr const char* prefix = "0/";
  if (in_checkpoint.rfind(prefix, 0) != 0)
    throw std::runtime_error("expected a parameter of one stage, called 0/..., but got " + in_checkpoint);
  return in_checkpoint.substr(2);
}

/// Reads the checkpoint in the folder of a run. Throws if the checkpoint is missing, is damaged, or was written by another
/// program.
checkpointed_model read_checkpoint(const std::string& folder) {
  namespace fs = std::filesystem;
  const auto checkpoint = fs::path(folder) / "checkpoint";
  if (!fs::exists(checkpoint / "checkpoint.json"))
    throw std::runtime_error("expected a checkpoint in " + checkpoint.string() +
                             ", but there is none; train first (troupe train), or name the folder of a run with --out");
  const auto manifest = objects::read_manifest(checkpoint);
  auto state = charlm::run_state::from_attributes(manifest.about, checkpoint);
  std::vector<named_tensors> stages;
  std::istringstream nodes(state.nodes);
  for (std::string name; std::getline(nodes, name, ',');) {
    const auto& entry = manifest.part(name);
    const auto part = read_part(checkpoint, manifest, entry);
    if (!part.buffers.empty())
      throw std::runtime_error("expected stages without buffers, but in " + checkpoint.string() + " node " + name + " has " +
                               part.buffers.front().first);
    auto& parameters = stages.emplace_back();
    for (const auto& [in_checkpoint, value] : part.parameters) parameters.emplace_back(parameter_name(in_checkpoint), value);
  }
  auto model = std::make_shared<charlm::whole_model>(state.shape, state.stages, state.how.seed);
  charlm::copy_parameters(stages, *model);
  return {state, charlm::vocabulary{charlm::from_utf8(state.characters)}, std::move(model)};
}

void run_generate(const generate_options& options) {
  // A signal ends the program at once. Nothing is lost, even while the checkpoint is read.
  const stop_signal stop([](int number) { _exit(128 + number); });
  at::set_num_threads(1);
  auto how = options.how;
  how.prompt = characters_of(options.prompt);
  auto trained = read_checkpoint(options.out);
  bool begun = false;
  const auto begin = [&] {
    if (!std::exchange(begun, true) && options.prompt != "\n") print(options.prompt);
  };
  charlm::generate(*trained.model, trained.state.shape, trained.words, how, [&](char32_t next) {
    begin();
    print(charlm::to_utf8({next}));
    return true;
  });
  begin();
  print("\n");
}

constexpr const char* generate_examples = R"(The same checkpoint, prompt, temperature and seed give the same text.

Example:
  troupe generate --prompt "You may copy" --length 500 --temperature 0.6)";

}  // namespace

void add_generate_command(CLI::App& app) {
  auto options = std::make_shared<generate_options>();
  auto* command = app.add_subcommand("generate", "Write text from a checkpoint of troupe train");
  command->option_defaults()->always_capture_default();
  command->add_option("--out", options->out, "The folder of the run");
  command->add_option("--length", options->how.length, "Characters to write")
    ->check(between(std::int64_t{0}, std::int64_t{100'000'000}));
  command->add_option("--prompt", options->prompt, "Text to continue; a line break where none is given")->default_str("");
  command
    ->add_option("--temperature", options->how.temperature, "0: always the likeliest character; 1: the model's probabilities")
    ->check(between(0.0, 100.0));
  command->add_option("--seed", options->how.seed, "Seed of the random draws")
    ->check(within(std::int64_t{0}, std::numeric_limits<std::int64_t>::max(), "0 or more"));
  command->footer(generate_examples);
  command->callback([options] { run_generate(*options); });
}

}  // namespace troupe::apps
