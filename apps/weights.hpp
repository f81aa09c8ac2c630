// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <troupe/actors/objects/checkpoint.hpp>

/// The weights of a checkpoint as one file of tensors that other programs read, and back. Functions throw std::exception with
/// the file and the reason.
namespace troupe::apps {

/// Reads a part of the checkpoint in this folder. A part that its node keeps has to be copied to this folder first.
objects::checkpoint_part read_part(const std::string& checkpoint, const objects::checkpoint_manifest& manifest,
                                   const objects::part_entry& entry);

/// Gives names of a checkpoint, `<node>/<name in its part>`, their names in the file. A key that ends with "/" or "." is the
/// beginning of names. The whole name comes before beginnings, a longer beginning before a shorter one. Names without a key
/// stay as they are.
class renames {
 public:
  renames() = default;
  /// Reads a file of JSON: `{"stage1/0/embedding": "wte", "stage2/0/": ""}`.
  explicit renames(const std::string& path);

  std::string operator()(const std::string& name);
  /// Throws std::runtime_error with the first key that no name had.
  void expect_all_used() const;

 private:
  struct rename {
    std::string to;
    bool is_used = false;
  };
  std::string path_;
  std::map<std::string, rename> all_;
};

/// Writes the parameters and buffers of all parts of the checkpoint in the folder to a file. Returns how many tensors were
/// written.
///   WX-1  if the file can't be written, an earlier file stays as it was. A checkpoint with a part that is missing or damaged
///         gives no file.
std::size_t export_weights(const std::string& checkpoint, const std::string& file, renames names = {});

/// Makes a new checkpoint in the folder: parameters and buffers are those of the file, and the optimizer begins anew with the
/// same options. Returns how many tensors were taken.
///   WX-2  a file is refused if a tensor is missing, is too much, or has another shape or dtype. Each file is refused while a
///         run uses the folder, or if the disk has too little space. The checkpoint then stays as it was.
std::size_t import_weights(const std::string& file, const std::string& checkpoint, renames names = {});

}  // namespace troupe::apps
