# SPDX-License-Identifier: BSD-3-Clause
# A build folder is bound to one version of libtorch: objects made with another one would fail at a far place.
if(TROUPE_TORCH AND NOT TROUPE_TORCH STREQUAL LibTorch_VERSION)
  message(FATAL_ERROR "TROUPE_TORCH is '${TROUPE_TORCH}', but '${LibTorch_DIR}' has libtorch ${LibTorch_VERSION}. Unset one of TROUPE_TORCH and \
TROUPE_TORCH_DIR, or run 'TROUPE_TORCH=${TROUPE_TORCH} make deps'")
endif()
if(NOT "$ENV{TROUPE_TORCH}" STREQUAL "" AND NOT "$ENV{TROUPE_TORCH}" STREQUAL LibTorch_VERSION)
  message(FATAL_ERROR "TROUPE_TORCH is '$ENV{TROUPE_TORCH}' in the environment, but '${CMAKE_BINARY_DIR}' is for libtorch ${LibTorch_VERSION}. Unset TROUPE_TORCH, or configure in another folder ('make TORCH=$ENV{TROUPE_TORCH}' does)")
endif()
if(troupe_torch_of_folder AND NOT troupe_torch_of_folder STREQUAL LibTorch_VERSION)
  message(FATAL_ERROR "'${CMAKE_BINARY_DIR}' was made for libtorch ${troupe_torch_of_folder}, but '${LibTorch_DIR}' has ${LibTorch_VERSION} by now. \
Remove the folder; 'make TORCH=${troupe_torch_of_folder}' builds for the former version beside it")
endif()
set(troupe_torch_of_folder "${LibTorch_VERSION}" CACHE INTERNAL "The libtorch of this build folder")
# CMake runs again when another libtorch takes the place.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${LibTorch_DIR}/include/torch/headeronly/version.h")
