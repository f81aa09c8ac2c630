// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/node_command_test.cpp, tests/apps/load_library_test.cpp
#include "apps/commands/commands.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include <troupe/actors/library.hpp>
#include <troupe/actors/logging/reopen_logs.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/node_options.hpp>
#include <troupe/devices/cuda_kernels.hpp>
#include <troupe/messages/mutex.hpp>

#include "apps/cluster_file.hpp"
#include "apps/command_line.hpp"
#include "apps/kits_in_memory.hpp"
#include "apps/process_group.hpp"
#include "apps/ready_line.hpp"
#include "apps/signals.hpp"
#include "apps/stdin_watch.hpp"

namespace troupe::apps {

namespace {

constexpr auto longest_leave = std::chrono::milliseconds(1200);

struct node_command {
  settings with;
  int threads = 1;
  int until_silent = 0;
  std::vector<std::string> load;
  bool cuda = false;
  bool print_port = false;
  std::string ready_token;
};

/// Ends the process after `time`: work may run long after its node was told to leave, and nobody waits for the result any
/// more. Needs no thread, which the system may refuse.
void leave_at_latest_in(std::chrono::microseconds time) {
  ::signal(SIGALRM, [](int) { _exit(0); });
  const itimerval once{{}, {time / std::chrono::seconds(1), (time % std::chrono::seconds(1)).count()}};
  ::setitimer(ITIMER_REAL, &once, nullptr);
}

/// What a signal does in each phase of the node's life. A stop signal that comes while the node still joins ends the process at
/// once.
class stay {
 public:
  void on_signal() {
    if (!joined_) _exit(0);
    leave_at_latest_in(longest_leave);
  }
  /// Runs on the thread of the signals, so the node may end at any time.
  void on_hangup() {
    std::shared_ptr<nodes::node_link> link;
    {
      const checked_lock lock(mutex_);
      link = link_;
      is_hung_up_ = !link;
    }
    if (!link) return logging::reopen_logs();
    if (const nodes::visit there(*link); there)
      static_cast<void>(there->reload());
    else
      logging::reopen_logs();
  }
  void has(node& made) {
    bool is_late = false;
    {
      const checked_lock lock(mutex_);
      link_ = runtime_of(made).link();
      is_late = is_hung_up_;
    }
    if (is_late) on_hangup();
  }
  void joined() { joined_ = true; }

