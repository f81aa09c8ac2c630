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
    const auto state = call(python().ensure);
    const bool is_done = call(python().check_signals) == 0;
    if (!is_done) call(python().fetch, &raised()[0], &raised()[1], &raised()[2]);
    call(python().release, state);
    return is_done;
  }
  /// Pre: the thread has the interpreter's lock.
  static void raise_of_signal() {
    const auto all = std::exchange(raised(), {});
    if (all[0] != nullptr) call(python().restore, all[0], all[1], all[2]);
  }
  ~python_thread() {
    if (saved_ == nullptr || call(python().is_initialized) == 0) return;
    if (call(python().is_finalizing) != 0 || call(python().is_finalizing_before_3_13) != 0) return;
    call(python().restore_thread, saved_);
    call(python().release, state_);
  }
  python_thread(const python_thread&) = delete;
  python_thread& operator=(const python_thread&) = delete;

 private:
  python_thread() {
    if (call(python().this_state) != nullptr) return;  // a thread of Python
    state_ = call(python().ensure);
    saved_ = call(python().save_thread);
  }
  struct symbol {
    const char* name;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
    }
  };
  /// Functions of Python, whose headers this library does not use. Null if the process had none of this name when the first was
  /// looked for.
  struct functions {
    int (*is_initialized)() = symbol{"Py_IsInitialized"};
    int (*is_finalizing)() = symbol{"Py_IsFinalizing"};
    int (*is_finalizing_before_3_13)() = symbol{"_Py_IsFinalizing"};
    void* (*this_state)() = symbol{"PyGILState_GetThisThreadState"};
    int (*ensure)() = symbol{"PyGILState_Ensure"};
    void (*release)(int) = symbol{"PyGILState_Release"};
    void* (*save_thread)() = symbol{"PyEval_SaveThread"};
    void (*restore_thread)(void*) = symbol{"PyEval_RestoreThread"};
    int (*check_signals)() = symbol{"PyErr_CheckSignals"};
    void (*fetch)(void**, void**, void**) = symbol{"PyErr_Fetch"};
    void (*restore)(void*, void*, void*) = symbol{"PyErr_Restore"};
  };
  static const functions& python() {
    static const functions all;
    return all;
  }
  /// Returns 0 if there is no such function.
  template <class Result, class... Parameters>
  static Result call(Result (*function)(Parameters...), Parameters... with) {
    return function == nullptr ? Result() : function(with...);
  }

  static std::array<void*, 3>& raised() {
    static thread_local std::array<void*, 3> of_thread{};
    return of_thread;
  }

  int state_ = 0;
  void* saved_ = nullptr;
};

}  // namespace torchtroupe
