// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <torch/nn/modules/linear.h>

#include <troupe/troupe.hpp>

/// The half of the model that is on the stage.
class encoder : public troupe::module {
 public:
  explicit encoder(const troupe::attributes& values)
      : layer_(troupe::get<std::int64_t>(values, "inputs"), troupe::get<std::int64_t>(values, "width")) {}

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method != "forward") throw std::invalid_argument("expected the method 'forward', got '" + method + "'");
    return {{torch::tanh(layer_->forward(arguments.tensor(0)))}};
  }

  troupe::named_tensors parameters() override { return {{"weight", layer_->weight}, {"bias", layer_->bias}}; }

 private:
  torch::nn::Linear layer_;
};

/// Lets other nodes create encoders on this node.
inline void add_encoder(troupe::node& here) {
  troupe::add_module_type(here, "encoder", [](auto& values) { return std::make_shared<encoder>(values); });
}
