# SPDX-License-Identifier: MIT
#
# make simulator   build/sim/schedlab-sim, and the library as build/sim/simulator.a and
#                  build/sim/libschedlab-sim.so
#
# make fuzz        libFuzzer, for FUZZ_SECONDS with each program of tests/sim/fuzz_*.c
#
# Included by the Makefile, whose flags it uses. The engine is compiled once for each policy, from
# the policy's file and sim/engine.c: the same source, unchanged.

SIMULATOR_SOURCES  := $(filter-out sim/engine.c sim/main.c sim/crash_report.c sim/sched_ext/absent.c, \
                          $(sort $(wildcard sim/*.c sim/sched_ext/*.c)))
SIMULATOR_ENGINES  := $(POLICIES:policies/%.c=engines/%.o)
SIMULATOR_OBJECTS  := $(SIMULATOR_SOURCES:sim/%.c=%.o) $(SIMULATOR_ENGINES) registry.o \
                      policy_table.o engine_table.o costs_table.o
SIMULATOR_PARTS    := $(SIMULATOR_OBJECTS) build_name.o
SIMULATOR_C        := $(HOST_C) $(PIC)
SIMULATOR_SAFE     := -O1 -fno-omit-frame-pointer -fstrict-flex-arrays=3 \
                      -fsanitize=address,undefined -fno-sanitize-recover=all
# One set of objects is for tests and for the fuzzers, which measure coverage. A sanitizer's reports
# have line numbers.
SIMULATOR_TRIED    := $(filter-out -O2,$(SIMULATOR_C)) $(SIMULATOR_SAFE) -fsanitize=fuzzer-no-link -gline-tables-only
SIMULATOR_TESTS    := $(patsubst tests/sim/%.c,$B/sim-tests/%,$(wildcard tests/sim/*_test.c))

SIMULATOR_FUZZ     := $(patsubst tests/sim/%.c,$B/sim-fuzz/%,$(wildcard tests/sim/fuzz_*.c))
FUZZ_SECONDS       ?= 600

.PHONY: simulator simulator-tests fuzz $(SIMULATOR_FUZZ:%=%.run)
simulator: $B/sim/schedlab-sim $B/sim/simulator.a $B/sim/libschedlab-sim.so
simulator-tests: $(SIMULATOR_TESTS) $B/scenario_simulator $B/sim-safe/schedlab-sim

# The C name of an engine: a - in the policy's name becomes a _.
engine_of = $(subst -,_,$(notdir $(1)))

# $(1): directory in build/. $(2): which compiler. $(3): flags. $(4): additional flags of engines.
define SIMULATOR_RULES
$B/$(1)/engines/%.o: policies/%.c sim/engine.c Makefile sim/sim.mk
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$($(2)) $(3) $(4) -DENGINE=engine_$$(call engine_of,$$*) -DPOLICY=policy_$$(call engine_of,$$*) \
	    -include $$< -c sim/engine.c -o $$@

$B/$(1)/%.o: sim/%.c Makefile sim/sim.mk
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$($(2)) $(3) -c $$< -o $$@

$B/$(1)/registry.o: policies/support/registry.c Makefile sim/sim.mk
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$($(2)) $(3) -c $$< -o $$@

$B/$(1)/%_table.o: $B/%_table.c
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$($(2)) $(3) -c $$< -o $$@

# Identifies the build, by a hash of everything that it is made of: it restores only its own
# checkpoints.
$B/$(1)/build_name.o: $(SIMULATOR_OBJECTS:%=$B/$(1)/%)
	@echo "  $$@"
	@hash=$$$$(cat $$^ | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-64) && \
	    echo "const char build_name[] = \"$$$$hash\";" | $$($(2)) $(filter-out -MMD -MP,$(3)) -x c -c - -o $$@

$B/$(1)/simulator.a: $(SIMULATOR_PARTS:%=$B/$(1)/%)
	@echo "  $$@"
	@rm -f $$@
	@$$(ARCHIVER) rcs $$@ $$^

$B/$(1)/schedlab-sim: $B/$(1)/main.o $B/$(1)/crash_report.o $B/$(1)/simulator.a
	@echo "  $$@"
	@$$($(2)) $(3) $$^ -o $$@
endef
$(eval $(call SIMULATOR_RULES,sim,HOST_CC,$(SIMULATOR_C)))
# Optimising engines would take longer than the tests gain from it.
$(eval $(call SIMULATOR_RULES,sim-safe,SYSTEM_CLANG,$(SIMULATOR_TRIED),-O0))

# The library for other languages. It contains its own headers, so that bindings can never read the
# declarations of another build. A compiler with a cache does not see that an included file has
# changed, so the command contains a checksum of the headers.
$B/sim/declarations.o: sim/declarations.S $(wildcard sim/*.h abi/*.h) Makefile sim/sim.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) -DHEADERS=$$(cat $(filter %.h,$^) | cksum | cut -d' ' -f1) -c $< -o $@

$B/sim/libschedlab-sim.so: $(SIMULATOR_PARTS:%=$B/sim/%) $B/sim/declarations.o sim/library.map
	@echo "  $@"
	@$(HOST_CC) -shared $(call offering,sim/library.map) $(filter %.o,$^) -o $@

$B/engine_table.c: sim/make_engine_table.sh $B/policy_table.c
	@mkdir -p $(@D)
	sh $< $B/policy_table.c > $@

$B/costs_table.c: sim/make_costs_table.sh sim/costs/kernel.json
	@mkdir -p $(@D)
	sh $^ > $@

$B/sim-tests/%: tests/sim/%.c $B/sim-safe/simulator.a Makefile sim/sim.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -O2,$(HOST_C)) $(SIMULATOR_SAFE) $(filter tests/%.c %.a,$^) -o $@

# Runs BPF code without an image; started by pytest.
$B/sched-ext-tests/run_code: tests/sched_ext/run_code.c $B/sim-safe/sched_ext/interpreter.o Makefile sim/sim.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -O2,$(HOST_C)) $(SIMULATOR_SAFE) -fsanitize=fuzzer-no-link $(filter %.c %.o,$^) -o $@

# libFuzzer. `make fuzz` runs each program for this many seconds, and keeps its corpus and its
# findings in build/fuzz.
fuzz: $(SIMULATOR_FUZZ:%=%.run)

$(SIMULATOR_FUZZ:%=%.run): %.run: %
	@mkdir -p $B/fuzz/$(<F)
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=2000 -artifact_prefix=$B/fuzz/$(<F)- $B/fuzz/$(<F)

LINK_FUZZ = $(SYSTEM_CLANG) $(filter-out -O2,$(HOST_C)) $(SIMULATOR_SAFE) -fsanitize=fuzzer $(filter tests/%.c %.o %.a,$^) -o $@

$(SIMULATOR_FUZZ): $B/sim-fuzz/%: tests/sim/%.c $B/sim-safe/simulator.a Makefile sim/sim.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(LINK_FUZZ)

# The same with a round-robin that is sometimes wrong: verifies that the fuzzer finds the error.
$B/sim-fuzz/broken_engine.o: tests/sim/broken_policy.c sim/engine.c Makefile sim/sim.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(SIMULATOR_TRIED) -Ipolicies -DENGINE=engine_rr -DPOLICY=policy_rr -include $< \
	    -c sim/engine.c -o $@

$B/sim-fuzz/broken: tests/sim/fuzz_machine.c $B/sim-fuzz/broken_engine.o $B/sim-safe/simulator.a \
                    Makefile sim/sim.mk
	@echo "  $@"
	@$(LINK_FUZZ)

# Runs the scenarios of tests/scenario on the simulator; started by pytest.
$B/scenario_simulator: tests/scenario/simulator.c $B/sim-safe/simulator.a Makefile sim/sim.mk
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -O2,$(HOST_C)) $(SIMULATOR_SAFE) $(filter %.c %.a,$^) -o $@

# Measures the cost of a decision, compared with a bare loop over the policy.
$B/simulator_speed: bench/simulator_speed.c $B/sim/simulator.a Makefile sim/sim.mk
	@echo "  $@"
	@$(HOST_CC) $(HOST_C) $(filter %.c %.a,$^) -o $@
