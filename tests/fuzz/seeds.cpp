// SPDX-License-Identifier: BSD-3-Clause
// Writes the first inputs of the fuzz targets: what two nodes send each other, messages with random contents, and what people write.
//   seeds FOLDER
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <openssl/pem.h>
#include <caf/atom.hpp>
#include <caf/io/basp/message_type.hpp>

#include <troupe/actors/certificates/kit.hpp>
#include <troupe/actors/gate/tls_session.hpp>
#include <troupe/actors/network/message_head.hpp>
#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/objects/random_state.hpp>
#include <troupe/actors/tracing/tracer.hpp>
#include <troupe/troupe.hpp>

#include "actors/certificates/own_cluster.hpp"
#include "actors/linear_cluster.hpp"
#include "frames.hpp"
#include "messages/samples.hpp"
#include "support/hostile_client.hpp"
#include "support/recording_relay.hpp"

namespace {

using namespace troupe;
namespace fs = std::filesystem;

void write(const fs::path& folder, const std::string& target, int number, const std::string& bytes) {
  fs::create_directories(folder / target);
  std::ofstream(folder / target / ("seed_" + std::to_string(number)), std::ios::binary) << bytes;
}

template <std::size_t... I>
void write_messages(const fs::path& folder, std::index_sequence<I...>) {
  const auto write_one = [&]<class T>(std::size_t which, T*) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      testing::generator random{seed};
      auto x = testing::make<T>(random);
      const auto wire = testing::encoded(x);
      write(folder, "messages", static_cast<int>(which * 4 + seed),
            std::string(1, static_cast<char>(which)) + std::string(wire.begin(), wire.end()));
    }
  };
  (write_one(I, static_cast<std::tuple_element_t<I, testing::message_types>*>(nullptr)), ...);
}

void write_frames(const fs::path& folder) {
  std::mt19937_64 random(1);
  for (int number = 0; number < 100; ++number) {
    std::string bytes;
    for (auto messages = 1 + random() % 4; messages > 0; --messages)
      bytes += test::hostile_client::random_message(random, 5, node_id{3});
    write(folder, "node", number, std::string(1, static_cast<char>(number % 2)) + bytes);
    write(folder, "frames", number,
          std::string(1, static_cast<char>(random() % 8)) + test::hostile_client::handshake() + bytes);
  }
}

/// The end of an actor with an error, a link, and an answer, as nodes with certificates send them.
void write_frames_of_caf(const fs::path& folder) {
  using caf::io::basp::message_type;
  const auto handshake = test::hostile_client::handshake();
  const auto other = handshake.substr(network::message_head::bytes);
  const auto own = fuzz::own_node();
  const auto message = [](message_type kind, const std::string& payload, std::uint64_t actor) {
    network::message_head head;
    head.operation = static_cast<std::uint8_t>(kind);
    head.payload = static_cast<std::uint32_t>(payload.size());
    head.source = head.target = actor;
    std::string result(network::message_head::bytes, '\0');
    head.write(result.data());
    return result + payload;
  };
  const auto content = [](const std::string& types, const std::string& values) {
    return std::string(2, '\0') + static_cast<char>(types.size()) + types + values;
  };
  const auto error = '\1' + std::string(8, '\0') + content("@<>+@str", "\3abc");
  using fuzz::number_text;
  const auto link = content("@<>+@atom+@strong_actor_ptr", number_text(caf::link_atom::uint_value()) + number_text(7) + other);
  const auto down = message(message_type::down_message, other + own + error, 0);
  const auto links = message(message_type::routed_message, own + own + '\0' + link, 9);
  const auto nested =
    message(message_type::direct_message, '\0' + content("@<>+@error+@message", error + content("@<>", "")), 9);
  write(folder, "frames", 2000, '\6' + handshake + down + links + nested);
  write(folder, "frames", 2001, '\2' + handshake + down + links);
  // What CAF reads in another way than the names of the types suggest.
  const auto uri =
    number_text(static_cast<std::uint64_t>(caf::node_id::uri_data::class_id)) + std::string(2, '\0') + std::string(40, '\377');
  const std::string struct_of_troupe = static_cast<char>(uri.size()) + std::string(11, '\0') + uri;
  const auto own_name = "@<>+" + std::string(fuzz::own_type);
  int seed = 2002;
  for (const auto& each :
       {content("@<>+@message+@node", content("@<>+@u8+", "x") + uri), content(own_name + "+@node", "\1x" + uri),
        content(own_name + "+@charbuf", "\1x\377\377\377\377\17"),
        content("@<>+@message+@u64+@u32+@node", content("@<>+troupe.call", struct_of_troupe) + std::string(12, '\0') + other),
        content("@<>+@message", content("@<>+@node+", uri)), content("@<>+@message+@str", "\1b"),
        content("@<>+@str+troupe.call", "\1b")}) {
    const auto ends = message(message_type::down_message, other + own + '\1' + std::string(8, '\0') + each, 0);
    const auto tells = message(message_type::direct_message, '\0' + each, 9);
    write(folder, "frames", seed++, '\6' + handshake + ends);
    write(folder, "frames", seed++, '\2' + handshake + ends);
    write(folder, "frames", seed++, '\6' + handshake + tells);
  }
}

