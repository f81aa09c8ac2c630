# SPDX-License-Identifier: BSD-3-Clause
# The few commands of every day; CMake does the work, in build/$(PRESET).
#   PRESET       release, dev, asan or tsan
#   TORCH        the version of libtorch, out of cmake/libtorch.txt; another than the first builds in build/$(PRESET)-$(TORCH)
#   JOBS         compilers and tests at once
#   BEFORE       engine_bench of an earlier state, beside which `make bench-devices` measures passes on one thread
#   ARGS         what `make run` hands to `troupe train`, `make bench` to each benchmark, `make bench-report` to bench_report
#   CMAKE_FLAGS  more options to configure with, as -DTROUPE_WERROR=ON
#   FILES, N, SEED  what `make mutate` draws its faults from, how many for each folder, and which; `make mutate-cores` draws N in all
#   PYTHON       a Python with torch for bench-python, test-rpc and test-autograd, in the place of the one that make installs
#   PREFIX       where `make install` installs to
PRESET ?= release
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
ARGS ?=
CMAKE_FLAGS ?=
TORCH ?= $(TROUPE_TORCH)
export TROUPE_TORCH := $(TORCH)
default_torch := $(shell awk '/^[0-9]/ { print $$1; exit }' cmake/libtorch.txt)
torch := $(or $(TORCH),$(default_torch))
beside := $(patsubst %,-%,$(filter-out $(default_torch),$(torch)))
build := build/$(PRESET)$(beside)
python := build/python$(beside)
pytorch := $(python)/torch-$(torch)-safetensors
PYTHON ?=
interpreter := $(or $(PYTHON),$(python)/bin/python)
examples := $(notdir $(basename $(wildcard apps/examples/*.cpp)) $(patsubst %/run.sh,%,$(wildcard apps/examples/*/run.sh)))

.DEFAULT_GOAL := build
.PHONY: deps plots build run examples test bench bench-quick bench-report bench-engine bench-distributed bench-devices bench-suite bench-hosts bench-savina bench-security bench-scale bench-python soak pytorch test-python test-rpc test-autograd wheel test-wheel mutate mutate-cores fuzz docs lint format bundle install clean help configure

deps: ## Install what is missing: Debian packages, and libtorch into .venv (or .venv-$(TORCH))
	@cmake/deps.sh

# CMake runs again by itself when one of its files changes.
configure: deps
	@if [ ! -e $(build)/build.ninja ] || [ -n '$(CMAKE_FLAGS)' ]; then \
	  cmake --preset $(PRESET) -B $(build) $(CMAKE_FLAGS); fi

build: configure ## Build the libraries and the program troupe (the default)
	@ninja -C $(build) -j $(JOBS)

run: build ## Train the example on a cluster of three processes: make run ARGS=--help
	@$(build)/apps/troupe train $(ARGS)

example-%: configure ## Build and run an example, as in make example-two_nodes; make examples lists them
	@if [ ! -e apps/examples/$*.cpp ] && [ ! -e apps/examples/$*/run.sh ]; then \
	  echo "make: there is no example '$*'; expected one of: $(examples)" >&2; exit 2; fi
	@ninja -C $(build) -j $(JOBS) example_$*
	@if [ -e apps/examples/$*/run.sh ]; then sh apps/examples/$*/run.sh $(build)/tests/apps $(build)/apps/troupe; \
	  else $(build)/tests/apps/example_$* $(ARGS); fi

examples: ## List the examples and what each one shows
	@for name in $(examples); do \
	  printf 'make example-%-18s %s\n' $$name \
	    "$$(cat apps/examples/$$name.cpp apps/examples/$$name/driver.cpp 2>/dev/null | sed -n 's|^/// *||p' | tr '\n' ' ' | sed 's|\. .*||')"; done

test: configure ## Build and run every test
	@ninja -C $(build) -j $(JOBS) all tests
	@ctest --test-dir $(build) -j $(JOBS) --output-on-failure --no-tests=error || { status=$$?; \
	  echo "test: the checks that failed, out of $(build)/Testing/Temporary/LastTest.log:" >&2; \
	  grep -aE '(^|[^a-z])(fatal )?error: |FAILED|CMake Error|Sanitizer' $(build)/Testing/Temporary/LastTest.log | head -50 >&2; \
	  exit $$status; }

