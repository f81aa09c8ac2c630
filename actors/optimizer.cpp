// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include <troupe/actors/builtin_functions.hpp>
#include <troupe/actors/checkpoint.hpp>
#include <troupe/actors/local_optimizer.hpp>
#include <troupe/actors/object_store.hpp>
#include <troupe/actors/remote_object.hpp>
#include <troupe/engine/gradient_table.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The modules of one other node, and the optimizer over them that lives there.
struct group {
  peer where;
  std::vector<std::size_t> modules;  // places in the optimizer's list
  std::shared_ptr<remote_object> object;
  std::vector<std::size_t> counts;  // parameters of each module
};

/// Sums of squares by module, local parameters last.
using module_sums = std::vector<std::vector<double>>;

}  // namespace

struct optimizer::implementation {
  node& here;
  std::vector<remote_module> modules;  // keeps them alive
  std::vector<group> groups;           // other nodes, by first appearance
  std::vector<std::size_t> mine;       // places of modules of this node
  std::unique_ptr<local_optimizer> local;

  implementation(node& node, const optimizer_settings& settings, std::vector<remote_module> all, named_tensors local_ones);

  std::vector<call_reply> everywhere(const char* function, const std::function<attributes(const group&)>& values,
                                     const std::function<void()>& meanwhile);
  double norm(const engine::gradient_table& gradients);
  void spread(module_sums& to, const std::vector<std::size_t>& places, const std::vector<std::size_t>& counts,
              const double* sums) const;

  bool has_local() const {
    return std::any_of(local->counts().begin(), local->counts().end(), [](std::size_t n) { return n > 0; });
  }
  std::set<std::string> part_names() const;
  void load(const std::string& folder, const checkpoint_manifest& manifest);
};

optimizer::implementation::implementation(node& node, const optimizer_settings& settings, std::vector<remote_module> all,
                                          named_tensors local_ones)
    : here(node), modules(std::move(all)) {
  std::vector<std::shared_ptr<module>> own;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto& where = modules[i].where();
    if (where.id() == here.id()) {
      mine.push_back(i);
      own.push_back(here.objects().find_module(modules[i].id()));
      continue;
    }
    auto found = std::find_if(groups.begin(), groups.end(), [&](const group& one) { return one.where.id() == where.id(); });
    if (found == groups.end())
      found = groups.insert(groups.end(), group{where, {}, nullptr, {}});
    found->modules.push_back(i);
  }
  // First, so that wrong settings are refused before anything is made elsewhere.
  local = std::make_unique<local_optimizer>(settings, std::move(own), std::move(local_ones));

  std::vector<future<call_reply>> replies;
  for (const auto& one : groups) {
    attributes values{{value_names::type, settings.type}, {value_names::owner, to_attribute(here.id().value)}};
    for (const auto& [name, value] : settings.values)
      values.emplace("option." + name, value);
    for (std::size_t i = 0; i < one.modules.size(); ++i)
      values.emplace("module." + std::to_string(i), to_attribute(modules[one.modules[i]].id().number));
    replies.push_back(one.where.call("troupe.optimizer.create", {}, std::move(values)));
  }
  // The others are waited for when one fails, so that what they made is dropped with this object.
  std::exception_ptr failure;
  for (std::size_t g = 0; g < groups.size(); ++g) try {
    auto& one = groups[g];
    const auto reply = replies[g].get();
    one.object = std::make_shared<remote_object>(one.where, object_id{one.where.id(), number_from(reply.values, value_names::object)});
    for (std::size_t i = 0; i < one.modules.size(); ++i)
      one.counts.push_back(static_cast<std::size_t>(get<std::int64_t>(reply.values, "count." + std::to_string(i))));
  } catch (const std::exception&) {
    if (!failure)
      failure = std::current_exception();
  }
  if (failure)
    std::rethrow_exception(failure);
}

/// Calls the function on every other node at once, does `meanwhile` here, and waits for all, also when one fails; throws the first
/// error in the order of the nodes.
std::vector<call_reply> optimizer::implementation::everywhere(const char* function,
                                                              const std::function<attributes(const group&)>& values,
                                                              const std::function<void()>& meanwhile) {
  std::exception_ptr failure;
  std::vector<future<call_reply>> futures;
  std::vector<call_reply> replies;
  const auto attempt = [&failure](auto&& run) {
    try {
      run();
    } catch (...) {
      if (!failure)
        failure = std::current_exception();
    }
  };
  attempt([&] {
    for (const auto& one : groups)
      futures.push_back(one.object->call(function, {}, values(one)));
    meanwhile();
  });
  for (const auto& one : futures)
    attempt([&] { replies.push_back(one.get()); });
  if (failure)
    std::rethrow_exception(failure);
  return replies;
}

void optimizer::implementation::spread(module_sums& to, const std::vector<std::size_t>& places,
                                       const std::vector<std::size_t>& counts, const double* sums) const {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // What comes after a node's modules are local parameters.
    to[i < places.size() ? places[i] : modules.size()].assign(sums, sums + counts[i]);
    sums += counts[i];
  }
}

