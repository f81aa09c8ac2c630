// SPDX-License-Identifier: BSD-3-Clause
#include "apps/commands/generate.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "apps/charlm/checkpointed_model.hpp"
#include "apps/charlm/generation.hpp"
#include "apps/charlm/text.hpp"
#include "apps/command_line.hpp"
#include "apps/signals.hpp"

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

void run_generate(const generate_options& options) {
  // A signal ends the program at once. Nothing is lost, even while the checkpoint is read.
  const stop_signal stop([](int number) { _exit(128 + number); });
  at::set_num_threads(1);
  auto how = options.how;
  how.prompt = characters_of(options.prompt);
  auto trained = charlm::checkpointed_model::read(options.out);
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
  command->add_option("--out", options->out, "The folder of the run")->capture_default_str();
  command->add_option("--length", options->how.length, "Characters to write")
    ->check(between(std::int64_t{0}, std::int64_t{100'000'000}))
    ->capture_default_str();
  command->add_option("--prompt", options->prompt, "Text to continue; a line break where none is given");
  command
    ->add_option("--temperature", options->how.temperature, "0: always the likeliest character; 1: the model's probabilities")
    ->check(between(0.0, 100.0))
    ->capture_default_str();
  command->add_option("--seed", options->how.seed, "Seed of the random draws")
    ->check(within(std::int64_t{0}, std::numeric_limits<std::int64_t>::max(), "0 or more"))
    ->capture_default_str();
  command->footer(generate_examples);
  command->callback([options] { run_generate(*options); });
}

}  // namespace troupe::apps
