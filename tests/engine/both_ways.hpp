// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "support/collected_warnings.hpp"

namespace troupe::test {

/// One way to run passes: with libtorch's functions, or with troupe's own.
class way {
 public:
  using tensors = std::vector<at::Tensor>;

  explicit way(bool is_troupes) : is_troupes_(is_troupes) {}

  void backward(const tensors& roots, const tensors& gradients = {}, bool keep_graph = false, bool create_graph = false,
                const tensors& inputs = {}) const;
  tensors grad(const tensors& roots, const tensors& inputs, const tensors& gradients = {}, bool keep_graph = false,
               bool create_graph = false, bool allow_unused = false) const;

  void queue_callback(std::function<void()> callback) const;
  bool is_checkpoint_valid() const;
  bool keeps_graph() const;
  bool is_in_a_pass() const;
  /// The name of the function that runs, or "none".
  std::string current_function() const;
  /// functions(): the names of the functions in the pass, sorted. order(): the names of the functions that run, in order.
  std::vector<std::string> functions() const;
  std::vector<std::string> order() const;

  bool is_troupes() const { return is_troupes_; }

 private:
  bool is_troupes_;
};

/// What `run` returns with libtorch's functions and with troupe's.
struct both_traces {
  std::vector<std::string> libtorch;
  std::vector<std::string> troupe;
};
both_traces both_ways(const std::function<std::vector<std::string>(const way&)>& run);

/// Throws for each warning of this thread, as Python does if warnings are errors.
class throwing_warnings final : public c10::WarningHandler {
 public:
  struct thrown final : std::exception {};

  throwing_warnings() : guard_(this) {}
  void process(const c10::Warning&) override { throw thrown{}; }

 private:
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace troupe::test

/// Runs `run` both ways and expects equal traces with `entries` entries.
#define TROUPE_TEST_BOTH_WAYS(run, entries)                                       \
  do {                                                                            \
    const auto found = troupe::test::both_ways(run);                              \
    BOOST_TEST(found.libtorch.size() == static_cast<std::size_t>(entries));       \
    BOOST_TEST(found.troupe == found.libtorch, boost::test_tools::per_element()); \
  } while (false)
