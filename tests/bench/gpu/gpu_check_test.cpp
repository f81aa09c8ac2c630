// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "bench/gpu/checks.hpp"
#include "bench/gpu/gpu_report.hpp"
#include "bench/gpu/node_programs.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_sharing.hpp"

using namespace troupe::bench;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The simulated accelerator has neither libtorch's fused LSTM cell nor its convolution.
const named_models simulated_models{{"mlp_batch_1", make_mlp_batch_1}, {"transformer_64", make_transformer_64}};

/// A process with the simulated accelerator, made while the test program has one thread.
struct other_process_of_all_tests {
  other_process_of_all_tests() {
    node.emplace([] { troupe::test::simulated::install_shared(); });
  }
  ~other_process_of_all_tests() { node.reset(); }
  static inline std::optional<other_node> node;
};

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(other_process_of_all_tests);

BOOST_AUTO_TEST_SUITE(report_of_a_gpu)

BOOST_AUTO_TEST_CASE(tensors_are_the_same_if_types_shapes_and_bits_are) {  // GR-1
  const auto nan = at::full({3}, NAN);
  BOOST_TEST(difference({nan, at::Tensor{}}, {nan.clone(), at::Tensor{}}) == "");
  BOOST_TEST(difference({at::zeros(1)}, {-at::zeros(1)}) == "tensor 0: element 0 of Float [1]");
  BOOST_TEST(difference({at::zeros(2)}, {}) == "0 tensors came, expected 1");
  BOOST_TEST(difference({at::zeros(2)}, {at::zeros({1, 2})}) == "tensor 0: Float [1, 2] came, expected Float [2]");
  BOOST_TEST(difference({at::zeros(2)}, {at::zeros(2, at::kInt)}) == "tensor 0: Int [2] came, expected Float [2]");
  BOOST_TEST(difference({at::zeros(2)}, {at::Tensor{}}) == "tensor 0: nothing came, expected Float [2]");
  auto wrong = at::zeros({5, 4}).t();
  wrong[2][3] = 1;
  BOOST_TEST(difference({at::zeros(1), at::zeros({4, 5})}, {at::zeros(1), wrong}) == "tensor 1: element 13 of Float [4, 5]");
}

BOOST_AUTO_TEST_CASE(one_difference_fails_the_report) {  // GR-1
  gpu_report report(false);
  report.same("first", {at::ones(2)}, {at::ones(2)});
  BOOST_TEST(!report.failed());
  report.same("second", {at::ones(2)}, {at::zeros(2)});
  BOOST_TEST(report.failed());
  report.same("third", {at::ones(2)}, {at::ones(2)});
  BOOST_TEST(report.failed());
  BOOST_TEST(has(report.text(), "| first | same bits |"));
  BOOST_TEST(has(report.text(), "| second | **differs**: tensor 0: element 0 of Float [2] |"));
  BOOST_TEST(has(report.text(), "2 comparisons with the same bits, 1 that differ"));
}

BOOST_AUTO_TEST_CASE(a_comparison_of_nothing_is_a_failure) {
  gpu_report report(false);
  report.same("nothing", {}, {});
  BOOST_TEST(report.failed());
}

BOOST_AUTO_TEST_CASE(a_comparison_that_could_not_be_made_is_a_failure) {
  gpu_report report(false);
  report.failure("broken", "a reason");
  BOOST_TEST(report.failed());
  BOOST_TEST(has(report.text(), "| broken | **failed**: a reason |"));
}

BOOST_AUTO_TEST_CASE(a_spoilt_comparison_differs) {  // GR-2
  gpu_report report(true);
  const auto kept = at::ones(2);
  report.same("spoilt", {at::ones(2)},
              {
                kept,
              });
  BOOST_TEST(report.failed());
  BOOST_TEST(at::equal(kept, at::ones(2)));
}

BOOST_AUTO_TEST_CASE(a_figure_below_its_bar_is_short_and_no_failure) {
  gpu_report report(false);
  report.figure("slow", "a, b", 1.1, 1.2);
  report.figure("fast", "c, d", 1.2, 1.2);
  report.skipped("rest", "no time");
  BOOST_TEST(!report.failed());
  BOOST_TEST(has(report.text(), "| slow | a, b | 1.10, **short** | 1.20 |"));
  BOOST_TEST(has(report.text(), "| fast | c, d | 1.20 | 1.20 |"));
  BOOST_TEST(has(report.text(), "| rest | skipped: no time |"));
  BOOST_TEST(has(report.text(), "1 figures reach their bars, 1 are short; 1 skipped"));
}

