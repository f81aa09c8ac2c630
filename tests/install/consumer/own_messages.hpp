// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// "right" if the messages of this project have their own fields, although its protos have the file names of troupe's protos.
const char* own_messages();
