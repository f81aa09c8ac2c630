// SPDX-License-Identifier: BSD-3-Clause
#include "apps/weights.hpp"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>
#include <nlohmann/json.hpp>

#include <troupe/actors/state_file.hpp>
#include <troupe/actors/support/strict_json.hpp>
#include <troupe/messages/tensor_rules.hpp>

#include "apps/folder_lock.hpp"

namespace troupe::apps {

namespace {

/// The states of the part's optimizer for its parameters, as they are before the first step.
std::vector<objects::parameter_state> first_states(const objects::checkpoint_part& part) {
  const auto& kind = objects::optimizer_kind::find(part.optimizer);
  std::vector<at::Tensor> parameters;
  for (const auto& [name, tensor] : part.parameters) parameters.push_back(tensor);
  const auto fresh = kind.make(parameters, part.options);
  std::vector<objects::parameter_state> states;
  for (const auto& parameter : parameters) states.push_back(kind.state(*fresh, parameter));
  return states;
}

/// Takes the weights of a file one by one.
class weights_of_file {
 public:
  explicit weights_of_file(std::string file) : file_(std::move(file)) {
    for (auto& [name, tensor] : load_state(file_)) all_.emplace(name, tensor);
  }

  at::Tensor take(const std::string& name, const at::Tensor& there) {
    const auto found = all_.extract(name);
    if (found.empty())
      throw std::runtime_error("expected a tensor '" + name + "' in " + file_ +
                               ", which is not there or was taken already; --rename gives names");
    const auto& tensor = found.mapped();
    if (tensor.scalar_type() != there.scalar_type() || tensor.sizes() != there.sizes())
      throw std::runtime_error("expected '" + name + "' in " + file_ + " to be " + describe(there) +
                               ", as in the checkpoint, got " + describe(tensor));
    return tensor;
  }
  void expect_none_left() const {
    if (!all_.empty())
      throw std::runtime_error("expected only tensors of the checkpoint in " + file_ + ", got '" + all_.begin()->first + "'");
  }

 private:
  std::string file_;
  std::map<std::string, at::Tensor> all_;
};

}  // namespace

objects::checkpoint_part read_part(const std::string& checkpoint, const objects::checkpoint_manifest& manifest,
                                   const objects::part_entry& entry) {
  const auto path = entry.path(checkpoint);
  if (!entry.folder.empty() && !std::filesystem::exists(path))
    throw std::runtime_error("expected the part of node " + entry.node + " at " + path +
                             ", but the node keeps it in the folder " + entry.folder +
                             " of its data folder (--data-dir); copy the file from there to this path");
  return objects::read_part(path, entry.digest, manifest.save);
}

renames::renames(const std::string& path) : path_(path) {
  const auto all = support::parse_strictly(
    support::read_small_file(path, R"(names, as in {"stage1/0/weight": "layer.weight", "stage2/0/": ""})"), path);
  if (!all.is_object()) support::fail_at(path, "expected an object of texts, got " + support::shown(all));
  for (const auto& [from, to] : all.items()) {
    if (!to.is_string())
      support::fail_at(path, "expected a text as the new name of \"" + from + "\", got " + support::shown(to));
    all_.emplace(from, rename{to.get<std::string>()});
  }
}

std::string renames::operator()(const std::string& name) {
  for (auto size = name.size(); size > 0; --size) {
    if (size < name.size() && name[size - 1] != '/' && name[size - 1] != '.') continue;
    const auto found = all_.find(name.substr(0, size));
    if (found == all_.end()) continue;
    found->second.is_used = true;
    return found->second.to + name.substr(size);
  }
  return name;
}

void renames::expect_all_used() const {
  for (const auto& [from, to] : all_)
    if (!to.is_used)
      support::fail_at(
        path_, "no tensor of the checkpoint is called \"" + from +
                 "\" or begins so, or longer keys took all of them; names are <node>/<name>, and beginnings end with / or .");
}

std::size_t export_weights(const std::string& checkpoint, const std::string& file, renames names) {
  const auto manifest = objects::read_manifest(checkpoint);
  named_tensors all;
  for (const auto& entry : manifest.parts) {
    const auto part = read_part(checkpoint, manifest, entry);
    for (const auto* tensors : {&part.parameters, &part.buffers})
      for (const auto& [name, tensor] : *tensors) all.emplace_back(names(entry.node + "/" + name), tensor);
  }
  names.expect_all_used();
  save_state(file, all);
  return all.size();
}

std::size_t import_weights(const std::string& file, const std::string& checkpoint, renames names) {
  // Keeps runs from saving to the checkpoint meanwhile: the lock of a run lies beside its checkpoint. A run of this user can't
  // use a folder that this user can't write to.
  std::optional<folder_lock> lock;
  if (const auto folder = std::filesystem::canonical(checkpoint).parent_path(); ::access(folder.c_str(), W_OK) == 0)
    lock.emplace(folder, "");
  auto manifest = objects::read_manifest(checkpoint);
  weights_of_file weights(file);
  std::size_t count = 0;
  std::vector<objects::checkpoint_part> parts;
  const auto save = objects::new_save_id();
  for (const auto& entry : manifest.parts) {
    auto& part = parts.emplace_back(read_part(checkpoint, manifest, entry));
    for (auto* tensors : {&part.parameters, &part.buffers})
      for (auto& [name, tensor] : *tensors) {
        tensor = weights.take(names(entry.node + "/" + name), tensor);
        ++count;
      }
    part.states = first_states(part);
    part.save = save;
  }
  weights.expect_none_left();
  names.expect_all_used();
  std::uint64_t bytes = 0;
  for (const auto& part : parts) bytes += objects::estimated_bytes(part);
  objects::expect_disk_space(checkpoint, bytes);
  manifest.save = save;
  try {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto& entry = manifest.parts[i];
      entry.folder.clear();
      entry.file = objects::part_file_name(entry.node, save);
      entry.digest = objects::write_part(entry.path(checkpoint), parts[i]);
    }
    objects::write_manifest(checkpoint, manifest);
  } catch (...) {
    objects::remove_parts(checkpoint, save);
    throw;
  }
  return count;
}

}  // namespace troupe::apps
