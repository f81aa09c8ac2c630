// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/remote_module.hpp>

#include <utility>

#include <troupe/actors/builtin_functions.hpp>
#include <troupe/actors/object_store.hpp>
#include <troupe/actors/remote_object.hpp>

namespace troupe {

namespace {

/// The reply's tensors under the names that came with them.
named_tensors named(const call_reply& reply) {
  named_tensors result;
  for (std::size_t i = 0; i < reply.tensors.size(); ++i)
    result.emplace_back(get<std::string>(reply.values, std::to_string(i)), reply.tensors[i]);
  return result;
}

}  // namespace

struct remote_module::lifetime : remote_object {
  using remote_object::remote_object;
};

void add_module_type(node& here, const std::string& type, std::function<std::shared_ptr<module>(const attributes&)> make) {
  here.objects().add_module_type(type, std::move(make));
}

remote_module peer::create(const std::string& type, attributes values) const {
  values[value_names::type] = type;
  values[value_names::owner] = to_attribute(here_->id().value);
  const auto reply = call("troupe.create", {}, std::move(values)).get();
  return {*this, {id_, number_from(reply.values, value_names::object)}};
}

remote_module::remote_module(peer where, object_id id) : lifetime_(std::make_shared<lifetime>(std::move(where), id)) {}

const peer& remote_module::where() const noexcept { return lifetime_->where(); }

object_id remote_module::id() const noexcept { return lifetime_->id(); }

future<call_reply> remote_module::call(const std::string& method, std::vector<at::Tensor> tensors, attributes values) const {
  values[value_names::method] = method;
  return lifetime_->call("troupe.method", std::move(tensors), std::move(values));
}

named_tensors remote_module::parameters() const { return named(lifetime_->call("troupe.parameters").get()); }

void remote_module::set_parameters(const named_tensors& values) const {
  std::vector<at::Tensor> tensors;
  attributes names;
  for (const auto& [name, value] : values) {
    names.emplace(std::to_string(tensors.size()), name);
    tensors.push_back(value.defined() ? value.detach() : value);
  }
  lifetime_->call("troupe.set_parameters", std::move(tensors), std::move(names)).get();
}

named_tensors remote_module::gradients(const context& pass) const {
  require_current(pass, "remote_module::gradients");
  return named(lifetime_->call("troupe.gradients").get());
}

}  // namespace troupe