# The whole wheel, unlike .venv's: `import torch` needs all of it.
$(pytorch):
	@echo "make: installing PyTorch $(torch) into $(python) (downloads 2 GB, takes 4.6 GB on disk, once)"
	@python3 -m venv $(python) && rm -f $(python)/torch-*
	@$(python)/bin/python -m pip install --disable-pip-version-check -q --no-compile torch==$(torch) safetensors numpy
	@touch $@

pytorch: $(pytorch) ## Install PyTorch into build/python (4.6 GB), for the tests in Python

# WAYS: how the programs get the engine. TESTS: which tests in Python, a pattern of ctest's; empty: none.
WAYS ?= preload import
TESTS ?= ^python_
test-python: configure $(pytorch) ## Run Python programs on the engine, and workers of RPC; installs PyTorch into build/python (4.6 GB) first
	@ninja -C $(build) -j $(JOBS) troupe_preload torchtroupe_native simulated_device_module $(if $(TESTS),troupe_program example_python_peers)
	@for way in $(WAYS); do case $$way in \
	  preload) way="--preload $(build)/engine/drop_in/libtroupe_preload.so";; \
	  import) way="--library $$(echo $(build)/python/libtorchtroupe-*.so)";; \
	  *) echo "make: expected WAYS out of preload and import, got $$way" >&2; exit 2;; esac; \
	  $(python)/bin/python tests/python/compare.py $$way --device $(build)/tests/support/simulated_device.so $(ARGS) || exit 1; done
	@$(if $(TESTS),ctest --test-dir $(build) --output-on-failure --no-tests=error -R '$(TESTS)')

test-rpc: configure $(if $(PYTHON),,$(pytorch)) ## Run PyTorch's own RPC suites on troupe and on TensorPipe (a quarter of an hour on two cores), and compare
	@ninja -C $(build) -j $(JOBS) torchtroupe_native
	@$(if $(PYTHON),,$(interpreter) -m pip install --disable-pip-version-check -q expecttest psutil)
	@rm -rf build/rpc && mkdir -p build/rpc
	@for backend in tensorpipe troupe; do \
	  PYTHONPATH=python TORCHTROUPE_LIBRARY=$$(echo $(build)/python/libtorchtroupe-*.so) OMP_NUM_THREADS=1 \
	  $(interpreter) tests/python/rpc/suite.py $$backend build/rpc/$$backend.jsonl $(ARGS) || exit 1; done
	@$(interpreter) tests/python/rpc/suite.py compare build/rpc/tensorpipe.jsonl build/rpc/troupe.jsonl

# FOLDER: PyTorch's sources, of that version or a near one.
FOLDER ?= pytorch
test-autograd: configure $(if $(PYTHON),,$(pytorch)) ## Run PyTorch's own autograd tests on both engines, and compare: make test-autograd FOLDER=../pytorch
	@ninja -C $(build) -j $(JOBS) torchtroupe_native
	@$(if $(PYTHON),,$(interpreter) -m pip install --disable-pip-version-check -q expecttest psutil)
	@rm -rf build/autograd
	@PYTHONPATH=python TORCHTROUPE_LIBRARY=$$(realpath $(build)/python/libtorchtroupe-*.so) OMP_NUM_THREADS=1 \
	  $(interpreter) tests/python/autograd_suite.py $(FOLDER)/test build/autograd $(ARGS)

wheel: configure ## Make the wheel of the Python package, with all libraries that it needs except libtorch: build/wheels
	@ninja -C $(build) -j $(JOBS) torchtroupe_native
	@sh python/wheel.sh $$(echo $(build)/python/libtorchtroupe-*.so) \
	  "$${TROUPE_TORCH_DIR:-$$(echo $(CURDIR)/.venv$(beside)/lib/python3*/site-packages/torch)}" build/wheels

