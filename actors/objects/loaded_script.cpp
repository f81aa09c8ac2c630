// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/loaded_script.hpp>

#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <utility>
#include <variant>

#include <torch/script.h>

#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::objects {

namespace {

call_reply reply_of(const std::string& method, const c10::IValue& result) {
  if (result.isNone()) return {};
  if (result.isTensor()) return {{result.toTensor()}};
  if (result.isTensorList()) return {result.toTensorVector()};
  if (result.isTuple()) {
    call_reply reply;
    for (const auto& each : result.toTupleRef().elements()) {
      if (!each.isTensor()) break;
      reply.tensors.push_back(each.toTensor());
    }
    if (reply.tensors.size() == result.toTupleRef().size()) return reply;
  }
  throw error(errc::misuse, "method '" + method + "' of a TorchScript module gives " + result.type()->str() +
                              ", expected a tensor, a tuple or list of tensors, or nothing");
}

/// A TorchScript module that peers can use through a remote_module.
class script_module : public module {
 public:
  explicit script_module(torch::jit::Module script) : script_(std::move(script)) {}

  call_reply call(const std::string& name, call_arguments& arguments) override {
    const auto method = script_.find_method(name);
    if (!method)
      throw error(errc::unknown_function, "the TorchScript module has no method '" + name + "'; it has " + methods());
    std::vector<c10::IValue> inputs(arguments.tensors.begin(), arguments.tensors.end());
    torch::jit::Kwargs named;
    for (const auto& [key, value] : arguments.values)
      named.emplace(key, std::visit([](const auto& held) { return c10::IValue(held); }, value.value));
    const std::shared_lock mode(mode_);
    return reply_of(name, (*method)(std::move(inputs), named));
  }

  named_tensors parameters() override {
    named_tensors all;
    for (const auto& each : script_.named_parameters()) all.emplace_back(each.name, each.value);
    return all;
  }

  named_tensors buffers() override {
    named_tensors all;
    for (const auto& each : script_.named_buffers()) all.emplace_back(each.name, each.value);
    return all;
  }

  void train(bool on) override {
    bool has_mode = false;
    for (const auto& each : script_.modules()) has_mode = has_mode || each._ivalue()->type()->hasAttribute("training");
    if (!has_mode)
      throw error(
        errc::misuse,
        "the TorchScript module has no training mode: it was frozen (torch.jit.freeze), or made without the attribute "
        "'training'");
    const std::lock_guard mode(mode_);
    script_.train(on);
  }

 private:
  std::string methods() const {
    std::string all;
    for (const auto& each : script_.get_methods()) support::add_quoted(all, each.name());
    return all.empty() ? "none" : all;
  }

  torch::jit::Module script_;
  std::shared_mutex mode_;  // the mode does not change while a method runs
};

}  // namespace

std::shared_ptr<module> load_script(const at::Tensor& bytes) {
  if (!bytes.defined() || bytes.scalar_type() != at::kByte || bytes.dim() != 1)
    throw error(errc::misuse,
                "expected the bytes of a TorchScript module, a uint8 tensor of one dimension, got another tensor");
  const auto whole = bytes.contiguous();
  std::istringstream in(std::string(static_cast<const char*>(whole.const_data_ptr()), static_cast<std::size_t>(whole.numel())));
  try {
    return std::make_shared<script_module>(torch::jit::load(in));
  } catch (const c10::Error& refused) {
    throw error(errc::misuse,
                std::string("the bytes are no TorchScript module that libtorch can load: ") + refused.what_without_backtrace());
  }
}

}  // namespace troupe::objects
