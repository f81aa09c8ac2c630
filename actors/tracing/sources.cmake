# SPDX-License-Identifier: BSD-3-Clause
add_room(tracing
  chrome_trace.cpp
  operator_log.cpp
  tracer.cpp)
