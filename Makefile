# Shortcuts; `make` alone lists them.
PYTHON = .venv/bin/python
PYTEST = $(PYTHON) -m pytest --durations=15
# Campaigns that `make bench-soak` kills, and their clock.
KILLS = 50
CLOCK = real
# Tests in virtual time, at an engine of their own; no other test disturbs them, so that they yield to all others.
VIRTUAL = tests/engine/test_virtual_links.py tests/engine/test_time_shares.py tests/engine/test_virtual_time.py tests/engine/test_workflows.py \
    tests/virtual_time
# Tests with both clocks.
BOTH_CLOCKS = tests/engine/test_gateways.py tests/engine/test_tcp.py tests/engine/test_vpn.py
# Tests in real time, at another engine of their own, beside those at the machine's engine. The contract is tested with
# aioquic in both roles, and quic-go as its peer; `make test-endpoints` tests all.
BESIDE = tests/engine/test_cluster.py tests/engine/test_functional.py $(BOTH_CLOCKS)
CONTRACT = tests/endpoints/test_contract.py
IN_CI = (not test_contract or aioquic) and not [virtual]
# Images that these tests need, and those without which they skip some.
VIRTUAL_IMAGES = simulator virtual-time quic-go aioquic picoquic base endpoint-base --also nginx curl link-gateways
BESIDE_IMAGES = simulator quic-go aioquic base endpoint-base --also nginx curl link-gateways

SHELL_SCRIPTS = $(shell grep -lsE '^\#!.*\<(ba)?sh\>' .ci/* ci/* scripts/* ns3-scenarios/bin/* link-gateways/bin/* link-tools/bin/* virtual-time/bin/* endpoints/*/*)
BIOME = build/vendor/biomejs/biome
# All checkouts share it, so that mypy does not check a new one from the beginning. It compares sources by their hash.
MYPY_CACHE = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quicsat/mypy
# Tests without the engine wait for other programs half of the time, so there are two processes more than CPUs. A process
# that is done takes tests from others.
PARALLEL = -n $(shell expr $$(nproc) + 2) --dist worksteal

# Seconds for a test that gets a CPU only when no other one needs it.
STARVED = 1200

# Thousands of processes start; without bytecode each would compile the program anew.
unexport PYTHONDONTWRITEBYTECODE
# The matrices of tests are small; threads of NumPy that wait for larger ones cost CPU time.
export OPENBLAS_NUM_THREADS = 1
# Tests without the engine make many small files, which takes less time in memory than on a disk. Others do not use it:
# what a container writes there counts as its memory.
ifndef TMPDIR
ifeq ($(shell test $$(df --output=avail -m /dev/shm 2>/dev/null | tail -1) -ge 4000 2>/dev/null && echo enough),enough)
test-no-engine test-fast: export TMPDIR = /dev/shm
endif
endif

.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup:  ## make this machine ready: packages, Python environment, Docker engine (root)
	@scripts/setup

setup-dev:
	@scripts/setup --dev

demo: setup  ## measure quic-go and aioquic over two links, and picoquic with BBR over a satellite link that loses packets
	$(PYTHON) run.py demo

dist: setup-dev  ## build the source distribution and the wheel into build/dist
	rm -rf build/dist
	$(PYTHON) -m hatchling build --directory build/dist

