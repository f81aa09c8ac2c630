// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/threads_test.py, tests/python/rpc/bad_input_test.py
#pragma once

#include <dlfcn.h>

#include <array>
#include <utility>

namespace torchtroupe {

/// Python's state of a thread that runs requests. Without it each taking of the interpreter's lock makes a state and frees it,
/// which takes longer than a small function.
///   KS-1  after keep() the thread has one state until it ends, so what is local to a thread (threading.local) stays.
class python_thread {
 public:
  /// Keeps the state of the calling thread until the thread ends. Pre: the thread does not have the interpreter's lock.
  static void keep() { static thread_local const python_thread of_thread; }
  /// Runs the handlers of signals that have come, if this is Python's main thread. False: a handler has raised an exception,
  /// which raise_of_signal() raises. Pre: as of keep().
  static bool handle_signals() {
    if (raised()[0] != nullptr) return false;
    const auto state = call<int>("PyGILState_Ensure");
    const bool is_done = call<int>("PyErr_CheckSignals") == 0;
    if (!is_done) call<void>("PyErr_Fetch", &raised()[0], &raised()[1], &raised()[2]);
    call<void>("PyGILState_Release", state);
    return is_done;
  }
  /// Pre: the thread has the interpreter's lock.
  static void raise_of_signal() {
    const auto all = std::exchange(raised(), {});
    if (all[0] != nullptr) call<void>("PyErr_Restore", all[0], all[1], all[2]);
  }
  ~python_thread() {
    if (saved_ == nullptr || call<int>("Py_IsInitialized") == 0 || call<int>("_Py_IsFinalizing") != 0) return;
    if (call<int>("Py_IsFinalizing") != 0) return;  // its name from Python 3.13 on
    call<void>("PyEval_RestoreThread", saved_);
    call<void>("PyGILState_Release", state_);
  }
  python_thread(const python_thread&) = delete;
  python_thread& operator=(const python_thread&) = delete;

 private:
  python_thread() {
    if (call<void*>("PyGILState_GetThisThreadState") != nullptr) return;  // a thread of Python
    state_ = call<int>("PyGILState_Ensure");
    saved_ = call<void*>("PyEval_SaveThread");
  }
  /// Calls a function of Python, whose headers this library does not use. Returns 0 if there is none of this name.
  template <class Result, class... Arguments>
  static Result call(const char* name, Arguments... with) {
    auto* const found = reinterpret_cast<Result (*)(Arguments...)>(::dlsym(RTLD_DEFAULT, name));
    return found == nullptr ? Result() : found(with...);
  }

  static std::array<void*, 3>& raised() {
    static thread_local std::array<void*, 3> of_thread{};
    return of_thread;
  }

  int state_ = 0;
  void* saved_ = nullptr;
};

}  // namespace torchtroupe