double optimizer::implementation::norm(const engine::gradient_table& gradients) {
  squared_norms own;
  const auto replies = everywhere(
    "troupe.optimizer.norm", [](const group&) { return attributes{}; }, [&] { own = local->norms(gradients); });
  const auto check = [](const std::string& parameter, const std::string& name) {
    if (!parameter.empty())
      throw error(errc::invalid_gradient, "the gradient of parameter '" + parameter + "' on node '" + name +
                                            "' is not finite; no parameter was stepped. Lower the learning rate or look for a "
                                            "division by zero");
  };
  module_sums sums(modules.size() + 1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    check(get<std::string>(replies[g].values, "not_finite"), groups[g].where.name());
    const auto& tensor = replies[g].tensors.at(0);
    spread(sums, groups[g].modules, groups[g].counts, tensor.const_data_ptr<double>());
  }
  check(own.not_finite, here.name());
  spread(sums, mine, local->counts(), own.sums.data());
  double total = 0;
  for (const auto& one : sums)
    for (const double sum : one)
      total += sum;
  return std::sqrt(total);
}

std::set<std::string> optimizer::implementation::part_names() const {
  std::set<std::string> names;
  for (const auto& one : groups)
    names.insert(one.where.name());
  if (has_local())
    names.insert(here.name());
  return names;
}

void optimizer::implementation::load(const std::string& folder, const checkpoint_manifest& manifest) {
  std::set<std::string> there;
  for (const auto& part : manifest.parts)
    there.insert(part.node);
  if (const auto wanted = part_names(); wanted != there) {
    const auto list = [](const std::set<std::string>& names) {
      std::string text;
      for (const auto& name : names)
        text += (text.empty() ? "'" : ", '") + name + "'";
      return text;
    };
    throw error(errc::function_failed, "the checkpoint in '" + folder + "' is of nodes " + list(there) +
                                         ", and this optimizer has parameters on " + list(wanted));
  }
  const auto path_of = [&](const part_entry& part) { return (fs::path(folder) / part.file).string(); };
  const attributes save{{"save", manifest.save}};
  const auto nothing = [] {};
  try {
    everywhere(
      "troupe.optimizer.load",
      [&](const group& one) {
        const auto& part = manifest.part(one.where.name());
        return attributes{{"path", path_of(part)},
                          {"save", manifest.save},
                          {"bytes", to_attribute(part.digest.bytes)},
                          {"sum", to_attribute(part.digest.sum)}};
      },
      [&] {
        if (has_local()) {
          const auto& part = manifest.part(here.name());
          local->stage(path_of(part), part.digest, manifest.save);
        }
      });
  } catch (...) {
    local->discard();
    try {
      everywhere("troupe.optimizer.discard", [](const group&) { return attributes{}; }, nothing);
    } catch (const std::exception&) {
      // The first error is the one to tell; a part that stays in memory goes with the next load.
    }
    throw;
  }
  everywhere("troupe.optimizer.apply", [&](const group&) { return save; }, [&] {
    if (has_local())
      local->apply(manifest.save);
  });
}

optimizer::optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, named_tensors local)
    : implementation_(std::make_unique<implementation>(here, options, std::move(modules), std::move(local))) {}

optimizer::~optimizer() = default;

std::optional<double> optimizer::step(const context& pass, std::optional<double> clip_norm) {
  require_current(pass, "optimizer::step");
  if (clip_norm && !(*clip_norm > 0))
    throw error(errc::misuse, "optimizer::step: clip_norm is " + std::to_string(*clip_norm) + ", expected a number above 0");
  auto& all = *implementation_;
  const auto gradients = pass.gradients();
  std::optional<double> norm;
  double scale = 1;
  if (clip_norm) {
    norm = all.norm(*gradients);
    scale = std::min(1.0, *clip_norm / (*norm + 1e-6));
  }
  all.everywhere(
    "troupe.optimizer.step", [&](const group&) { return attributes{{"scale", scale}}; },
    [&] { all.local->step(*gradients, scale); });
  return norm;
}

void optimizer::set_learning_rate(double rate) {
  auto& all = *implementation_;
  all.everywhere(
    "troupe.optimizer.set_rate", [&](const group&) { return attributes{{"rate", rate}}; },
    [&] { all.local->set_learning_rate(rate); });
}

void optimizer::save(const std::string& folder, const attributes& about) {
  auto& all = *implementation_;
  const auto where = fs::absolute(folder).lexically_normal();
  std::error_code failed;
  fs::create_directories(where, failed);
  if (failed)
    throw error(errc::function_failed, "can't make the folder '" + where.string() + "': " + failed.message());
  checkpoint_manifest manifest{new_save_id(), {}, about};
  const auto entry_for = [&](const std::string& node) {
    return part_entry{node, part_file_name(node, manifest.save), {}};
  };
  const auto path_of = [&](const part_entry& part) { return (where / part.file).string(); };
  try {
    auto own = entry_for(all.here.name());
    const auto replies = all.everywhere(
      "troupe.optimizer.save",
      [&](const group& one) {
        return attributes{{"path", path_of(entry_for(one.where.name()))}, {"save", manifest.save}};
      },
      [&] {
        if (all.has_local())
          own.digest = all.local->save(path_of(own), own.node, manifest.save);
      });
    for (std::size_t g = 0; g < replies.size(); ++g) {
      manifest.parts.push_back(entry_for(all.groups[g].where.name()));
      manifest.parts.back().digest = {number_from(replies[g].values, "bytes"), number_from(replies[g].values, "sum")};
    }
    if (all.has_local())
      manifest.parts.push_back(std::move(own));
    write_manifest(where.string(), manifest);
  } catch (...) {
    remove_parts(where.string(), manifest.save);
    throw;
  }
}

attributes optimizer::load(const std::string& folder) {
  const auto where = fs::absolute(folder).lexically_normal().string();
  auto manifest = read_manifest(where);
  implementation_->load(where, manifest);
  return std::move(manifest.about);
}

}  // namespace troupe
