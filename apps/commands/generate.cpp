// SPDX-License-Identifier: BSD-3-Clause
#include "apps/commands/generate.hpp"

#include <cstdio>
#include <memory>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "apps/charlm/checkpointed_model.hpp"
#include "apps/charlm/generation.hpp"
#include "apps/charlm/text.hpp"

namespace troupe::apps {

namespace {

struct generate_options {
  std::string out = "out/charlm";
  std::string prompt = "\n";
  charlm::generation_settings how;
};

void run_generate(const generate_options& options) {
  at::set_num_threads(1);
  auto trained = charlm::checkpointed_model::read(options.out);
  auto how = options.how;
  how.prompt = charlm::from_utf8(options.prompt);
  const auto text = charlm::generate(*trained.model, trained.state.shape, trained.words, how);
  const auto all = (options.prompt == "\n" ? "" : options.prompt) + charlm::to_utf8(text) + "\n";
  std::fwrite(all.data(), 1, all.size(), stdout);
}

constexpr const char* examples = R"(The same checkpoint, prompt, temperature and seed give the same text.

Example:
  troupe generate --prompt "You may copy" --length 500 --temperature 0.6)";

}  // namespace

void add_generate_command(CLI::App& app) {
  auto options = std::make_shared<generate_options>();
  auto* command = app.add_subcommand("generate", "Write text from a checkpoint of troupe train");
  command->add_option("--out", options->out, "The folder of the run")->capture_default_str();
  command->add_option("--length", options->how.length, "Characters to write")
    ->check(CLI::Range(std::int64_t{0}, std::int64_t{100'000'000}))->capture_default_str();
  command->add_option("--prompt", options->prompt, "Text to continue; a line break where none is given");
  command->add_option("--temperature", options->how.temperature, "0: always the likeliest character; 1: as the model says")
    ->check(CLI::Range(0.0, 100.0))->capture_default_str();
  command->add_option("--seed", options->how.seed, "Of what is drawn")->capture_default_str();
  command->footer(examples);
  command->callback([options] { run_generate(*options); });
}

}  // namespace troupe::apps