demo-wheel: dist  ## install the wheel into an environment of its own, and run its demo in an empty directory (root)
	rm -rf build/wheel
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet build/dist/*.whl
	build/wheel/bin/python -m pip check
	mkdir build/wheel/work && cd build/wheel/work && ../bin/quicsat demo

release-notes:  ## print the release notes of VERSION, with links into REPOSITORY
	@scripts/release_notes.py $(VERSION) $(REPOSITORY)

images: setup  ## build the simulator and the endpoints that tests need
	@$(PYTHON) run.py images build simulator quic-go aioquic picoquic

test: setup-dev  ## lint and all tests: those with the engine beside all others; each part is shown when it ends
	@$(MAKE) --no-print-directory --jobs=4 --keep-going --output-sync=target test-engine test-beside test-virtual test-no-engine

test-images: setup
	@$(PYTHON) run.py images build simulator quic-go aioquic picoquic virtual-time link-gateways

test-engine test-beside test-virtual: test-images

# Otherwise each of the parallel processes compiles all tests. What fails here fails in the tests, too, and is shown there.
test-bytecode: setup-dev
	@$(PYTEST) --collect-only -qq -m "not engine" >/dev/null || true

test-engine:  ## tests with the machine's engine; most of the time they wait for links
	$(PYTEST) tests/engine $(addprefix --ignore=,$(BESIDE) $(VIRTUAL))

# Where no second engine can be started, its tests run at the machine's engine, after the others.
ifeq ($(shell unshare --mount --pid --net --fork sh -c 'command -v dockerd' 2>/dev/null),)
test-beside: OWN_ENGINE =
test-virtual: OWN_ENGINE =
test-beside: test-engine
test-virtual: test-beside
else
test-beside: OWN_ENGINE = $(PYTHON) -m tests.own_engine $(BESIDE_IMAGES) --run
test-virtual: OWN_ENGINE = nice $(PYTHON) -m tests.own_engine $(VIRTUAL_IMAGES) --run
endif
test-beside:  ## tests with an engine of their own: endpoints, functional tests, a cluster, gateways
	$(OWN_ENGINE) $(PYTEST) $(CONTRACT) $(BESIDE) -k "$(IN_CI)"

test-virtual:  ## tests in virtual time, with another engine of their own
	$(OWN_ENGINE) $(PYTEST) $(VIRTUAL) $(BOTH_CLOCKS) -k "not [real]"

test-no-engine: lint test-bytecode  ## lint, and all tests without the engine; links and endpoints take precedence over them
	$(PYTHON) -m tests.low_priority $(PYTEST) $(PARALLEL) --timeout=$(STARVED) -m "not engine"

test-fast: setup-dev  ## the tests that need neither engine nor browser
	$(PYTEST) $(PARALLEL) -m "not engine and not browser"

test-endpoints: setup-dev  ## the contract of every endpoint that has been built, with quic-go, both roles; variants (an hour)
	$(PYTEST) -m endpoints

raise: setup-dev  ## raise the version of NAME=quinn to the newest one (or VERSION=…), rebuild and test its image, write the changed facts
	$(PYTHON) -m scripts.raise_version $(NAME) $(VERSION)

test-arm64: setup-dev images  ## build picoquic and aioquic for arm64, and check them with QEMU (qemu-user-static, arch-test; an hour)
	$(PYTHON) -m tests.arm64

# QIR_PAGE=DIR QIR_SE_PAGE=DIR LIBRARIES=DIR, and for scripts QIR_SE=DIR QIR_SE_PYTHON=FILE CAMPAIGN=DIR
test-runner-pages: setup-dev  ## show exports in the web pages of QIR and QIR-SE, and read them with their scripts
	QIR_PAGE=$(QIR_PAGE) QIR_SE_PAGE=$(QIR_SE_PAGE) LIBRARIES=$(LIBRARIES) QIR_SE=$(QIR_SE) \
		QIR_SE_PYTHON=$(QIR_SE_PYTHON) CAMPAIGN=$(CAMPAIGN) \
		$(PYTEST) tests/browser/test_runner_pages.py tests/results/test_runner_scripts.py

# QVIS=DIR RUNS="DIR ..."
test-qvis: setup-dev  ## show exported qlogs of runs in all views of qvis, a build of which is in QVIS
	QVIS=$(QVIS) RUNS="$$(echo $(RUNS))" $(PYTEST) -s tests/browser/test_qvis.py

test-real-link: setup-dev images  ## real links, between two Docker daemons on this machine (needs openssh-server)
	$(PYTEST) -m laboratory

# The clock of `make test-all-cases` is virtual unless CLOCK=real is given.
test-all-cases: CLOCK = virtual
test-all-cases: images  ## run each built-in test case once with small files; CLOCK=real: in real time (half an hour)
	@$(PYTHON) run.py images build virtual-time link-gateways ngtcp2 nginx curl
	$(PYTHON) -m bench.all_cases --clock $(CLOCK) -o build/all-cases/$$(date +%FT%H-%M-%S)

bench-variants: images  ## check that every variant takes effect after a loss (half an hour)
	$(PYTHON) -m bench.variants

lint: setup-dev  ## style, format, types and spelling; shell scripts, C and C++, scripts and style sheets of the website
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy --cache-dir $(MYPY_CACHE)
	.venv/bin/codespell
	.venv/bin/shellcheck $(SHELL_SCRIPTS)
	.venv/bin/clang-format --dry-run --Werror $(wildcard ns3-scenarios/*/*.cc ns3-scenarios/*/*.h virtual-time/init/*.[ch] endpoints/*/*.[ch])
	@if [ -x $(BIOME) ]; then $(BIOME) lint --error-on-warnings web/assets; else echo "Biome is missing: web/ is not checked"; fi

generate: setup-dev  ## write again what follows from the code: the schema of results, the command reference, tables of the reference
	$(PYTHON) -m scripts.generate