# PYTHONS: some of these Pythons, as "3.11 3.13".
PYTHONS ?=
test-wheel: wheel ## Install the wheel for each Python from 3.10 to 3.13 that torch serves, with PyTorch in build/wheel_test (8 GB)
	@ninja -C $(build) -j $(JOBS) troupe_preload simulated_device_module
	@PYTHONS="$(PYTHONS)" python3 tests/python/wheel_test.py build/wheels/*torch$(basename $(torch))-*.whl build/wheel_test $(build)

# TIME: seconds, for all targets together.
TIME ?= 3600
fuzz: deps ## Feed every reader of bytes with inputs of libFuzzer's for TIME seconds (an hour)
	@if [ ! -e build/fuzz$(beside)/build.ninja ]; then cmake --preset fuzz -B build/fuzz$(beside); fi
	@ninja -C build/fuzz$(beside) -j $(JOBS) fuzzers
	@sh tests/fuzz/run.sh build/fuzz$(beside)/tests/fuzz build/fuzz$(beside)/run $(TIME)

# What draws the page. All else of the benchmarks works without.
plots: configure
	@cmake/deps.sh python3-matplotlib || true

bench: plots ## Build and run the benchmarks, and make a page of all figures: out/bench/report.html
	@ninja -C $(build) -j $(JOBS) benchmarks
	@cmake -DFOLDER=$(build)/bench -DARGS="$(ARGS)" -P cmake/bench.cmake

bench-quick: plots ## Run every benchmark for a moment, which checks that all work: out/bench-quick/report.html, in 3 minutes
	@ninja -C $(build) -j $(JOBS) benchmarks
	@cmake -DFOLDER=$(build)/bench -DQUICK=ON -DARGS="$(ARGS)" -P cmake/bench.cmake

bench-report: plots ## Make the page anew, or compare two runs: make bench-report ARGS="--compare out/before out/bench"
	@$(build)/bench/bench_report $(ARGS)

bench-engine: configure ## Measure the engine beside libtorch's own: out/bench/engine.json and .txt
	@ninja -C $(build) -j $(JOBS) engine_bench
	@$(build)/bench/engine_bench $(ARGS)

bench-distributed: configure ## Measure distributed passes beside PyTorch's own: out/bench/distributed.json and .txt
	@ninja -C $(build) -j $(JOBS) distributed_bench
	@$(build)/bench/distributed_bench $(ARGS)

bench-suite: configure ## Measure messages, scheduling and idle things beside raw CAF: out/bench/suite.json and .txt
	@ninja -C $(build) -j $(JOBS) suite_bench
	@$(build)/bench/suite_bench $(ARGS)

# The peers: Erlang/OTP out of Debian's package, and Pykka. Without one of them its figures are missing.
build/savina:
	@python3 -m venv $@ && $@/bin/pip install --disable-pip-version-check -q --only-binary :all: pykka || echo "bench-savina: no Pykka"

bench-savina: configure build/savina ## Run the Savina suite on CAF beside Erlang/OTP, threads and Pykka: out/bench/savina.json and .txt
	@cmake/deps.sh erlang-base || true
	@ninja -C $(build) -j $(JOBS) savina_bench
	@$(build)/bench/savina_bench $(ARGS)

# The rows of two programs are in one report. Each program has rows of its own, so `--only` is for the first one.
bench-devices: configure ## Measure lanes on simulated accelerators, and compression on a slow link (takes root): out/bench/devices.json and .txt
	@ninja -C $(build) -j $(JOBS) devices_bench hosts_bench engine_bench one_lane
	@$(build)/bench/devices_bench $(ARGS)
	@$(if $(BEFORE),$(build)/bench/one_lane --before $(BEFORE) --after $(build)/bench/engine_bench)
	@$(if $(findstring --only,$(ARGS)),,$(build)/bench/hosts_bench --wire $(ARGS))

bench-hosts: configure ## Measure troupe between hosts (network namespaces; takes root): out/bench/hosts.json and .txt
	@ninja -C $(build) -j $(JOBS) hosts_bench
	@$(build)/bench/hosts_bench $(ARGS)

bench-security: configure ## Measure what proofs cost and what strangers can do (takes root): out/bench/security.json and .txt
	@ninja -C $(build) -j $(JOBS) hosts_bench
	@$(build)/bench/hosts_bench --security $(ARGS)

bench-scale: configure ## Simulate clusters of up to 10,000 nodes, and 1,000 hours of faults: out/bench/scale.json and .txt
	@ninja -C $(build) -j $(JOBS) scale_model
	@$(build)/bench/scale_model $(ARGS)

# ROWS: some of these.
ROWS ?= engine rpc service mixed
bench-python: configure $(if $(PYTHON),,$(pytorch)) ## Measure Python programs (steps, RPC, a service) beside PyTorch's: out/bench/python.json
	@ninja -C $(build) -j $(JOBS) torchtroupe_native troupe_program example_python_peers
	@for rows in $(ROWS); do PYTHONPATH=python TORCHTROUPE_LIBRARY=$$(echo $(build)/python/libtorchtroupe-*.so) OMP_NUM_THREADS=1 \
	  $(interpreter) bench/python/$${rows}_rows.py $(ARGS) || exit 1; done

# HOURS: simulated hours; 100,000 take two to three hours on one core.
HOURS ?= 100000
SOAK_SEED ?= 1
soak: configure ## Simulate clusters with drawn faults for HOURS hours from SOAK_SEED on; a broken promise prints seed and event
	@ninja -C $(build) -j $(JOBS) scale_model
	@$(build)/bench/scale_model --only soak_hours --hours $(HOURS) --seed $(SOAK_SEED) $(ARGS)

# Mutants: small faults. Those that survive show what no test looks at.
FILES ?= messages/*.*pp engine/*.*pp engine/drop_in/*.*pp engine/protocol/*.*pp devices/*.*pp devices/cuda/*.*pp actors/*.*pp actors/*/*.*pp
N ?= 20
SEED ?= 1
mutate: configure ## Put small faults in and tell which no test notices: make mutate FILES='engine/*.cpp' N=20 SEED=1
	@/usr/bin/python3 tests/mutation/mutate.py --files $(FILES) --count $(N) --seed $(SEED) --jobs $(JOBS) $(ARGS)

