// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <troupe/actors/module.hpp>
#include <troupe/actors/objects/optimizer_kind.hpp>
#include <troupe/actors/support/durable_file.hpp>
#include <troupe/messages/attributes.hpp>

/// A checkpoint is a folder: one part a node (`<node>.<save>.pt`, which torch.jit.load reads too) and `checkpoint.json`, which
/// names the parts that belong together. Everything here throws troupe::error with the file and the reason.
///   CP-1  the checkpoint of a folder is what its checkpoint.json names; it changes in one step, when that file is renamed.
///   CP-2  a save that fails or dies at any point leaves the checkpoint before it as it was.
///   CP-3  a part that is missing, damaged or of another save is refused before anything is read from it.
namespace troupe::objects {

/// What one node saves: parameters, the optimizer's state of each, buffers, and the state of the random number generator.
struct checkpoint_part {
  std::string node;
  std::string save;
  std::string optimizer;  // optimizer_settings::type
  attributes options;     // of the optimizer, all of them
  named_tensors parameters;
  std::vector<parameter_state> states;  // one for each parameter
  named_tensors buffers = {};
  at::Tensor random = {};  // random_state()

  /// True for parts of format 1, which have neither buffers nor random numbers.
  bool before_buffers() const noexcept { return buffers.empty() && !random.defined(); }
};

/// A part as the manifest names it.
struct part_entry {
  std::string node;
  std::string file;
  support::file_digest digest;
};

struct checkpoint_manifest {
  std::string save;
  std::vector<part_entry> parts;
  attributes about;

  /// The part of that node; throws an error that lists the nodes.
  const part_entry& part(const std::string& node) const;
};

/// A name for a new save: 16 hexadecimal digits.
std::string new_save_id();

/// `<node>.<save>.pt`; characters of the node's name that a file name should not have are written as %XX.
std::string part_file_name(const std::string& node, const std::string& save);

support::file_digest write_part(const std::string& path, const checkpoint_part& part);
checkpoint_part read_part(const std::string& path, const support::file_digest& expected, const std::string& save);

/// Makes this save the checkpoint of the folder, then removes the parts of other saves.
void write_manifest(const std::string& folder, const checkpoint_manifest& manifest);
checkpoint_manifest read_manifest(const std::string& folder);

/// Removes the parts of a save that failed. Never throws.
void remove_parts(const std::string& folder, const std::string& save) noexcept;

}  // namespace troupe::objects
