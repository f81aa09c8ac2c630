// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer_checkpoints.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer_shards.hpp>
#include <troupe/actors/optimizer_transfers.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The checkpoint's part for this node, or null if the checkpoint has none. Throws if the nodes of the checkpoint are not those
/// of the optimizer.
///   If this node has no parameters and no buffers, its name may have changed since the save. This node then loads the random
///   state of the one part that no other node of the optimizer owns. Old checkpoints without random state have no such part.
const objects::part_entry* own_part(const optimizer_shards& shards, const std::string& folder,
                                    const objects::checkpoint_manifest& manifest) {
  const auto wanted = shards.names();
  const auto& here = shards.here().name();
  std::set<std::string> there;
  const objects::part_entry* own = nullptr;
  std::size_t others = 0;
  for (const auto& part : manifest.parts) {
    there.insert(part.node);
    const bool of_another = part.node != here && wanted.contains(part.node);
    others += of_another;
    if (!of_another) own = &part;
  }
  const bool all_others = others + 1 == wanted.size();
  const bool renamed = !there.contains(here) && !shards.has_local();
  const bool fits = renamed ? there.size() - others <= 1 : wanted == there;
  if (all_others && fits) return own;
  const auto list = [](const std::set<std::string>& names) {
    std::string text;
    for (const auto& name : names) support::add_quoted(text, name);
    return text;
  };
  throw error(errc::function_failed,
              "the checkpoint in '" + folder + "' is of nodes " + list(there) + ", and this optimizer is of " + list(wanted));
}

void nothing() {}

/// Runs the clean-up `what` and drops its exceptions: the user is told how the save or load ended, not how the clean-up ended.
template <class F>
void quietly(F&& what) noexcept {
  try {
    what();
  } catch (const std::exception&) {
    // The next save or load removes what is left over.
  }
}

/// Stores which optimizer of this process uses which folder for its checkpoints. Any thread may use folder_users.
class folder_users {
 public:
  using user = std::shared_ptr<const std::string>;  // the description of the optimizer, which owns the text as long as it lives

  static folder_users& of_process() {
    static folder_users all;
    return all;
  }
  /// Returns an optimizer other than `one` that uses one of the folders. If there is none, returns null, and with `takes`
  /// records `one` as the user of the folders.
  user other_than(const user& one, const std::vector<std::string>& folders, bool takes) {
    checked_lock lock(mutex_);
    for (const auto& folder : folders)
      if (auto known = users_[folder].lock(); known != nullptr && known != one) return known;
    if (takes)
      for (const auto& folder : folders) users_[folder] = one;
    std::erase_if(users_, [](const auto& each) { return each.second.expired(); });
    return nullptr;
  }

 private:
  checked_mutex mutex_;
  std::map<std::string, std::weak_ptr<const std::string>> users_ TROUPE_GUARDED_BY(mutex_);
};

}  // namespace

/// Throws if another optimizer uses one of the folders (OK-3). Otherwise, with `takes`, records this optimizer as the user of
/// the folders.
void optimizer_checkpoints::expect_own(const std::string& node_folder, bool takes) const {
  std::error_code ignored;
  const auto here = fs::weakly_canonical(folder_, ignored);
  std::vector<std::string> folders{here.empty() ? folder_ : here.string()};
  if (!node_folder.empty())
    for (const auto& one : shards_.groups())
      folders.push_back(to_string(one.where.id()) + ": " + fs::path(node_folder).lexically_normal().string());
  const auto other = folder_users::of_process().other_than(shards_.description(), folders, takes);
  if (other == nullptr) return;
  throw error(errc::misuse,
              "the folder '" + folder_ + "'" + (node_folder.empty() ? "" : ", or '" + node_folder + "' on the nodes,") +
                " has the checkpoint of another optimizer, " + *other + "; save each optimizer to a folder of its own");
}

optimizer_checkpoints::optimizer_checkpoints(optimizer_shards& shards, const std::string& folder)
    : shards_(shards), folder_(fs::absolute(folder).lexically_normal().string()) {}

void optimizer_checkpoints::expect_disk_space(const std::string& node_folder) {
  expect_own(node_folder, false);
  std::uint64_t bytes = shards_.local().estimated_bytes();
  const auto replies = shards_.everywhere(requests::expect_disk_space{node_folder}, nothing);
  if (node_folder.empty())
    for (const auto& each : replies) bytes += calls::number_from(each.values, "bytes");
  try {
    objects::expect_disk_space(folder_, 2 * bytes);  // during a save the disk also holds the previous checkpoint
  } catch (const error& failed) {
    throw error(failed.code(), "node '" + shards_.here().name() + "': " + failed.what());
  }
}

