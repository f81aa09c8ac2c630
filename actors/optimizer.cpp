// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer_parts.hpp>
#include <troupe/actors/support/quoted_names.hpp>
#include <troupe/engine/gradient_table.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// Records in the node's trace how long the scope took.
class traced {
 public:
  traced(node& here, const char* what) : here_(here), what_(what), begin_(now()) {}
  ~traced() { here_.trace(what_, "optimizer", begin_, now()); }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;

 private:
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

  node& here_;
  const char* what_;
  std::int64_t begin_;
};

/// The checkpoint's part for this node, or null if the checkpoint has none. Throws if the checkpoint is of other nodes than the
/// optimizer.
///   If this node has no parameters and no buffers, its name may have changed since the save. This node then loads the random
///   state of the one part that no other node of the optimizer owns. Old checkpoints without random state have no such part.
const objects::part_entry* own_part(const optimizer_parts& parts, const std::string& folder,
                                    const objects::checkpoint_manifest& manifest) {
  const auto wanted = parts.names();
  const auto& here = parts.here().name();
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
  const bool renamed = !there.contains(here) && !parts.has_local();
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

/// First all nodes read and check their parts. Then all nodes apply them.
void load_parts(optimizer_parts& parts, const std::string& folder, const objects::checkpoint_manifest& manifest) {
  const auto* own = own_part(parts, folder, manifest);
  const auto path_of = [&](const objects::part_entry& part) { return (fs::path(folder) / part.file).string(); };
  const attributes save{{"save", manifest.save}};
  const auto nothing = [] {};
  try {
    parts.everywhere(
      "troupe.optimizer.load",
      [&](const optimizer_parts::group& one) {
        const auto& part = manifest.part(one.where.name());
        auto values = calls::to_attributes(part.digest);
        values.emplace("path", path_of(part));
        values.emplace("save", manifest.save);
        return values;
      },
      [&] {
        if (own != nullptr) parts.local().stage(path_of(*own), own->digest, manifest.save);
      });
  } catch (...) {
    parts.local().discard();
    try {
      parts.everywhere(
        "troupe.optimizer.discard", [](const optimizer_parts::group&) { return attributes{}; }, nothing);
    } catch (const std::exception&) {
      // The first error is reported. A part that could not be discarded stays in memory until the next load.
    }
    throw;
  }
  parts.everywhere(
    "troupe.optimizer.apply", [&](const optimizer_parts::group&) { return save; },
    [&] {
      if (own != nullptr) parts.local().apply(manifest.save);
    });
}

/// Throws unless the context is open on this thread and a pass of the context has completed. Throws also while a pass runs,
/// because some nodes would step with the gradients of that pass, and other nodes without them.
void require_settled(const context& pass, const char* who) {
  require_current(pass, who);
  if (pass.running())
    throw error(errc::misuse,
                std::string(who) + ": a backward pass of the context is still running; wait for its future (get) first");
  if (!pass.has_completed_pass())
    throw error(errc::misuse, std::string(who) +
                                ": no backward pass of the context has completed, so it has no gradients; run "
                                "context.backward(...).get() first");
}

}  // namespace

struct optimizer::implementation {
  optimizer_parts parts;
  std::optional<double> new_rate = {};  // a rate that the nodes do not have yet: the next step or save sends it
  bool gathered = false;                // whether gradients were gathered since the last step

  void tell_rate() {
    if (!new_rate) return;
    parts.everywhere(
      "troupe.optimizer.set_rate",
      [&](const optimizer_parts::group&) {
        return attributes{{"rate", *new_rate}};
      },
      [&] { parts.local().set_learning_rate(*new_rate); });
    new_rate.reset();
  }