/// Bytes of a connection between two nodes: from a program that makes an object, calls it, runs a pass, steps and saves.
std::string recorded_traffic() {
  const test::temporary_folder temporary;
  const auto with = [](const std::string& name) {
    settings result;
    result.name = name;
    result.insecure = true;
    result.shared_memory = false;  // all bytes go by TCP
    result.log_level = severity::off;
    return result;
  };
  auto of_stage = with("stage");
  of_stage.data_dir = temporary / "";
  of_stage.prepare = [](node& here) {
    add_module_type(here, "linear", [](const attributes& values) { return std::make_shared<test::linear>(values); });
  };
  node stage(of_stage);
  test::recording_relay relay(stage.port());
  {
    node driver(with("driver"));
    driver.join("127.0.0.1", relay.port());
    auto layer = driver.peer("stage").create("linear", test::layer(3, 2, 1));
    optimizer steps(driver, {"adamw", {{"lr", 0.1}}}, {layer}, {});
    for (int step = 0; step < 3; ++step) {
      context one(driver);
      const auto x = at::ones({4, 3}).requires_grad_();
      one.backward({layer.call("forward", {x}).get().tensor(0).sum()}).get();
      steps.step(one);
    }
    steps.save(temporary / "driver", {}, "saved");
    driver.peer("stage").status();
  }
  return relay.sent();
}

/// Real messages, some at a time, without the caller's handshake.
void write_traffic(const fs::path& folder) {
  constexpr std::size_t most = 1000;  // except where one message has more
  const auto all = recorded_traffic();
  std::string group;
  int number = 1000;
  const auto write_group = [&] {
    write(folder, "node", number, std::string(1, static_cast<char>(number % 2)) + group);
    write(folder, "frames", number++, '\0' + test::hostile_client::handshake() + std::exchange(group, {}));
  };
  for (std::size_t at = 0; all.size() - at >= network::message_head::bytes;) {
    const auto size = network::message_head::bytes + network::message_head::read(all.data() + at).payload;
    if (at > 0) {
      if (!group.empty() && group.size() + size > most) write_group();
      group += all.substr(at, size);
    }
    at += std::min(size, all.size() - at);
  }
  if (!group.empty()) write_group();
  if (number < 1002) throw std::runtime_error("expected more traffic than " + std::to_string(all.size()) + " bytes");
}

