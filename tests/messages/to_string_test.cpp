// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <ATen/ATen.h>
#include <caf/deep_to_string.hpp>

#include <troupe/messages/errors.hpp>

#include "samples.hpp"

using namespace troupe;

BOOST_AUTO_TEST_CASE_TEMPLATE(every_message_shows_itself_and_stays_short, T, testing::message_types) {
  testing::generator random{11};
  for (int i = 0; i < 50; ++i) {
    std::string text = to_string(testing::make<T>(random));
    BOOST_TEST(text.size() > 3u);
    BOOST_TEST(text.size() < 4000u);
    BOOST_TEST(text.back() == ')');
  }
}

BOOST_AUTO_TEST_CASE(a_call_shows_shapes_and_never_elements) {
  call_request call;
  call.what = requests::function{"forward"};
  call.values = {{"width", 2}};
  call.payload.tensors = {at::full({2, 3}, 7777.0F), at::Tensor{}};
  std::string text = to_string(call);
  BOOST_TEST(text.find("function: \"forward\"") != std::string::npos, text);
  BOOST_TEST(text.find("values { name: \"width\" integer: 2 }") != std::string::npos, text);
  BOOST_TEST(text.find("[Float[2, 3], undefined]") != std::string::npos, text);
  BOOST_TEST(text.find("7777") == std::string::npos, text);
  BOOST_TEST(caf::deep_to_string(call) == text);
  call.what = requests::take{{7}, 9};
  text = to_string(call);
  BOOST_TEST(text.find("take { owner: 7 ticket: 9 }") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(long_lists_and_texts_are_cut) {
  farewell bye;
  bye.reason.assign(100000, 'x');
  BOOST_TEST(to_string(bye).size() < 200u);
  call_request call;
  call.values = {{bye.reason, bye.reason}};
  BOOST_TEST(to_string(call).size() < 400u);
  pass_aborted aborted;
  aborted.sent_to.resize(1000);
  BOOST_TEST(to_string(aborted).size() < 200u);
  BOOST_TEST(to_string(aborted).find("sent_to: 1000 in all") != std::string::npos);
  propagate_gradients gradients;
  gradients.shapes = {std::vector<std::int64_t>(1000, 7)};
  BOOST_TEST(to_string(gradients).size() < 300u);
  BOOST_TEST(to_string(gradients).find("sizes: 1000 in all") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(control_characters_are_not_shown) {
  farewell bye;
  bye.reason = "a\x1b[31m\nb";
  BOOST_TEST(to_string(bye).find("\"a\\033[31m\\nb\"") != std::string::npos, to_string(bye));
}

BOOST_AUTO_TEST_CASE(what_two_nodes_keep_to_themselves_is_not_shown) {
  memory_mark mark;
  mark.words = {77771, 77772, 77773, 77774};
  BOOST_TEST(to_string(mark) == "MemoryMark()");
  tensor_offer offer;
  offer.bytes = 5;
  offer.address = 77771;
  offer.mark = 77772;
  offer.allocation = "allocation";
  offer.event = "event";
  BOOST_TEST(to_string(offer) == "TensorOffer(bytes: 5 )");
}

BOOST_AUTO_TEST_CASE(a_failure_shows_the_text_of_its_code) {
  participant_failed failed;
  failed.code = static_cast<std::uint8_t>(errc::peer_down);
  BOOST_TEST(to_string(failed).find(to_text(errc::peer_down)) != std::string::npos);
}
