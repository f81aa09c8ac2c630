// SPDX-License-Identifier: BSD-3-Clause
// Bytes to another process and back by gRPC, in the way of gRPC with the least work: a generic service with completion queues, which
// neither writes nor reads protobuf. A program of its own, because gRPC brings libraries that libtorch has in other versions.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace {

constexpr int most_bytes = 256 << 20;
constexpr int warm_up = 200;
constexpr std::chrono::seconds answer_deadline{20};
constexpr const char* how_to_call =
  "grpc_echo: expected one of\n"
  "  serve HOST [KIT]                the side that answers, at a free port of this address; prints \"port N\"; ends when it is "
  "killed\n"
  "  ask HOST:PORT BYTES RUNS [KIT]  the side that asks\n"
  "BYTES is a whole number from 0 to 268435456, RUNS one from 1 on. A line for each run: the microseconds until the answer.\n"
  "KIT is a file with a private key, a certificate for HOST and that of the authority: both sides prove by TLS who they are.\n";

/// Throws std::runtime_error if the file can't be read.
std::string text_of(const std::string& file) {
  std::ifstream from(file);
  std::string text(std::istreambuf_iterator<char>(from), {});
  if (text.empty()) throw std::runtime_error("expected a kit in " + file);
  return text;
}

/// `kit`: empty for a connection without TLS. gRPC finds the key and the certificates in the same text.
std::shared_ptr<grpc::ServerCredentials> proofs_of_server(const std::string& kit) {
  if (kit.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions how(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  const auto text = text_of(kit);
  how.pem_root_certs = text;
  how.pem_key_cert_pairs.push_back({text, text});
  return grpc::SslServerCredentials(how);
}

std::shared_ptr<grpc::ChannelCredentials> proofs_of_client(const std::string& kit) {
  if (kit.empty()) return grpc::InsecureChannelCredentials();
  const auto text = text_of(kit);
  return grpc::SslCredentials({text, text, text});
}

bool next(grpc::ServerCompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

/// Answers one call after another with its own bytes, until the process is killed.
void serve(const std::string& host, const std::string& kit) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(host + ":0", proofs_of_server(kit), &port);
  builder.SetMaxReceiveMessageSize(most_bytes);
  builder.SetMaxSendMessageSize(most_bytes);
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (!server || port == 0) throw std::runtime_error("gRPC can't listen at " + host);
  std::printf("port %d\n", port);
  std::fflush(stdout);
  int tag = 0;
  for (;;) {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream(&context);
    service.RequestCall(&context, &stream, queue.get(), queue.get(), &tag);
    if (!next(*queue)) return;
    grpc::ByteBuffer bytes;
    stream.Read(&bytes, &tag);
    if (!next(*queue)) return;
    stream.WriteAndFinish(bytes, {}, grpc::Status::OK, &tag);
    if (!next(*queue)) return;
  }
}

void measure(const std::string& address, std::size_t bytes, int runs, const std::string& kit) {
  grpc::ChannelArguments how;
  how.SetMaxReceiveMessageSize(most_bytes);
  how.SetMaxSendMessageSize(most_bytes);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, proofs_of_client(kit), how));
  grpc::CompletionQueue queue;
  const grpc::Slice content(std::string(bytes, 'x'));
  for (int i = -(runs < warm_up ? 3 : warm_up); i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + answer_deadline);
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, "/bench/echo", grpc::ByteBuffer(&content, 1), &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    if (!status.ok()) throw std::runtime_error("a call failed: " + status.error_message());
    if (answer.Length() != bytes) throw std::runtime_error("the answer has " + std::to_string(answer.Length()) + " bytes");
    if (i >= 0) std::printf("%.3f\n", taken.count());
  }
}

int run(std::vector<std::string> words) {
  const std::size_t without_kit = words.empty() || words[0] == "ask" ? 4 : 2;
  std::string kit;
  if (words.size() == without_kit + 1) {
    kit = words.back();
    words.pop_back();
  }
  if (words.size() == 2 && words[0] == "serve") {
    serve(words[1], kit);
    return 1;  // the queue has ended, which nobody asked for
  }
  const bool asks = words.size() == 4 && words[0] == "ask";
  const long bytes = asks ? std::atol(words[2].c_str()) : -1;
  const long runs = asks ? std::atol(words[3].c_str()) : 0;
  if (bytes < 0 || bytes > most_bytes || runs < 1) {
    std::fputs(how_to_call, stderr);
    return 2;
  }
  measure(words[1], static_cast<std::size_t>(bytes), static_cast<int>(runs), kit);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "grpc_echo: %s\n", failed.what());
    return 1;
  }
}
