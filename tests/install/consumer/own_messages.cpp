// SPDX-License-Identifier: BSD-3-Clause
#include "own_messages.hpp"

#include "checkpoint.pb.h"
#include "trace.pb.h"
#include "troupe.pb.h"

const char* own_messages() {
  consumer::Troupe troupe;
  troupe.set_name("players");
  troupe.add_actors("first");
  consumer::Checkpoint checkpoint;
  checkpoint.set_step(7);
  consumer::Trace trace;
  trace.set_seconds(0.5);
  return troupe.ShortDebugString() == R"(name: "players" actors: "first")" && checkpoint.ShortDebugString() == "step: 7" &&
             trace.ShortDebugString() == "seconds: 0.5" && troupe.GetDescriptor()->file()->name() == "troupe.proto"
           ? "right"
           : "wrong";
}