objects::checkpoint_manifest optimizer_checkpoints::snapshot(const attributes& about, const std::string& node_folder) {
  std::error_code failed;
  expect_own(node_folder, true);
  fs::create_directories(folder_, failed);
  if (failed) throw error(errc::function_failed, "can't make the folder '" + folder_ + "': " + failed.message());
  objects::checkpoint_manifest manifest{objects::new_save_id(), {}, about};
  const auto add = [&](const std::string& node, const support::file_digest& digest, const std::string& folder) {
    manifest.parts.push_back({node, objects::part_file_name(node, manifest.save), digest, folder});
  };
  try {
    const auto& here = shards_.here().name();
    support::file_digest own;
    const auto replies =
      shards_.everywhere(requests::snapshot{manifest.save}, [&] { own = shards_.local().snapshot(here, manifest.save); });
    for (std::size_t g = 0; g < replies.size(); ++g)
      add(shards_.groups()[g].where.name(), calls::digest_from(replies[g].values), node_folder);
    add(here, own, {});
  } catch (...) {
    discard();
    throw;
  }
  return manifest;
}

void optimizer_checkpoints::write(const objects::checkpoint_manifest& manifest) {
  objects::checkpoint_manifest before;
  quietly([&] { before = objects::read_manifest(folder_); });
  try {
    write_parts(manifest);
    objects::write_manifest(folder_, manifest);
  } catch (...) {
    objects::remove_parts(folder_, manifest.save);
    discard();
    remove(manifest, false);
    throw;
  }
  discard();
  remove(manifest, true);
  remove(before, false);  // parts in other folders: an earlier save may have named other folders
}

/// Writes the part of each node, which snapshot() has put into the manifest, that of this node last.
void optimizer_checkpoints::write_parts(const objects::checkpoint_manifest& manifest) {
  const auto expect_same = [](const objects::part_entry& part, const support::file_digest& written) {
    if (written != part.digest)
      throw error(errc::function_failed, "node '" + part.node + "' has written '" + part.file +
                                           "', which is not its snapshot; run one release of troupe on all nodes");
  };
  const auto write_own = [&] {
    const auto& own = manifest.parts.back();
    expect_same(own, shards_.local().write_snapshot(own.path(folder_), manifest.save));
  };
  if (manifest.parts.front().folder.empty()) {
    receive_parts(shards_, folder_, manifest);
    return write_own();
  }
  const auto replies = shards_.everywhere(
    [&](const optimizer_shards::group& one) {
      return requests::save{manifest.save, manifest.part(one.where.name()).folder};
    },
    write_own);
  for (std::size_t g = 0; g < replies.size(); ++g) expect_same(manifest.parts[g], calls::digest_from(replies[g].values));
}

/// Removes the parts of the save, or those of all others, from the folders on the nodes that the manifest names.
void optimizer_checkpoints::remove(const objects::checkpoint_manifest& named, bool others) noexcept {
  const auto folder_on = [&](const std::string& node) {
    for (const auto& part : named.parts)
      if (part.node == node) return part.folder;
    return std::string{};
  };
  const auto lies_there = [](const objects::part_entry& part) { return !part.folder.empty(); };
  if (std::none_of(named.parts.begin(), named.parts.end(), lies_there)) return;
  quietly([&] {
    shards_.everywhere(
      [&](const optimizer_shards::group& one) {
        return requests::remove{named.save, folder_on(one.where.name()), others};
      },
      nothing);
  });
}

attributes optimizer_checkpoints::load(std::uint64_t number, bool& applies) {
  auto manifest = objects::read_manifest(folder_);
  const auto* own = own_part(shards_, folder_, manifest);
  // First all nodes read and check their parts. Then all nodes apply them.
  try {
    send_parts(shards_, folder_, manifest);
    shards_.everywhere(
      [&](const optimizer_shards::group& one) {
        const auto& part = manifest.part(one.where.name());
        const auto& digest = part.digest;
        return requests::load{manifest.save, part.folder, part.path(folder_), digest.bytes, digest.sum, support::checksum_name};
      },
      [&] {
        if (own != nullptr) shards_.local().stage(own->path(folder_), own->digest, manifest.save);
      });
  } catch (...) {
    discard();
    throw;
  }
  applies = true;
  shards_.everywhere(requests::apply{manifest.save, number}, [&] {
    if (own != nullptr) shards_.local().apply(manifest.save, {number});
  });
  quietly([&] { expect_own("", true); });  // claims the folder, unless another optimizer uses it
  return std::move(manifest.about);
}

void optimizer_checkpoints::discard() noexcept {
  shards_.local().discard();
  quietly([&] { shards_.everywhere(requests::discard{}, nothing); });
}

}  // namespace troupe
