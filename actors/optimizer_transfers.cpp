// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer_transfers.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer_shards.hpp>

namespace troupe {

namespace {

constexpr std::uint64_t piece_size = std::uint64_t{4} << 20;

/// A part on its way from another node to a file of this node.
class arriving_part {
 public:
  arriving_part(const optimizer_shards::group& from, const std::string& path, const objects::part_entry& entry)
      : from_(from), path_(path), entry_(entry), file_(path) {}

  bool complete() const noexcept { return got_ == entry_.digest.bytes; }

  future<call_reply> ask(const std::string& save) const {
    return from_.object->ask(requests::piece{save, got_, std::min(piece_size, entry_.digest.bytes - got_)});
  }

  void add(const call_reply& answer) {
    const auto bytes = answer.tensor(0).contiguous();
    const auto left = entry_.digest.bytes - got_;
    if (bytes.scalar_type() != at::kByte || bytes.nbytes() != std::min(piece_size, left))
      throw error(errc::malformed_message, "node '" + entry_.node + "' sent " + std::to_string(bytes.nbytes()) +
                                             " bytes of its part of the checkpoint, expected " +
                                             std::to_string(std::min(piece_size, left)));
    file_.write(bytes.const_data_ptr(), bytes.nbytes());
    got_ += bytes.nbytes();
  }

  void commit() {
    if (file_.commit() != entry_.digest)
      throw error(errc::function_failed, "the part of node '" + entry_.node + "' in '" + path_ +
                                           "' has another checksum than the node sent; save again");
  }

 private:
  const optimizer_shards::group& from_;
  std::string path_;
  const objects::part_entry& entry_;
  support::durable_file file_;
  std::uint64_t got_ = 0;
};

/// A part on its way from a file of this node to another node.
class leaving_part {
 public:
  leaving_part(const optimizer_shards::group& to, const std::string& path, const objects::part_entry& entry)
      : to_(to), path_(path), bytes_(entry.digest.bytes) {
    objects::expect_digest(path, support::file_digest::of(path), entry.digest);
    file_.open(path, std::ios::binary);
  }

  bool complete() const noexcept { return sent_ == bytes_; }

  future<call_reply> send(const std::string& save) {
    const auto size = std::min(piece_size, bytes_ - sent_);
    const auto piece = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
    if (!file_.read(static_cast<char*>(piece.mutable_data_ptr()), static_cast<std::streamsize>(size)))
      throw error(errc::function_failed, "can't read '" + path_ + "': it changed while it was read");
    const auto offset = std::exchange(sent_, sent_ + size);
    return to_.object->ask(requests::receive{save, offset, bytes_}, {piece});
  }

 private:
  const optimizer_shards::group& to_;
  std::string path_;
  std::ifstream file_;
  std::uint64_t bytes_;
  std::uint64_t sent_ = 0;
};

/// Moves all parts completely, with one piece of each part under way. `ask` begins to move the next piece of a part. `take`
/// gets the answer for that piece.
template <class Part, class Ask, class Take>
void in_rounds(std::vector<std::unique_ptr<Part>>& parts, Ask&& ask, Take&& take) {
  std::vector<std::pair<Part*, future<call_reply>>> asked;
  do {
    for (auto& [part, answer] : asked) take(*part, answer.get());
    asked.clear();
    for (const auto& part : parts)
      if (!part->complete()) asked.emplace_back(part.get(), ask(*part));
  } while (!asked.empty());
}

}  // namespace

void receive_parts(const optimizer_shards& shards, const std::string& folder, const objects::checkpoint_manifest& manifest) {
  std::vector<std::unique_ptr<arriving_part>> arriving;
  std::uint64_t announced = 0;
  for (const auto& one : shards.groups()) {
    const auto& part = manifest.part(one.where.name());
    const auto most = std::numeric_limits<std::uint64_t>::max() - announced;
    announced += std::min(part.digest.bytes, most);
    arriving.push_back(std::make_unique<arriving_part>(one, part.path(folder), part));
  }
  objects::expect_disk_space(folder, announced);
  in_rounds(
    arriving, [&](arriving_part& part) { return part.ask(manifest.save); },
    [](arriving_part& part, const call_reply& answer) { part.add(answer); });
  for (auto& part : arriving) part->commit();
}

void send_parts(const optimizer_shards& shards, const std::string& folder, const objects::checkpoint_manifest& manifest) {
  std::vector<std::unique_ptr<leaving_part>> leaving;
  for (const auto& one : shards.groups())
    if (const auto& part = manifest.part(one.where.name()); part.folder.empty())
      leaving.push_back(std::make_unique<leaving_part>(one, part.path(folder), part));
  in_rounds(
    leaving, [&](leaving_part& part) { return part.send(manifest.save); }, [](leaving_part&, const call_reply&) {});
}

}  // namespace troupe
