# Everything is built inside .venv and build/. `make demo` and `make test` need Python 3.10+, a C++20 compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BUILD_TOOLS := scikit-build-core nanobind cmake ninja
# Packages that ship the model files of the tests; their own dependencies are large and not needed.
MODEL_PACKAGES := magika silero-vad basic-pitch rapidocr-onnxruntime arabic-name-romanizer
NATIVE := CMakeLists.txt pyproject.toml $(shell find src cmake -name '*.cc' -o -name '*.h' -o -name '*.cmake' 2>/dev/null)
PYTHON_CODE := src tests examples benchmarks
CPP_CODE = $(shell git ls-files '*.cc' '*.h' '*.c')
FUZZ := build/sanitize/cmake/zoi_fuzz
# Building kernels with sanitizers takes a while, so only those are built that this machine can run.
ISAS = avx2$(if $(shell grep -m1 -o avx512vl /proc/cpuinfo),;avx512)
say = @printf '\033[1m==> %s\033[0m\n' '$(1)'

.PHONY: demo test fuzz sanitize test-gpu dev bench table lint format clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(call say,file types of this machine)
	@$(BIN)/python examples/file_types.py

test: $(VENV)/.test
	@$(MAKE) --no-print-directory $(FUZZ) || echo 'no sanitizers here: the fuzz test will be skipped'
	$(call say,tests)
	@$(BIN)/python -m pytest -q -n auto

# Damages .zoi files in a hundred thousand ways; AddressSanitizer and UndefinedBehaviorSanitizer watch.
fuzz: $(VENV)/.test $(FUZZ)
	$(call say,100000 mutations)
	@$(BIN)/python -m tests.fuzz.corpus build/corpus > /dev/null
	@$(FUZZ) 100000 $$(date +%s) build/corpus/*.zoi

# The tests of the kernels and of the C++ core, on a build with the same sanitizers.
sanitize: $(VENV)/.test $(FUZZ)
	$(call say,tests under the sanitizers)
	@$(BIN)/cmake --build build/sanitize/cmake --target _native
	@$(BIN)/python tests/fuzz/sanitized.py build/sanitize/cmake

# Needs an NVIDIA GPU; says so and succeeds where there is none.
test-gpu: $(VENV)/.test
	@$(PIP) --no-build-isolation --editable '.[gpu]'
	@$(BIN)/python -m pytest -q tests/gpu
	@$(BIN)/python benchmarks/gpu.py

dev: $(VENV)/.test

bench: $(VENV)/.test
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/table.py

table: $(VENV)/.test
	@$(BIN)/python benchmarks/table.py

lint: $(VENV)/.test
	@$(BIN)/ruff check $(PYTHON_CODE)
	@$(BIN)/ruff format --check $(PYTHON_CODE)
	@$(BIN)/mypy
	@$(BIN)/clang-format --dry-run -Werror $(CPP_CODE)

format: $(VENV)/.test
	@$(BIN)/ruff check --fix $(PYTHON_CODE)
	@$(BIN)/ruff format $(PYTHON_CODE)
	@$(BIN)/clang-format -i $(CPP_CODE)

clean:
	rm -rf $(VENV) build dist .demo

$(FUZZ): $(VENV)/.tools $(NATIVE) tests/fuzz/fuzz.cc
	$(call say,building with sanitizers)
	@$(BIN)/cmake -S . -B build/sanitize/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja '-DZOI_ISAS=$(ISAS)' \
	  -DZOI_SANITIZE=address,undefined -DPython_EXECUTABLE=$(abspath $(BIN))/python > /dev/null
	@$(BIN)/cmake --build build/sanitize/cmake --target zoi_fuzz
	@touch $@

$(VENV)/.made:
	$(call say,virtual environment)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "zoi needs Python 3.10 or newer; set PYTHON=")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade pip
	@touch $@

$(VENV)/.tools: $(VENV)/.made
	$(call say,build tools)
	@$(PIP) $(BUILD_TOOLS)
	@touch $@

# Installed in place, without isolation, so that a second build compiles only what has changed.
$(VENV)/.built: $(VENV)/.tools $(NATIVE)
	$(call say,building zoi)
	@$(PIP) --no-build-isolation --editable .
	@touch $@

$(VENV)/.demo: $(VENV)/.built
	$(call say,peers and models of the demo)
	@$(PIP) onnxruntime matplotlib
	@$(PIP) --no-deps magika
	@touch $@

$(VENV)/.test: $(VENV)/.built
	$(call say,peers and tools and models of the tests)
	@$(PIP) --no-build-isolation --editable '.[test,dev]'
	@$(PIP) --no-deps --ignore-requires-python $(MODEL_PACKAGES)
	@touch $@
