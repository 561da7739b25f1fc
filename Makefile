# Shortcuts; `make` alone lists them.
PYTHON = .venv/bin/python
PYTEST = $(PYTHON) -m pytest --durations=15
# Campaigns that `make bench-soak` kills.
KILLS = 50
# The endpoints that every run of the tests looks at.
IN_CI = test_contract and (quic-go or aioquic or picoquic)

SHELL_SCRIPTS = $(shell grep -lsE '^\#!.*\<(ba)?sh\>' .ci/* scripts/* ns3-scenarios/bin/* link-tools/bin/* virtual-time/bin/* endpoints/*/*)
BIOME = build/vendor/biomejs/biome
# Tests without engine run in as many processes as there are CPUs; a process that is done takes tests from others.
PARALLEL = -n logical --dist worksteal

.PHONY: help setup setup-dev demo images test test-engine test-no-engine test-fast test-endpoints test-real-link bench-variants lint coverage bench-link bench-parallel bench-cluster bench-site bench-trace bench-trace-fuzz bench-soak clean bench-plots bench-compare bench-coverage bench-faults bench-concurrent-start bench-real-vs-emulated bench-ssh-cuts bench-daemon-kills bench-virtual gallery docs

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup:  ## make this machine ready: packages, Python environment, Docker engine (root)
	@scripts/setup

setup-dev:
	@scripts/setup --dev

demo: setup  ## measure quic-go and aioquic over two links, and picoquic with BBR over a satellite link that loses packets
	$(PYTHON) run.py -s quic-go aioquic -c quic-go aioquic -t terrestrial sat --repetitions 1
	$(PYTHON) run.py -s picoquic:bbr -c picoquic -t satloss --repetitions 1

images: setup  ## build the simulator and the endpoints that tests need
	@$(PYTHON) run.py images build simulator quic-go aioquic picoquic

test: setup-dev images  ## lint and all tests: those with the engine beside all others; each part is shown when it ends
	@$(PYTHON) run.py images build virtual-time
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target test-engine test-no-engine

test-engine:  ## tests with the real engine; most of the time they wait for links
	$(PYTEST) -m "engine and not endpoints and not laboratory"
	$(PYTEST) -m endpoints -k "$(IN_CI)"

test-no-engine: lint  ## lint, and all tests without the engine; links and endpoints take precedence over them
	nice -n 10 $(PYTEST) $(PARALLEL) -m "not engine"

test-fast: setup-dev  ## the tests that need neither engine nor browser
	$(PYTEST) $(PARALLEL) -m "not engine and not browser"

test-endpoints: setup-dev  ## the contract of every endpoint that has been built, with quic-go, both roles; variants (an hour)
	$(PYTEST) -m endpoints

test-real-link: setup-dev images  ## real links, between two Docker daemons on this machine (needs openssh-server)
	$(PYTEST) -m laboratory

bench-variants: images  ## check that every variant takes effect after a loss (half an hour)
	$(PYTHON) bench/variants.py

lint: setup-dev  ## style, format, types and spelling; shell scripts, C and C++, scripts and style sheets of the website
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/codespell
	.venv/bin/shellcheck $(SHELL_SCRIPTS)
	.venv/bin/clang-format --dry-run --Werror $(wildcard ns3-scenarios/*/*.cc ns3-scenarios/*/*.h virtual-time/init/*.[ch])
	@if [ -x $(BIOME) ]; then $(BIOME) lint --error-on-warnings; else echo "Biome is missing: web/ is not checked"; fi

coverage: setup-dev  ## which lines of interop/ and plots/ the tests without engine and browser reach; build/coverage
	$(PYTEST) $(PARALLEL) -m "not engine and not browser" --cov --cov-report=term:skip-covered --cov-report=html

gallery: setup  ## figures of the campaigns RESULTS="DIR…" into docs/gallery and docs/gallery.md
	$(PYTHON) scripts/gallery.py $(RESULTS)

docs: setup-dev  ## build the documentation site into build/docs
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

bench-plots: setup  ## measure how long figures take
	$(PYTHON) bench/plot_speed.py

bench-compare: setup  ## measure how often compare raises false alarms and overlooks drops
	$(PYTHON) bench/compare.py

bench-coverage: setup  ## measure how often intervals cover the true value, and false alarms of step detection (ten minutes)
	$(PYTHON) bench/coverage.py

bench-link: images  ## measure the emulated link itself: rate, delay, loss
	$(PYTHON) bench/link.py

bench-parallel: images  ## compare the same pairs alone and side by side: time saved, effect on goodput
	$(PYTHON) run.py images build quinn ngtcp2
	$(PYTHON) bench/parallel.py -o build/bench-parallel/$$(date +%FT%H-%M-%S)

bench-real-vs-emulated: setup-dev images  ## compare goodput over real and emulated links (half an hour, needs openssh-server)
	$(PYTHON) run.py images build quinn
	$(PYTHON) bench/real_vs_emulated.py -o build/bench-real-vs-emulated/$$(date +%FT%H-%M-%S)

bench-ssh-cuts: setup-dev images  ## cut ssh 30 times during campaigns over a real link; count lost runs and wrong verdicts
	$(PYTHON) bench/ssh_cuts.py

bench-cluster: setup-dev images  ## measure one and two workers of a Dask cluster; kill workers ten times (half an hour)
	$(PYTHON) run.py images build quinn ngtcp2
	$(PYTHON) bench/cluster.py --kills 10 -o build/bench-cluster/$$(date +%FT%H-%M-%S)

bench-virtual: images  ## compare virtual with real time; measure how far runs repeat, their cost, throughput (a day; PART="cost …")
	$(PYTHON) run.py images build virtual-time quiche quinn ngtcp2 msquic s2n-quic
	$(PYTHON) bench/virtual.py $(if $(PART),--part $(PART)) -o build/bench-virtual/$$(date +%FT%H-%M-%S)

bench-site: setup-dev  ## measure the website: matrix, filters, a million packets, build time
	$(PYTHON) bench/site.py

bench-trace: setup-dev  ## measure how long the analysis of two traces of 10 MiB takes, and pyshark's time
	$(PYTHON) bench/trace.py

bench-trace-fuzz: setup-dev  ## analyse 1,000 damaged traces: no exception, no hang, no false success
	$(PYTHON) bench/trace_fuzz.py

bench-faults: setup-dev  ## faults without an engine: 1,000 faulty engines, 2,000 hostile archives, 50 full disks, 2,000 runs (half an hour)
	$(PYTHON) bench/faults.py
	$(PYTHON) bench/archives.py
	$(PYTHON) bench/full_disk.py
	$(PYTHON) bench/endurance.py

bench-concurrent-start: images  ## start 20 campaigns at the same moment: one runs, 19 fail and name it
	$(PYTHON) bench/concurrent_start.py

bench-soak: images  ## kill KILLS=50 campaigns with kill -9 at random moments; count lost runs and left-over containers
	$(PYTHON) bench/soak.py --kills $(KILLS)

bench-daemon-kills: images  ## kill a Docker daemon 20 times and freeze it 10 times in a campaign; count lost runs and wrong verdicts
	$(PYTHON) bench/daemon_kills.py

clean:  ## remove what an interrupted campaign left at the engine
	$(PYTHON) run.py clean
