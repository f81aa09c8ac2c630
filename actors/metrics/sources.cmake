# SPDX-License-Identifier: BSD-3-Clause
add_room(metrics
  metrics_text.cpp
  page_server.cpp)
