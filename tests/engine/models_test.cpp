// SPDX-License-Identifier: BSD-3-Clause
#include <torch/torch.h>

#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>

#include "engine/oracle.hpp"
#include "engine/threads.hpp"

using namespace troupe::test;
namespace nn = torch::nn;

BOOST_AUTO_TEST_SUITE(models)

namespace {

template <class Loss>
void compare(const std::vector<at::Tensor>& leaves, Loss loss) {
  torch::autograd::backward({loss()}, {});
  const auto expected = gradients_of(leaves);
  clear_gradients(leaves);
  troupe::backward({loss()});
  BOOST_TEST(difference(gradients_of(leaves), expected) == "");
  threads workers(2);
  for (int round = 0; round < 2; ++round) {  // the first round learns which functions are large: all
    clear_gradients(leaves);
    troupe::backward({loss()}, {}, {.workers = &workers});
    BOOST_TEST(difference(gradients_of(leaves), expected) == "", "with workers");
  }
  BOOST_TEST(std::all_of(expected.begin(), expected.end(), [](const at::Tensor& g) { return g.defined(); }));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_multi_layer_perceptron) {
  nn::Sequential model(nn::Linear(10, 32), nn::ReLU(), nn::LayerNorm(nn::LayerNormOptions({32})), nn::Linear(32, 32),
                       nn::GELU(), nn::Linear(32, 4));
  const auto x = torch::randn({8, 10});
  const auto target = torch::randint(4, {8});
  compare(model->parameters(), [&] { return nn::functional::cross_entropy(model->forward(x), target); });
}

BOOST_AUTO_TEST_CASE(a_recurrent_network_over_twenty_steps) {
  nn::LSTM model(nn::LSTMOptions(6, 12).num_layers(2).bidirectional(true));
  const auto x = torch::randn({20, 3, 6});
  compare(model->parameters(), [&] { return std::get<0>(model->forward(x)).pow(2).sum(); });
}

BOOST_AUTO_TEST_CASE(a_gated_recurrent_network_of_two_layers) {
  nn::GRU model(nn::GRUOptions(5, 9).num_layers(2).batch_first(true));
  const auto x = torch::randn({3, 15, 5});
  compare(model->parameters(), [&] {
    const auto [outputs, state] = model->forward(x);
    return outputs.tanh().sum() + state.pow(2).sum();
  });
}

BOOST_AUTO_TEST_CASE(a_cell_unrolled_by_hand_shares_its_weights) {
  nn::GRUCell cell(nn::GRUCellOptions(5, 7));
  const auto x = torch::randn({30, 2, 5});
  compare(cell->parameters(), [&] {
    auto state = torch::zeros({2, 7});
    auto loss = torch::zeros({});
    for (int i = 0; i < 30; ++i) {
      state = cell->forward(x[i], state);
      loss = loss + state.pow(2).mean();
    }
    return loss;
  });
}

BOOST_AUTO_TEST_CASE(a_convolutional_network) {
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Conv2d(nn::Conv2dOptions(8, 8, 3).groups(2)), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                       nn::Linear(8, 5));
  const auto x = torch::randn({4, 3, 12, 12});
  const auto target = torch::randint(5, {4});
  compare(model->parameters(), [&] { return nn::functional::cross_entropy(model->forward(x), target); });
}

BOOST_AUTO_TEST_CASE(a_convolution_with_weights_in_channels_last) {
  nn::Conv2d layer(nn::Conv2dOptions(4, 4, 3));
  layer->weight.set_data(layer->weight.contiguous(at::MemoryFormat::ChannelsLast));
  const auto x = torch::randn({2, 4, 8, 8});
  compare(layer->parameters(), [&] { return layer->forward(layer->forward(x)).pow(2).sum(); });
}

BOOST_AUTO_TEST_CASE(a_transformer_block_with_tied_embeddings) {
  nn::Embedding embedding(11, 16);
  nn::TransformerEncoderLayer block(nn::TransformerEncoderLayerOptions(16, 4).dim_feedforward(32).dropout(0));
  auto leaves = block->parameters();
  leaves.push_back(embedding->weight);
  const auto tokens = torch::randint(11, {7, 2});
  compare(leaves, [&] {
    const auto logits = torch::matmul(block->forward(embedding->forward(tokens)), embedding->weight.t());
    return nn::functional::cross_entropy(logits.flatten(0, 1), tokens.flatten());
  });
}

BOOST_AUTO_TEST_CASE(an_embedding_with_sparse_gradients_used_twice) {
  nn::Embedding embedding(nn::EmbeddingOptions(50, 8).sparse(true));
  const auto first = torch::randint(50, {6});
  const auto second = torch::randint(50, {3});
  compare({embedding->weight}, [&] { return embedding->forward(first).sum() + embedding->forward(second).pow(2).sum(); });
  BOOST_TEST(embedding->weight.grad().is_sparse());
}

BOOST_AUTO_TEST_CASE(attention_in_bfloat16) {
  const auto q = torch::randn({2, 4, 8, 16}, torch::kBFloat16).requires_grad_();
  const auto k = torch::randn({2, 4, 8, 16}, torch::kBFloat16).requires_grad_();
  const auto v = torch::randn({2, 4, 8, 16}, torch::kBFloat16).requires_grad_();
  compare({q, k, v}, [&] { return at::scaled_dot_product_attention(q, k, v, {}, 0, true).pow(2).sum(); });
}

BOOST_AUTO_TEST_CASE(ten_steps_of_training_end_in_the_same_weights) {
  const auto train = [](auto&& backward) {
    torch::manual_seed(7);
    nn::Sequential model(nn::Linear(4, 16), nn::Tanh(), nn::Linear(16, 1));
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
    for (int i = 0; i < 10; ++i) {
      optimizer.zero_grad();
      const auto x = torch::randn({32, 4});
      backward((model->forward(x) - x.sum(1, true)).pow(2).mean());
      optimizer.step();
    }
    return model->parameters();
  };
  const auto expected = train([](const at::Tensor& loss) { loss.backward(); });
  BOOST_TEST(difference(train([](const at::Tensor& loss) { troupe::backward({loss}); }), expected) == "");
}

BOOST_AUTO_TEST_SUITE_END()
