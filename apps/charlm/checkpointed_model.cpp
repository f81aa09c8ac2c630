// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/checkpointed_model.hpp"

#include <filesystem>
#include <sstream>
#include <stdexcept>

#include <troupe/actors/objects/checkpoint.hpp>

#include "apps/charlm/gradient_check.hpp"
#include "apps/charlm/model.hpp"
#include "apps/charlm/text.hpp"

namespace troupe::apps::charlm {

namespace {

/// The parameter's name without the prefix that an optimizer writes: "<index of the module on its node>/<parameter>". The
/// index is 0, because each node has one stage.
std::string parameter_name(const std::string& in_checkpoint) {
  constexpr const char* prefix = "0/";
  if (in_checkpoint.rfind(prefix, 0) != 0)
    throw std::runtime_error("expected a parameter of one stage, called 0/..., but got " + in_checkpoint);
  return in_checkpoint.substr(2);
}

}  // namespace

checkpointed_model checkpointed_model::read(const std::string& folder) {
  namespace fs = std::filesystem;
  const auto checkpoint = fs::path(folder) / "checkpoint";
  if (!fs::exists(checkpoint / "checkpoint.json"))
    throw std::runtime_error("expected a checkpoint in " + checkpoint.string() +
                             ", but there is none; train first (troupe train), or name the folder of a run with --out");
  const auto manifest = objects::read_manifest(checkpoint);
  auto state = run_state::from_attributes(manifest.about, checkpoint);
  std::vector<named_tensors> stages;
  std::istringstream nodes(state.nodes);
  for (std::string name; std::getline(nodes, name, ',');) {
    const auto& entry = manifest.part(name);
    const auto path = entry.path(checkpoint);
    if (!entry.folder.empty() && !fs::exists(path))
      throw std::runtime_error("expected the part of node " + name + " at " + path + ", but the node keeps it in the folder " +
                               entry.folder + " of its data folder (--data-dir); copy the file from there to this path");
    const auto part = objects::read_part(path, entry.digest, manifest.save);
    if (!part.buffers.empty())
      throw std::runtime_error("expected stages without buffers, but in " + checkpoint.string() + " node " + name + " has " +
                               part.buffers.front().first);
    auto& parameters = stages.emplace_back();
    for (const auto& [in_checkpoint, value] : part.parameters) parameters.emplace_back(parameter_name(in_checkpoint), value);
  }
  auto model = std::make_shared<whole_model>(state.shape, state.stages, state.how.seed);
  copy_parameters(stages, *model);
  return {state, vocabulary{from_utf8(state.characters)}, std::move(model)};
}

}  // namespace troupe::apps::charlm