 private:
  std::atomic<bool> joined_{false};
  checked_mutex mutex_;
  std::shared_ptr<nodes::node_link> link_ TROUPE_GUARDED_BY(mutex_);  // null before the node has read its files
  bool is_hung_up_ TROUPE_GUARDED_BY(mutex_) = false;                 // a SIGHUP came while link_ was null
};

constexpr const char* how_to_build =
  "; build it as a shared library that links the CMake target troupe::loadable and uses TROUPE_LIBRARY "
  "(troupe/actors/library.hpp)";

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw std::runtime_error("the library '" + file + "' " + what);
}

/// The path of the library of troupe with this name.
std::string path_of_guest(const std::string& name) {
  const auto folder = std::filesystem::path(own_program()).parent_path();
  const auto file = "libtroupe_" + name + ".so";
  const auto beside = (folder / file).string();
  const auto installed = (folder / TROUPE_LIBRARY_FOLDER / file).lexically_normal().string();
  for (const auto& each : {beside, installed})
    if (std::filesystem::exists(each)) return each;
  fail(name, "is expected to be " + beside + " or " + installed +
               ", but neither is there; a file of your own has a slash or a dot in its name, as in --load ./libmine.so");
}

/// The path for dlopen: a name without a slash would not be searched in the working folder.
std::string path_of(const std::string& file) {
  if (file.find_first_of("/.") == std::string::npos) return path_of_guest(file);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return std::filesystem::absolute(file).string();
  if (file.find('/') != std::string::npos) fail(file, "is expected to be a file, but there is none; name the file with --load");
  return file;
}

/// The text of the last error of dlopen or dlsym.
std::string linker_error() {
  const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc has a text for each thread
  return text == nullptr ? "no reason given" : text;
}

void* open(const std::string& file) {
  void* const library = ::dlopen(path_of(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const auto reason = linker_error();
  if (reason.find("undefined symbol") != std::string::npos)
    fail(file, "needs a symbol that neither this program nor the library's own libraries define (" + reason +
                 "); link what it needs, and build it with the headers of this troupe");
  if (reason.starts_with(file + ": cannot open"))
    fail(file, "is neither in the working folder nor where the system searches libraries (" + reason +
                 "); name the file with --load");
  fail(file, "can't be loaded (" + reason + "); expected a shared library for this machine" + how_to_build);
}

/// Adds the functions and modules of a shared library (troupe/actors/library.hpp) to the node. The library stays loaded until
/// the process ends. A name without a slash is a file of the working folder, or is searched where the system searches
/// libraries. A name without a slash and a dot is that of a library of troupe, as in `charlm`.
///   LB-1  load_library() throws std::runtime_error if the file is missing or is no library, uses a symbol that nothing
///         defines, exports no entry function (TROUPE_LIBRARY), or was built with another troupe. It throws, too, if the entry
///         function throws. The text names the file, what was expected, what is wrong, and what to do.
///   LB-2  the entry function of a library that was built with another troupe, libtorch or CAF adds nothing.
///   LB-3  a library of troupe lies beside the program, or where `make install` puts libraries. No other folder is searched.
void load_library(node& here, const std::string& file) {
  void* const library = open(file);
  void* const symbol = ::dlsym(library, library_entry_name);
  if (symbol == nullptr) fail(file, std::string("exports no function '") + library_entry_name + "'" + how_to_build);
  std::string built_with;
  try {
    built_with = reinterpret_cast<library_entry*>(symbol)(TROUPE_INTERFACE, &here);
  } catch (const std::exception& problem) {
    fail(file, "has thrown an exception while it added its functions and modules: " + one_line(problem));
  } catch (...) {
    fail(file, "has thrown an exception of an unknown type while it added its functions and modules");
  }
  if (built_with != TROUPE_INTERFACE)
    fail(file, "was built for " + built_with +
                 ", but this program is " TROUPE_INTERFACE "; build the library again with this troupe");
}

void run_node(const node_command& options) {
  at::set_num_threads(options.threads);
  if (options.cuda && !devices::load_cuda_kernels())
    throw error(errc::misuse, "--cuda: expected a GPU, but CUDA's driver shows this process none");
  stay here;
  stop_signal stop([&](int) { here.on_signal(); }, std::chrono::seconds(1), [&] { here.on_hangup(); });

  auto with = options.with;
  std::optional<kit_from_stdin> kit;
  if (with.certificates == "-") with.certificates = kit.emplace().path();
  with.prepare = [&](node& made) {
    here.has(made);
    for (const auto& file : options.load) load_library(made, file);
    made.on_peer_gone([&](const std::string& name, const std::string&) {
      if (name == options.with.until_left) stop.request();
    });
  };
  node self(std::move(with));
  here.joined();
  std::optional<stdin_watch> watch;
  if (options.until_silent > 0) watch.emplace(std::chrono::seconds(options.until_silent), [&] { stop.request(); });

  ready_line ready{options.with.name, options.with.host, self.port()};
  std::printf("%s\n", options.print_port ? std::to_string(ready.port).c_str() : ready.text(options.ready_token).c_str());
  std::fflush(stdout);
  stop.wait();
  self.stop();
}

constexpr const char* node_examples =
  R"(A node listens on loopback unless --host names another address; nodes of other hosts can't reach it there.
SIGHUP makes a node read its policy and its certificates again, and open its log file again.
A node that others reach proves who it is with a kit (see `troupe certs --help`); `--certificates -` reads it from stdin.

Example: two nodes of one host that know each other
  troupe node --name stage1 --port 4001
  troupe node --name stage2 --join 127.0.0.1:4001

Example: two nodes on hosts that reach each other as h1 and h2
  troupe node --name stage1 --host 0.0.0.0 --port 4001 --certificates stage1.pem --join h1:4001 --join h2:4001    on h1
  troupe node --name stage2 --host 0.0.0.0 --port 4001 --certificates stage2.pem --join h1:4001 --join h2:4001    on h2)";

}  // namespace

void add_node_command(CLI::App& app) {
  auto options = std::make_shared<node_command>();
  options->with.log_level = severity::info;
  auto* command = app.add_subcommand("node", "Run a plain node that waits for work");
  command->option_defaults()->always_capture_default();
  std::vector<std::string_view> names;
  for (const auto& each : node_options()) names.push_back(each.name);
  add_node_options(*command, options->with, names);
  command->get_option("--name")->default_str("")->required();
  command->add_option("--threads", options->threads, "libtorch's threads inside one operation")->check(between(1, 1024));
  command
    ->add_option(
      "--until-silent", options->until_silent,
      "Stop when stdin has ended or has brought nothing for this many seconds; for programs that start nodes on other "
      "hosts")
    ->check(between(1, 86'400))
    ->default_str("");
  command
    ->add_option("--load", options->load,
                 "Shared library with functions and modules for this node: a file (see troupe/actors/library.hpp); charlm, "
                 "for the stages of `troupe train`; or probe, for `troupe bench`. May repeat")
    ->allow_extra_args(false)
    ->type_name("LIBRARY");
  command->add_flag("--cuda", options->cuda, "Load CUDA's kernels: the node then has the GPUs of its host");
  command->add_flag("--print-port", options->print_port, "Print only the port when ready");
  command
    ->add_option("--ready-token", options->ready_token,
                 "A word that the line with the address ends with; for programs that start nodes and read this line")
    ->type_name("WORD");
  command->footer(node_examples);
  command->callback([options] { run_node(*options); });
}

}  // namespace troupe::apps
