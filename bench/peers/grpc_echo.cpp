// SPDX-License-Identifier: BSD-3-Clause
// Bytes to another process and back by gRPC, in the way of gRPC with the least work: a generic service with completion queues, which
// neither writes nor reads protobuf. A program of its own, because gRPC brings libraries that libtorch has in other versions.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

namespace {

constexpr int most_bytes = 256 << 20;
constexpr int warm_up = 200;
constexpr const char* how_to_call =
  "grpc_echo: expected BYTES RUNS, two whole numbers from 0 to 268435456 and from 1 on; prints the microseconds of each run on "
  "a line\n";

bool next(grpc::ServerCompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

/// Answers one call after another with its own bytes, until the process is killed.
void serve(int tell_port) {
  grpc::AsyncGenericService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(most_bytes);
  builder.SetMaxSendMessageSize(most_bytes);
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (!server || ::write(tell_port, &port, sizeof port) != sizeof port)
    throw std::runtime_error("gRPC can't listen on loopback");
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

void measure(int port, std::size_t bytes, int runs) {
  grpc::ChannelArguments how;
  how.SetMaxReceiveMessageSize(most_bytes);
  how.SetMaxSendMessageSize(most_bytes);
  grpc::GenericStub stub(
    grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), how));
  grpc::CompletionQueue queue;
  const grpc::Slice content(std::string(bytes, 'x'));
  for (int i = -(runs < warm_up ? 3 : warm_up); i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    grpc::ClientContext context;
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

}  // namespace

int main(int argc, char** argv) {
  const long bytes = argc == 3 ? std::atol(argv[1]) : -1;
  const long runs = argc == 3 ? std::atol(argv[2]) : 0;
  if (bytes < 0 || bytes > most_bytes || runs < 1) {
    std::fputs(how_to_call, stderr);
    return 2;
  }
  int told[2];
  if (::pipe(told) != 0) return 1;
  const auto server = ::fork();  // before gRPC has a thread
  try {
    if (server == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(told[1]);
      return 1;
    }
    int port = 0;
    ::close(told[1]);
    if (::read(told[0], &port, sizeof port) != sizeof port)
      throw std::runtime_error("the other process ended before it was ready");
    measure(port, static_cast<std::size_t>(bytes), static_cast<int>(runs));
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "grpc_echo: %s\n", failed.what());
    if (server == 0) return 1;
    ::kill(server, SIGKILL);
    return 1;
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return 0;
}
