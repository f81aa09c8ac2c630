// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/threads_test.py
#pragma once

#include <dlfcn.h>

namespace torchtroupe {

/// Python's state of a thread that runs requests. Without it each taking of the interpreter's lock makes a state and frees it,
/// which takes longer than a small function.
///   KS-1  after keep() the thread has one state until it ends, so what is local to a thread (threading.local) stays.
class python_thread {
 public:
  /// Keeps the state of the calling thread until the thread ends. Pre: the thread does not have the interpreter's lock.
  static void keep() { static thread_local const python_thread of_thread; }
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

  int state_ = 0;
  void* saved_ = nullptr;
};

}  // namespace torchtroupe