coverage: setup-dev  ## which lines of quicsat/ and plots/ the tests without engine and browser reach; build/coverage
	$(PYTEST) $(PARALLEL) -m "not engine and not browser" --cov --cov-report=term:skip-covered --cov-report=html

gallery: setup  ## figures of the campaigns RESULTS="DIR…" into docs/gallery and docs/gallery.md
	$(PYTHON) -m scripts.gallery $(RESULTS)

docs: setup-dev  ## build the documentation into build/docs, docs/paper also as a PDF and its data as an archive, and a sample website into build/docs/sample
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict
	for file in paper/data/matrix-*.json.gz; do \
	    place=build/sample/$$(basename $$file .json.gz); \
	    mkdir -p $$place && gunzip --stdout $$file >$$place/result.json || exit 1; \
	done
	$(PYTHON) run.py site build/sample/* -o build/docs/sample
	paper/pdf
	paper/archive build/docs/paper/data-set.tar.gz

bench-compare: setup  ## measure how often compare raises false alarms and overlooks drops
	$(PYTHON) -m bench.compare

bench-gate-looks: setup-dev  ## simulate gate: how often is it red for equal builds, and how often does it find a loss?
	$(PYTHON) -m bench.gate_looks

bench-gate-changes: images  ## gate with irrelevant and planted changes of four implementations (hours; continues in build/gate-changes)
	@$(PYTHON) run.py images build virtual-time ngtcp2 quiche
	$(PYTHON) -m bench.gate_changes -o build/gate-changes

bench-members: images  ## measure what 20 members of a pair in virtual time cost, in runs of one member (an hour)
	@$(PYTHON) run.py images build virtual-time quiche
	$(PYTHON) -m bench.members

bench-coverage: setup  ## measure how often intervals cover the true value, and false alarms of step detection (ten minutes)
	$(PYTHON) -m bench.coverage

bench-equivalence: setup  ## measure how often both clocks are wrongly called equivalent or different, and the power (20 minutes)
	$(PYTHON) -m bench.equivalence

# REAL and VIRTUAL: campaigns, by default those of the report. FIDELITY="--json FILE --figure FILE --fitted CLIENT…"
fidelity: REAL = $(foreach link,terrestrial sat loss,$(wildcard docs/measurements/data/fidelity-real-$(link)-*.json.gz))
fidelity: VIRTUAL = $(wildcard docs/measurements/data/fidelity-virtual-*.json.gz)
fidelity: setup  ## compare goodput in virtual and real time: which pairs and servers are equivalent (REAL="DIR…" VIRTUAL="DIR…")
	@$(PYTHON) -m bench.fidelity $(REAL) --virtual $(VIRTUAL) $(FIDELITY)

bench-link: images  ## measure the emulated link itself: rate, delay, loss
	$(PYTHON) -m bench.link

paper: images  ## measure all implementations over the links of arXiv 2202.08228, queues, variants, sweeps (days; PAPER="--estimate")
	$(PYTHON) -m paper.measure $(PAPER)

paper-report: setup-dev  ## write docs/paper from paper/data, or from the campaigns of `make paper` (RESULTS=results/paper)
	$(PYTHON) -m paper $(RESULTS)

test-paper: setup-dev  ## compute docs/paper again from its data set, and test the report's statistics (a minute)
	$(PYTEST) paper/tests

bench-trace: setup-dev  ## measure how long the analysis of two traces of 10 MiB takes, and pyshark's time
	$(PYTHON) -m bench.trace

bench-hostile: setup-dev  ## commands on 2,500 hostile results and 200 archives: nothing outside touched, no traceback (40 minutes)
	$(PYTHON) -m bench.hostile

bench-crashes: images  ## crashes of endpoints and faults of the machine, and whom the verdicts blame (an hour)
	@$(PYTHON) run.py images build virtual-time
	$(PYTHON) -m bench.crashes

bench-worst-cases: setup-dev  ## memory and CPU time of the largest and slowest evidence that the limits permit (half an hour)
	$(PYTHON) -m bench.worst_cases

bench-text-sinks: setup-dev  ## hostile words in everything that quicsat writes, opened by Chromium, Apache, nginx, Caddy and LaTeX (10 minutes)
	$(PYTHON) -m bench.text_sinks

bench-soak: images  ## kill KILLS=50 campaigns (CLOCK=virtual: in virtual time) with kill -9 at random moments; count lost runs and left-over containers
	$(PYTHON) -m bench.soak --kills $(KILLS) --clock $(CLOCK)

clean:  ## remove what an interrupted campaign left at the engine
	$(PYTHON) run.py clean