void write_texts(const fs::path& folder) {
  const std::string cluster = R"({"nodes": [{"name": "stage1", "host": "0.0.0.0", "port": 4001, "workers": 2, "threads": 1},
    {"name": "stage2", "ssh": "me@h2", "program": "/opt/troupe", "folder": "run", "advertise": "h2", "options": ["--trace"],
     "device_maps": {"stage1": {"cuda:0": "cuda:1", "cpu": "cuda:0"}}}]})";
  const std::string policy =
    R"({"roles": {"features": {"call": ["forward"]}, "trainer": {"modules": {"Stage": ["*"]}, "weights":
    "write", "save": true, "scripts": false, "actors": true, "contexts": "all", "trace": true, "status": true, "members": true}}})";
  write(folder, "texts", 0, '\0' + cluster);
  write(folder, "texts", 1, '\1' + policy);
  tracing::trace_log log{{{"forward", "call", 1, 2, {}}, {"backward", "pass", 3, 4, {}}}, 0};
  write(folder, "texts", 2, '\2' + tracing::pack(log));
  const test::temporary_folder temporary;
  objects::checkpoint_manifest manifest;
  objects::write_manifest(temporary / "", manifest);
  std::ifstream in(temporary / std::string("checkpoint.json"), std::ios::binary);
  write(folder, "texts", 3, '\3' + std::string(std::istreambuf_iterator<char>(in), {}));
  write(folder, "texts", 4, "\4[::1]:4000");
  write(folder, "texts", 5, "\5 9090");
  write(folder, "texts", 6, "\6runs/first/checkpoint");
  const test::own_cluster mine;
  const auto text_of = [](const std::string& file) {
    std::ifstream from(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(from), {});
  };
  write(folder, "texts", 7, '\7' + text_of(mine.kit("node")));
  mine.authority().revoke("node", std::chrono::system_clock::now());
  write(folder, "texts", 8, '\10' + text_of(mine.revoked()));
  write(folder, "texts", 9, "\11stage1:cuda:0=cuda:1,cpu=cuda:0");
}

void write_parts(const fs::path& folder) {
  objects::checkpoint_part part{"stage1", "0123456789abcdef", "adamw", {{"lr", 0.1}, {"amsgrad", true}}, {}, {}};
  part.parameters.emplace_back("0/block.weight", at::randn({3, 4}));
  part.parameters.emplace_back("0/block.bias", at::randn({}).to(at::kDouble));
  part.states.push_back({true, 7, {at::randn({3, 4}), at::rand({3, 4}), {}}});
  part.states.push_back({});
  part.buffers.emplace_back("0/norm.steps", at::tensor(7));
  part.random = objects::random_state();
  const auto bytes = objects::part_bytes(part);
  write(folder, "parts", 0, {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())});
  const std::string header = R"({"__metadata__":{"a":"b"},"w":{"dtype":"BOOL","shape":[2,1],"data_offsets":[0,2]}})";
  write(folder, "parts", 1, std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "\1\1");
}

void write_handshakes(const fs::path& folder) {
  const test::own_cluster mine;
  const auto file = mine.kit("node");
  const auto kit = certificates::read_kit(file, std::chrono::system_clock::now());
  unsigned char* der = nullptr;
  const auto size = i2d_X509(kit.certificate.get(), &der);
  write(folder, "handshake", 0, '\0' + std::string(reinterpret_cast<char*>(der), static_cast<std::size_t>(size)));
  OPENSSL_free(der);
  const auto own = std::make_shared<gate::credentials>(file);
  std::array<int, 2> both{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both.data()) != 0) std::abort();
  gate::tls_session caller(own, both[0], gate::end::calling);
  gate::tls_session answering(own, both[1], gate::end::called);
  const auto sent = [&](int to) {
    std::string result(16384, '\0');
    result.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::recv(to, result.data(), result.size(), MSG_PEEK))));
    return result;
  };
  caller.shake_hands();
  write(folder, "handshake", 1, '\1' + sent(both[1]));
  answering.shake_hands();
  write(folder, "handshake", 2, '\2' + sent(both[0]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "seeds: expected a folder for the first inputs of the fuzz targets\n");
    return 2;
  }
  const fs::path folder = argv[1];
  write_messages(folder, std::make_index_sequence<std::tuple_size_v<testing::message_types>>());
  write_frames(folder);
  write_frames_of_caf(folder);
  write_traffic(folder);
  write_texts(folder);
  write_parts(folder);
  write_handshakes(folder);
  return 0;
}
