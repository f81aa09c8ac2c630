# SPDX-License-Identifier: BSD-3-Clause
# The headers that `make install` installs, and that the reference (`make docs`) describes. tests/structure fails if an installed
# header includes one that is not listed, or if nothing needs a listed header.

set(troupe_public_headers
  # What programs include: everything for a node, and a library for `troupe node --load`.
  actors/troupe.hpp actors/library.hpp
  # Beside these, for own actors: errors of CAF.
  messages/caf_error.hpp
  # The engine without nodes: passes, what a hook asks of its pass, a pass in parts, threads for passes.
  engine/backward.hpp engine/current_pass.hpp engine/graph_task.hpp engine/cpu_workers.hpp
  # The engine in libtorch's place.
  engine/drop_in/install.hpp)

set(troupe_needed_headers
  # The API of a node: actors/troupe.hpp includes a header for each thing.
  actors/context.hpp actors/function_table.hpp actors/future.hpp actors/joined_message.hpp actors/module.hpp actors/node.hpp
  actors/optimizer.hpp actors/optimizer_settings.hpp actors/parameter_group.hpp actors/process_limits.hpp
  actors/remote_module.hpp actors/script_module.hpp actors/settings.hpp actors/state_file.hpp actors/unsure_step.hpp
  actors/version.hpp actors/worker_team.hpp engine/gradient_table.hpp
  # What this API takes and returns.
  devices/device_map.hpp messages/attributes.hpp messages/errors.hpp messages/ids.hpp messages/wire_format.hpp
  # The messages of own actors and the status of a node, with the list of all messages and the fields of these.
  messages/compute_modes.hpp messages/inspect.hpp messages/messages.hpp messages/requests.hpp messages/weight_share.hpp
  # What the template `future` calls, and what `joined_scope` holds.
  actors/support/blocking_observer.hpp actors/support/call_scope.hpp actors/support/lost_exception.hpp
  actors/support/spin_pause.hpp actors/support/thread_modes.hpp engine/recordings.hpp engine/surroundings.hpp
  # What classes hold.
  engine/cost_book.hpp engine/device_events.hpp engine/graph_task_settings.hpp engine/lane.hpp engine/send_backward.hpp
  engine/torch_compat.hpp engine/torch_version.hpp messages/mutex.hpp)

set(troupe_installed_headers ${troupe_public_headers} ${troupe_needed_headers})
