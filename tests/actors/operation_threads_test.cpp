// SPDX-License-Identifier: BSD-3-Clause
// libtorch's kernels, and the libraries that they call, keep for each thread the number of threads to use inside one operation.
// The bits of a result depend on this number: a product of large matrices is summed in another order.
#include <dlfcn.h>

#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <atomic>

#include <ATen/Parallel.h>

#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

namespace {

using troupe::call_arguments;
using troupe::call_reply;
using troupe::test::loopback_settings;

/// Asks OpenMP how many threads a library would use inside an operation on this thread. Null without OpenMP.
int (*const omp_threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));

/// Sets another number of threads than the default, until the nodes of the test have stopped.
struct other_number {
  other_number() { at::set_num_threads(before + 3); }
  ~other_number() { at::set_num_threads(before); }

  const int before = at::get_num_threads();
};

struct other_number_on_nodes : other_number {
  troupe::node a{loopback_settings("a")};
  troupe::node b{loopback_settings("b")};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(operation_threads, *boost::unit_test::precondition([](auto) {
                        return boost::test_tools::assertion_result(omp_threads != nullptr);
                      }))

BOOST_FIXTURE_TEST_CASE(calls_and_passes_use_as_many_threads_in_an_operation_as_the_process, other_number_on_nodes) {
  std::atomic<int> in_call = 0;
  std::atomic<int> in_pass = 0;
  b.functions().add("twice", [&](call_arguments& arguments) {
    in_call = omp_threads();
    auto result = arguments.tensors.at(0) * 2;
    result.register_hook([&](const at::Tensor&) { in_pass = omp_threads(); });
    return call_reply{{result}};
  });
  a.join("127.0.0.1", b.port());
  const auto x = at::ones({2}).requires_grad_();
  troupe::context scope{a};
  scope.backward({a.peer("b").call("twice", {x}).get().tensors.at(0).sum()}).get();
  BOOST_TEST(in_call == before + 3);
  BOOST_TEST(in_pass == before + 3);
}

BOOST_AUTO_TEST_SUITE_END()
