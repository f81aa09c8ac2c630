// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/objects/checkpoint_test.cpp, tests/actors/objects/checkpoint_disk_space_test.cpp, tests/actors/objects/part_pieces_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <troupe/actors/module.hpp>
#include <troupe/actors/objects/optimizer_kind.hpp>
#include <troupe/actors/support/durable_file.hpp>
#include <troupe/actors/support/open_folder.hpp>
#include <troupe/messages/attributes.hpp>

/// A checkpoint is a folder. It holds one part for each node (`<node>.<save>.safetensors`) and the manifest `checkpoint.json`,
/// which names the parts that belong together. A part may also lie in the data folder of its node; the manifest
/// then names the folder there. Errors are troupe::error with the file and the reason.
///   CP-1  the checkpoint of a folder is the parts that checkpoint.json names. The checkpoint changes in one step: a new
///         checkpoint.json is written under another name and then renamed.
///   CP-2  a save that fails at any point, or whose process dies, leaves the previous checkpoint as it was.
///   CP-3  a part that is missing, damaged or of another save is refused before anything is read from it.
///   CP-4  in a part, which is a file of tensors (safetensors.hpp), parameters and buffers have their own names. Names of other
///         tensors begin with `troupe:`. A part whose metadata and tensors do not belong together is refused.

namespace troupe::objects {

inline constexpr std::uint32_t checkpoint_format = 4;  // of manifests and of parts

/// What one node saves: parameters, the optimizer's state for each parameter, buffers, and the state of the random number
/// generator.
struct checkpoint_part {
  std::string node;
  std::string save;
  std::string optimizer;  // optimizer_settings::type
  attributes options;     // all options of the optimizer, or of its first parameter group
  named_tensors parameters;
  std::vector<parameter_state> states;  // one for each parameter
  named_tensors buffers = {};
  at::Tensor random = {};                 // random_state()
  std::vector<attributes> further = {};   // options of the further parameter groups
  std::vector<std::int64_t> groups = {};  // the group of each parameter; empty: there is one group
};

/// What the manifest says about a part.
struct part_entry {
  std::string node;
  std::string file;
  support::file_digest digest;
  std::string folder = {};  // path below the data folder of the node (settings::data_dir); empty: the folder of the manifest

  /// The path of the part in the folder of the manifest. If `folder` is not empty, the part is not there, but with its node.
  std::string path(const std::string& manifest_folder) const;
};

struct checkpoint_manifest {
  std::string save;
  std::vector<part_entry> parts;
  attributes about;

  /// The part of the named node; throws troupe::error with the names of all nodes if there is none.
  const part_entry& part(const std::string& node) const;
};

/// A name for a new save: 16 hexadecimal digits.
std::string new_save_id();

/// Whether the text can be the name of a save.
bool is_save_id(const std::string& text) noexcept;

/// `<node>.<save>.safetensors`. Characters of the node's name that do not belong into a file name are written as %XX: the file
/// is neither hidden nor in another folder. Throws troupe::error (misuse) for an empty name of the node, and for a save with
/// another name than is_save_id() allows.
std::string part_file_name(const std::string& node, const std::string& save);

/// Writes a part to a file (DF-1). Returns size and checksum of the file.
support::file_digest write_part(const support::file_location& location, const checkpoint_part& part);
/// Reads the part in a file. Throws if the file is not `expected`, or is of another save (CP-3).
checkpoint_part read_part(const support::file_location& location, const support::file_digest& expected,
                          const std::string& save);

/// Throws unless the digest of the file at `path` is the one that the manifest has.
void expect_digest(const std::string& path, const support::file_digest& found, const support::file_digest& expected);

/// About how many bytes write_part() writes once every parameter was stepped; rather too many than too few.
std::uint64_t estimated_bytes(const checkpoint_part& part);

/// The bytes of the file that write_part() would write, as a tensor of bytes.
at::Tensor part_bytes(const checkpoint_part& part);
support::file_digest digest_of(const at::Tensor& bytes);
/// Reads a part from the bytes of the file `path`, as read_part() does (CP-3). `path` is for errors only.
checkpoint_part parse_part(const at::Tensor& bytes, const std::string& path, const support::file_digest& expected,
                           const std::string& save);

/// Makes the save of this manifest the checkpoint of the folder, then removes the parts of other saves.
void write_manifest(const std::string& folder, const checkpoint_manifest& manifest);
checkpoint_manifest read_manifest(const std::string& folder);

/// Removes the parts of a save that failed. Never throws.
void remove_parts(const std::string& folder, const std::string& save) noexcept;
/// Removes the parts of all other saves. Never throws.
void remove_other_parts(const std::string& folder, const std::string& save) noexcept;

/// Which parts remove_own_parts() removes.
enum class own_parts { of_this_save, of_other_saves };
/// Removes parts of the node itself. Parts of other nodes in the same folder stay. Never throws.
void remove_own_parts(const support::open_folder& folder, const std::string& node, const std::string& save,
                      own_parts which) noexcept;

/// Throws troupe::error (function_failed) with the folder, the reason and what to do, unless files of `bytes` in all can be
/// written to `folder`.
///   XR-1  nothing is left on the disk: if there is no such folder, the folder in which it would be made is checked.
void expect_disk_space(const std::string& folder, std::uint64_t bytes);
/// The same for a folder that another node names. `there`: the folder, or the last one on the way to it that is there.
void expect_disk_space(const std::string& folder, const support::open_folder& there, std::uint64_t bytes);

/// The bytes of a part of a checkpoint, while the part is sent in pieces to another node or is received from there. One thread
/// at a time may use it. Errors are troupe::error (misuse).
///   PP-1  take() returns bytes only when every byte was received, once and in order.
///   PP-2  bytes of another save are refused.
class part_pieces {
 public:
  part_pieces() = default;
  /// To send these bytes.
  static part_pieces of(std::string save, at::Tensor bytes);

  /// `size` bytes from `offset` on; fewer at the end. The bytes are not copied.
  at::Tensor piece(const std::string& save, std::uint64_t offset, std::uint64_t size) const;

  /// Adds bytes. With offset 0 a new part of `total` bytes begins, and what was received before is dropped.
  void receive(const std::string& save, std::uint64_t offset, std::uint64_t total, const at::Tensor& piece);
  /// The received bytes. Nothing is kept after that.
  at::Tensor take(const std::string& save);

 private:
  std::string save_;
  at::Tensor bytes_;
  std::uint64_t received_ = 0;
};

}  // namespace troupe::objects
