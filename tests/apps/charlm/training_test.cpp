// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/training.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <stdexcept>
#include <string>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <troupe/actors/node.hpp>
#include <troupe/actors/remote_module.hpp>

#include "apps/charlm/stage_module.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps::charlm;
using namespace troupe::apps::test;

namespace {

constexpr const char* spoilt = "block1.down_weight";

/// A stage that makes the gradient of one parameter wrong in the last bits.
class spoilt_stage : public troupe::module {
 public:
  explicit spoilt_stage(const troupe::attributes& values)
      : position_{troupe::get<std::int64_t>(values, "stage"), troupe::get<std::int64_t>(values, "stages")},
        stage_(std::make_shared<stage>(model_shape::from_attributes(values), position_,
                                       static_cast<std::uint64_t>(troupe::get<std::int64_t>(values, "seed")))),
        module_(make_stage_module(stage_, position_)) {
    for (auto& each : stage_->named_parameters())
      if (each.key() == spoilt) each.value().register_hook([](const at::Tensor& gradient) { return gradient * (1 + 0x1p-23); });
  }

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    return module_->call(method, arguments);
  }

  troupe::named_tensors parameters() override { return module_->parameters(); }

 private:
  stage_position position_;
  std::shared_ptr<stage> stage_;
  std::shared_ptr<troupe::module> module_;
};

troupe::settings named(const std::string& name) {
  troupe::settings options;
  options.name = name;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(gradients_that_differ_from_one_process_end_the_run_by_the_name_of_their_parameter) {  // TN-4
  at::set_num_threads(1);
  const temporary_folder folder;
  troupe::node first{named("first")};
  troupe::apps::charlm::add_stage_type(first);
  troupe::node second{named("second")};
  troupe::add_module_type(second, stage_type, [](const auto& values) { return std::make_shared<spoilt_stage>(values); });

  std::string text;
  for (int line = 0; text.size() < 20'000; ++line) text += "line " + std::to_string(line) + "\n";
  train_options options;
  options.data = folder.write("text.txt", text);
  options.out = folder.path() / "run";
  options.shape = {.vocabulary = 0, .blocks = 2, .width = 16, .heads = 2, .context = 16};
  options.how.batch = 8;
  options.how.micro_batches = 4;
  options.steps = 5;
  options.single_process_seconds = 0;
  options.trace = false;
  options.cluster = folder.write("cluster.json", R"({"nodes": [{"name": "first", "port": )" + std::to_string(first.port()) +
                                                   R"(}, {"name": "second", "port": )" + std::to_string(second.port()) + "}]}");
  const troupe::apps::stop_signal stop;
  BOOST_CHECK_EXCEPTION(train(options, stop), std::runtime_error,
                        says({"step 1, second: the gradient of " + std::string(spoilt) + " differs"}));
}
