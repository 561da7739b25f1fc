# Shortcuts; `make` alone lists them.
PYTHON = .venv/bin/python
# Campaigns that `make soak` kills.
KILLS = 50
# The endpoints that every run of the tests looks at.
IN_CI = test_contract and (quic-go or aioquic or picoquic)

.PHONY: help setup setup-dev demo images test test-fast test-endpoints test-real-link variants lint bench-link bench-parallel bench-cluster bench-site bench-trace mutate soak clean bench-plots bench-compare bench-faults bench-starts bench-agreement bench-ssh-cuts bench-daemon gallery

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup:  ## make this machine ready: packages, Python environment, Docker engine (root)
	@scripts/setup

setup-dev:
	@scripts/setup --dev

demo: setup  ## measure quic-go and aioquic over two links, and picoquic with BBR over a satellite link that loses packets
	$(PYTHON) run.py -s quic-go aioquic -c quic-go aioquic -t terrestrial sat --repetitions 1
	$(PYTHON) run.py -s picoquic:bbr -c picoquic -t satloss --repetitions 1

images: setup  ## build the simulator and the endpoints that tests need
	@$(PYTHON) run.py images build simulator quic-go aioquic picoquic

test: setup-dev images lint  ## all tests, those against the real engine too
	$(PYTHON) -m pytest -m "not engine"
	$(PYTHON) -m pytest -m "engine and not endpoints and not laboratory"
	$(PYTHON) -m pytest -m endpoints -k "$(IN_CI)"

test-fast: setup-dev  ## the tests that need neither engine nor browser
	$(PYTHON) -m pytest -m "not engine and not browser"

test-endpoints: setup-dev  ## the contract of every endpoint that has been built, with quic-go, both roles; variants (an hour)
	$(PYTHON) -m pytest -m endpoints

test-real-link: setup-dev images  ## real links, between two Docker daemons on this machine (needs openssh-server)
	$(PYTHON) -m pytest -m laboratory

variants: images  ## show that every variant takes effect: which congestion control does what after a loss (half an hour)
	$(PYTHON) bench/variants.py

lint: setup-dev  ## style, format and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

gallery: setup  ## figures of the campaigns RESULTS="DIR…" into docs/gallery and docs/gallery.md
	$(PYTHON) scripts/gallery.py $(RESULTS)

bench-plots: setup  ## how long figures take
	$(PYTHON) bench/drawing.py

bench-compare: setup  ## how often compare raises false alarms and overlooks drops
	$(PYTHON) bench/compare.py

bench-coverage: setup  ## how often the intervals hold the truth, and what the search for steps finds (ten minutes)
	$(PYTHON) bench/coverage.py

bench-link: images  ## measure the emulated link itself: rate, delay, loss
	$(PYTHON) bench/link.py

bench-parallel: images  ## the same pairs alone and side by side: time saved, and whether neighbours disturb
	$(PYTHON) run.py images build quinn ngtcp2
	$(PYTHON) bench/parallel.py -o build/bench-parallel/$$(date +%FT%H-%M-%S)

bench-agreement: setup-dev images  ## real links against emulated ones: the same goodputs? (half an hour, needs openssh-server)
	$(PYTHON) run.py images build quinn
	$(PYTHON) bench/agreement.py -o build/bench-agreement/$$(date +%FT%H-%M-%S)

bench-ssh-cuts: setup-dev images  ## 30 cuts of ssh during campaigns over a real link: counts what is lost, left or blamed
	$(PYTHON) bench/ssh_cuts.py

bench-cluster: setup-dev images  ## one worker of a Dask cluster and two, a Docker daemon each; ten kills of workers (half an hour)
	$(PYTHON) run.py images build quinn ngtcp2
	$(PYTHON) bench/cluster.py --kills 10 -o build/bench-cluster/$$(date +%FT%H-%M-%S)

bench-site: setup-dev  ## measure the website: matrix, filters, a million packets, build time
	$(PYTHON) bench/site.py

bench-trace: setup-dev  ## how long two traces of 10 MiB take, beside pyshark with one pass per query
	$(PYTHON) bench/trace.py

mutate: setup-dev  ## 1,000 damaged traces: none may end in an exception, in a hang or in a number
	$(PYTHON) bench/mutate.py

bench-faults: setup-dev  ## faults without an engine: 1,000 faulty ones, 2,000 hostile archives, 50 full disks, 2,000 runs (half an hour)
	$(PYTHON) bench/faults.py
	$(PYTHON) bench/archives.py
	$(PYTHON) bench/full_disk.py
	$(PYTHON) bench/endurance.py

bench-starts: images  ## 20 campaigns started at the same moment: one runs, 19 are told who does
	$(PYTHON) bench/starts.py

soak: images  ## KILLS=50 campaigns killed with kill -9 at random moments: counts what is lost or left
	$(PYTHON) bench/soak.py --kills $(KILLS)

bench-daemon: images  ## a Docker daemon of its own is killed 20 times and frozen 10 times in a campaign: what is lost, who is blamed
	$(PYTHON) bench/daemon_kills.py

clean:  ## remove what an interrupted campaign left at the engine
	$(PYTHON) run.py clean