# What decides, and knows no actor, thread, clock, socket or tensor.
CORES := engine/protocol/*.?pp $(addprefix actors/calls/,answers_under_way.hpp call_pool.hpp calls_made.?pp calls_taken.?pp) \
  $(addprefix actors/membership/,greetings.?pp heard_members.?pp known_members.?pp member_table.?pp neighbours.?pp roster.?pp) \
  $(addprefix actors/transfers/,piece_window.?pp shipments.?pp)
mutate-cores: N = 100
mutate-cores: configure ## Put small faults into the cores and tell which no drawn or explored test notices: make mutate-cores N=100 SEED=1
	@/usr/bin/python3 tests/mutation/mutate.py --files $(CORES) --together --count $(N) --seed $(SEED) --jobs $(JOBS) --label explored \
	  --targets protocol_test actors_cores_test actors_simulated_cluster_test --patience 300 $(ARGS)

docs: ## Make the reference of the installed headers with Doxygen, which is installed if missing: build/docs/html/index.html
	@{ command -v cmake && command -v doxygen; } >/dev/null || cmake/deps.sh cmake doxygen
	@cmake -P cmake/reference/run.cmake
	@echo "docs: build/docs/html/index.html"

lint: ## Check format and spelling; with TIDY=1 also run clang-tidy on what differs from main, with TIDY=last on what changed last
	@cmake/lint.sh $(TIDY)

format: ## Put every source file into the format that lint checks
	@cmake/lint.sh format

bundle: configure ## Make an archive of programs, tests, benchmarks and libraries for another machine with libtorch
	@ninja -C $(build) -j $(JOBS) bundle

install: build ## Install libraries, headers and the program: make install PREFIX=$HOME/.local
	@cmake --install $(build) --prefix $(PREFIX)

clean: ## Remove what was built (not .venv, not out)
	rm -rf build

help: ## Show this
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { sub("%", "NAME", $$1); printf "make %-18s %s\n", $$1, $$2 } \
	  /^#   [A-Z_]+(, [A-Z_]+)*  / { print substr($$0, 2) }' Makefile