BOOST_AUTO_TEST_CASE(a_value_above_its_bar_is_short) {
  gpu_report report(false);
  report.at_most("slow", "a, b", 61, 60);
  report.at_most("fast", "c, d", -1, 60);
  report.note("how", "by hand");
  BOOST_TEST(!report.failed());
  BOOST_TEST(has(report.text(), "| slow | a, b | 61.00, **short** | ≤60.00 |"));
  BOOST_TEST(has(report.text(), "| fast | c, d | -1.00 | ≤60.00 |"));
  BOOST_TEST(has(report.text(), "| how | by hand |  |  |"));
}

BOOST_AUTO_TEST_CASE(each_row_is_there_as_soon_as_it_is_known) {  // GR-3
  char* written = nullptr;
  std::size_t size = 0;
  std::FILE* const live = open_memstream(&written, &size);
  gpu_report report(false, live);
  report.note("first", "a");
  BOOST_TEST(std::string(written, size) + report.counts() == report.text());
  report.same("second", {at::ones(2)}, {at::zeros(2)});
  BOOST_TEST(std::string(written, size) + report.counts() == report.text());
  std::fclose(live);
  std::free(written);
}

BOOST_FIXTURE_TEST_CASE(gradients_on_several_streams_are_compared, troupe::test::simulated::fixture) {
  gpu_report report(false);
  compare_gradients(gpu_device(first), simulated_models, true, report);
  BOOST_TEST_MESSAGE(report.text());
  BOOST_TEST(!report.failed());
  BOOST_TEST(has(report.text(), "| gradients of all models, each on a stream of its own | same bits |"));
  BOOST_TEST(has(report.text(), "| gradients of random programs on 4 streams ("));
}

BOOST_FIXTURE_TEST_CASE(wrong_gradients_on_a_device_are_found, troupe::test::simulated::fixture) {
  gpu_report report(true);
  compare_gradients(gpu_device(first), simulated_models, true, report);
  BOOST_TEST(report.failed());
  BOOST_TEST(has(report.text(), "\n0 comparisons with the same bits, "));
}

BOOST_FIXTURE_TEST_CASE(distributed_passes_on_several_streams_are_compared, troupe::test::simulated::fixture) {
  at::set_num_threads(1);
  gpu_report report(false);
  compare_nodes(gpu_device(first), true, report);
  BOOST_TEST_MESSAGE(report.text());
  BOOST_TEST(!report.failed());
  BOOST_TEST(has(report.text(), "| nodes: gradients of such passes on 4 streams (5) | same bits |"));
  BOOST_TEST(has(report.text(), "| nodes: a device map takes a tensor to the CPU, and the result back | same bits |"));
}

BOOST_FIXTURE_TEST_CASE(passes_over_two_processes_are_compared, troupe::test::simulated::fixture) {
  troupe::test::simulated::install_shared();
  at::set_num_threads(1);
  gpu_report report(false);
  compare_processes(gpu_device(first), *other_process_of_all_tests::node, true, report);
  BOOST_TEST_MESSAGE(report.text());
  BOOST_TEST(!report.failed());
  BOOST_TEST(has(report.text(), "| processes: tensors of many sizes, there and back | same bits |"));
  BOOST_TEST(
    has(report.text(), "| processes: gradients of passes with steps in two processes, on 4 streams (5) | same bits |"));
}

BOOST_FIXTURE_TEST_CASE(calls_between_two_processes_are_measured, troupe::test::simulated::fixture) {
  troupe::test::simulated::install_shared();
  gpu_report report(false);
  measure_processes(gpu_device(first), *other_process_of_all_tests::node, true, report);
  BOOST_TEST_MESSAGE(report.text());
  BOOST_TEST(has(report.text(), "| processes: how they are connected | shared memory |"));
}

BOOST_AUTO_TEST_SUITE_END()
