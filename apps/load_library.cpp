// SPDX-License-Identifier: BSD-3-Clause
#include "apps/load_library.hpp"

#include <dlfcn.h>

#include <exception>
#include <filesystem>
#include <stdexcept>

#include <troupe/actors/library.hpp>

#include "apps/command_line.hpp"

namespace troupe::apps {

namespace {

constexpr const char* how_to_build =
  "; build it as a shared library that links the CMake target troupe::loadable and uses TROUPE_LIBRARY "
  "(troupe/actors/library.hpp)";

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw std::runtime_error("the library '" + file + "' " + what);
}

/// The path for dlopen: a name without a slash would not be searched in the working folder.
std::string path_of(const std::string& file) {
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

}  // namespace

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

}  // namespace troupe::apps
