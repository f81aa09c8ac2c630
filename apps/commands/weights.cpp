// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/cli_test.cpp
#include "apps/weights.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "apps/commands/commands.hpp"

namespace troupe::apps {

namespace {

struct weights_options {
  std::string checkpoint;
  std::string file;
  std::string rename;

  renames names() const { return rename.empty() ? renames() : renames(rename); }
};

constexpr const char* rename_help =
  "A file of JSON with other names for tensors, which are called NODE/NAME otherwise. A key that ends with / or . stands for "
  "the beginning of names";

constexpr const char* export_examples = R"(Python reads the file: safetensors.torch.load_file("model.safetensors").

Example:
  troupe export out/charlm/checkpoint --to model.safetensors --rename names.json

where names.json has, for two nodes with a module each:
  {"stage1/0/": "lower.", "stage2/0/": "upper."})";

constexpr const char* import_examples =
  R"(The checkpoint says which tensors there are, and on which nodes. Its optimizer begins anew with the options that it has.
Steps and random numbers stay those of the checkpoint. Stop a run that uses the folder first. A part that a node keeps in its
data folder has to be copied to the checkpoint's folder first.

Example:
  troupe import model.safetensors --to out/charlm/checkpoint --rename names.json)";

}  // namespace

void add_weights_commands(CLI::App& app) {
  auto options = std::make_shared<weights_options>();
  auto* out =
    app.add_subcommand("export", "Write the weights of a checkpoint to one file that other programs read (safetensors)");
  out->add_option("CHECKPOINT", options->checkpoint, "The folder with checkpoint.json")->type_name("")->required();
  out->add_option("--to", options->file, "The file to write; a file there is replaced")->type_name("FILE")->required();
  out->add_option("--rename", options->rename, rename_help)->type_name("FILE");
  out->footer(export_examples);
  out->callback([options] {
    const auto count = export_weights(options->checkpoint, options->file, options->names());
    std::printf("%s: %zu tensors of %s\n", options->file.c_str(), count, options->checkpoint.c_str());
  });

  auto* in = app.add_subcommand("import", "Put the weights of a file (safetensors) into a checkpoint of the same model");
  in->add_option("FILE", options->file, "The file with the weights")->type_name("")->required();
  in->add_option("--to", options->checkpoint, "The folder with checkpoint.json; its checkpoint is replaced")
    ->type_name("CHECKPOINT")
    ->required();
  in->add_option("--rename", options->rename, rename_help)->type_name("FILE");
  in->footer(import_examples);
  in->callback([options] {
    const auto count = import_weights(options->file, options->checkpoint, options->names());
    std::printf("%s: %zu tensors of %s\n", options->checkpoint.c_str(), count, options->file.c_str());
  });
}

}  // namespace troupe::apps