  /// Steps with `gradients` on this node and with the gradients of the context on the other nodes. If `gradients` is null,
  /// steps with the gathered gradients.
  std::optional<double> step(const engine::gradient_table* gradients, std::optional<double> clip_norm) {
    if (clip_norm && !(*clip_norm > 0))
      throw error(errc::misuse, "optimizer::step: clip_norm is " + std::to_string(*clip_norm) + ", expected a number above 0");
    if (gradients == nullptr && !gathered)
      throw error(errc::misuse,
                  "optimizer::step: no context was gathered since the last step; call gather(context), or step(context)");
    const traced span(parts.here(), "optimizer.step");
    std::optional<double> norm;
    double scale = 1;
    if (clip_norm) {
      norm = parts.norm(gradients);
      scale = std::min(1.0, *clip_norm / (*norm + 1e-6));
    }
    attributes values{{"scale", scale}};
    if (new_rate) values["rate"] = *new_rate;
    parts.everywhere(
      gradients ? "troupe.optimizer.step" : "troupe.optimizer.gathered_step",
      [&](const optimizer_parts::group&) { return values; },
      [&] {
        auto& local = parts.local();
        if (new_rate) local.set_learning_rate(*new_rate);
        gradients ? local.step(*gradients, scale) : local.gathered_step(scale);
      });
    new_rate.reset();
    return norm;
  }

  /// Runs `what`. If `what` throws, all nodes that can be reached forget their gathered gradients.
  template <class F>
  auto forgetting(F&& what) {
    try {
      return what();
    } catch (...) {
      gathered = false;
      try {
        parts.everywhere(
          "troupe.optimizer.forget", [](const optimizer_parts::group&) { return attributes{}; },
          [&] { parts.local().forget_gathered(); });
      } catch (const std::exception&) {
        // The first error is reported.
      }
      throw;
    }
  }
};

optimizer::optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, named_tensors local,
                     named_tensors local_buffers)
    : implementation_(
        new implementation{.parts = {here, options, std::move(modules), std::move(local), std::move(local_buffers)}}) {}

optimizer::~optimizer() = default;

std::optional<double> optimizer::step(const context& pass, std::optional<double> clip_norm) {
  require_settled(pass, "optimizer::step");
  return implementation_->step(pass.gradients().get(), clip_norm);
}

void optimizer::gather(const context& pass) {
  require_settled(pass, "optimizer::gather");
  auto& parts = implementation_->parts;
  implementation_->forgetting([&] {
    parts.everywhere(
      "troupe.optimizer.gather", [](const optimizer_parts::group&) { return attributes{}; },
      [&] { parts.local().gather(*pass.gradients()); });
  });
  implementation_->gathered = true;
}

std::optional<double> optimizer::step(std::optional<double> clip_norm) {
  auto norm = implementation_->forgetting([&] { return implementation_->step(nullptr, clip_norm); });
  implementation_->gathered = false;
  return norm;
}

void optimizer::set_learning_rate(double rate) {
  objects::check_learning_rate(rate);
  implementation_->new_rate = rate;
}

void optimizer::save(const std::string& folder, const attributes& about) {
  auto& all = implementation_->parts;
  const traced span(all.here(), "optimizer.save");
  implementation_->tell_rate();
  const auto where = fs::absolute(folder).lexically_normal();
  std::error_code failed;
  fs::create_directories(where, failed);
  if (failed) throw error(errc::function_failed, "can't make the folder '" + where.string() + "': " + failed.message());
  objects::checkpoint_manifest manifest{objects::new_save_id(), {}, about};
  const auto entry_for = [&](const std::string& node) {
    return objects::part_entry{node, objects::part_file_name(node, manifest.save), {}};
  };
  const auto path_of = [&](const objects::part_entry& part) { return (where / part.file).string(); };
  try {
    auto own = entry_for(all.here().name());
    const auto replies = all.everywhere(
      "troupe.optimizer.save",
      [&](const optimizer_parts::group& one) {
        return attributes{{"path", path_of(entry_for(one.where.name()))}, {"save", manifest.save}};
      },
      [&] { own.digest = all.local().save(path_of(own), own.node, manifest.save); });
    for (std::size_t g = 0; g < replies.size(); ++g) {
      manifest.parts.push_back(entry_for(all.groups()[g].where.name()));
      manifest.parts.back().digest = calls::digest_from(replies[g].values);
    }
    manifest.parts.push_back(std::move(own));
    objects::write_manifest(where.string(), manifest);
  } catch (...) {
    objects::remove_parts(where.string(), manifest.save);
    throw;
  }
}

attributes optimizer::load(const std::string& folder) {
  const auto where = fs::absolute(folder).lexically_normal().string();
  auto manifest = objects::read_manifest(where);
  load_parts(implementation_->parts, where, manifest);
  implementation_->new_rate.reset();
  return std::move(manifest.about);
}

}  // namespace troupe
