// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/remote_module.hpp>

#include <charconv>
#include <utility>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/remote_object.hpp>
#include <troupe/actors/support/call_scope.hpp>

namespace troupe {

namespace {

/// Pairs the tensors of the reply with the names in its value "names".
named_tensors named(const call_reply& reply) {
  const auto names = get<std::vector<std::string>>(reply.values, "names");
  if (names.size() != reply.tensors.size())
    throw error(errc::malformed_message, "an answer has " + std::to_string(reply.tensors.size()) + " tensors and " +
                                           std::to_string(names.size()) + " names");
  named_tensors result;
  for (std::size_t i = 0; i < names.size(); ++i) result.emplace_back(names[i], reply.tensors[i]);
  return result;
}

bool read_number(const std::string& text, std::size_t begin, std::size_t end, std::uint64_t& number) {
  const auto [stop, failed] = std::from_chars(text.data() + begin, text.data() + end, number);
  return failed == std::errc() && stop == text.data() + end && begin < end;
}

}  // namespace

struct remote_module::lifetime {
  std::shared_ptr<remote_object> object;  // shared with the handles that with_devices() has made
  peer by;                                // the object's node, with the device map of this handle

  const peer& where() const noexcept { return by; }
  object_id id() const noexcept { return object->id(); }
  future<call_reply> call(request what, std::vector<at::Tensor> tensors = {}, attributes values = {},
                          std::optional<wire_format> format = {}) const {
    return node_access::ask(by, std::move(what), std::move(tensors), std::move(values), id(), format);
  }
  /// Calls, and waits for the answer. In a continuation, which can't wait, throws troupe::error (misuse) and sends nothing.
  call_reply ask(request what, std::vector<at::Tensor> tensors = {}) const {
    detail::continuation_scope::refuse_to_wait();
    return call(std::move(what), std::move(tensors)).get();
  }
  /// As ask(), for a request that changes the module (OS-5).
  template <class Change>
  void change(Change what, std::vector<at::Tensor> tensors = {}) const {
    const objects::node_tether::change which(*object->tether(), id());
    what.change = which.number();
    what.first_change = which.first();
    ask(std::move(what), std::move(tensors));
  }
  void overwrite(requests::tensors of, const named_tensors& values) const {
    requests::write what{.of = of, .names = {}};
    std::vector<at::Tensor> tensors;
    for (const auto& [name, value] : values) {
      what.names.push_back(name);
      tensors.push_back(value.defined() ? value.detach() : value);
    }
    change(std::move(what), std::move(tensors));
  }
};

void add_module_type(node& here, const std::string& type, std::function<std::shared_ptr<module>(const attributes&)> make) {
  here.objects().add_module_type(type, std::move(make));
}

remote_module peer::create(const std::string& type, attributes values) const {
  detail::continuation_scope::refuse_to_wait();
  const auto reply = ask_for(requests::create_module{here_->id(), type}, {}, std::move(values)).get();
  return {*this, {id_, calls::number_from(reply.values, "object")}};
}

remote_module remote_module::accept(node& here, const std::string& reference) {
  // The reference has the form <name of the module's node>/<number of the object>/<ticket>.
  const auto second = reference.rfind('/');
  const auto first = second == std::string::npos ? second : reference.rfind('/', second - 1);
  std::uint64_t number = 0;
  std::uint64_t ticket = 0;
  if (first == std::string::npos || first == 0 || !read_number(reference, first + 1, second, number) ||
      !read_number(reference, second + 1, reference.size(), ticket))
    throw error(errc::misuse, "remote_module::accept: '" + reference + "' is not a reference that remote_module::lend gave");
  detail::continuation_scope::refuse_to_wait();
  const auto home = here.peer(reference.substr(0, first));
  const object_id id{home.id(), number};
  const support::call_scope outside;
  node_access::ask(home, requests::take{here.id(), ticket}, {}, {}, id).get();
  return {home, id};
}

std::string remote_module::lend(const peer& to) const {
  const support::call_scope outside;
  const auto reply = lifetime_->ask(requests::lend{link_of(where()).id(), to.id()});
  return where().name() + '/' + std::to_string(id().number) + '/' + std::to_string(calls::number_from(reply.values, "ticket"));
}

remote_module remote_module::select(const std::vector<std::string>& names) const {
  const support::call_scope outside;
  const auto reply = lifetime_->ask(requests::select{link_of(where()).id(), names});
  return {where(), {id().node, calls::number_from(reply.values, "object")}};
}

remote_module::remote_module(peer where, object_id id)
    : lifetime_(std::make_shared<lifetime>(lifetime{std::make_shared<remote_object>(where, id), std::move(where)})) {}

remote_module remote_module::with_devices(device_map map) const {
  return remote_module(std::make_shared<lifetime>(lifetime{lifetime_->object, where().with_devices(std::move(map))}));
}

const peer& remote_module::where() const noexcept { return lifetime_->where(); }

object_id remote_module::id() const noexcept { return lifetime_->id(); }

future<call_reply> remote_module::call(const std::string& method, std::vector<at::Tensor> tensors, attributes values,
                                       std::optional<wire_format> format) const {
  return lifetime_->call(requests::method{method}, std::move(tensors), std::move(values), format);
}

named_tensors remote_module::parameters() const { return named(lifetime_->ask(requests::read{requests::tensors::parameters})); }

at::Tensor remote_module::parameter(const std::string& name) const {
  return lifetime_->ask(requests::parameter{name}).tensor(0);
}

void remote_module::set_parameters(const named_tensors& values) const {
  lifetime_->overwrite(requests::tensors::parameters, values);
}

named_tensors remote_module::buffers() const { return named(lifetime_->ask(requests::read{requests::tensors::buffers})); }

void remote_module::set_buffers(const named_tensors& values) const { lifetime_->overwrite(requests::tensors::buffers, values); }

named_tensors remote_module::state() const { return named(lifetime_->ask(requests::read{requests::tensors::state})); }

void remote_module::set_state(const named_tensors& values) const { lifetime_->overwrite(requests::tensors::state, values); }

void remote_module::train(bool on) const {
  const support::call_scope outside;
  lifetime_->change(requests::train{.on = on});
}

named_tensors remote_module::gradients(const context& pass) const {
  require_current(pass, "remote_module::gradients");
  return named(lifetime_->ask(requests::read{requests::tensors::gradients}));
}

}  // namespace troupe
