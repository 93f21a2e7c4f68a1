# SPDX-License-Identifier: MIT
#
# A kernel whose policies are round-robin and tests/mistakes/mistaken.c. Included by the Makefile,
# whose flags it uses.

MISTAKEN_KERNEL_POLICIES := policies/rr.c tests/mistakes/mistaken.c
MISTAKEN_OBJECTS  := $(filter-out $(POLICIES:%=$B/%.o) $B/policy_table.c.o,$(KERNEL_OBJECTS)) \
                     $B/policies/rr.c.o $B/mistaken/mistaken.c.o $B/mistaken/policy_table.c.o

$B/mistaken/mistaken.c.o: tests/mistakes/mistaken.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

$B/mistaken/policy_table.c.o: tools/make_policy_table.sh
	@mkdir -p $(@D)
	@echo "  $@"
	@sh $< $(MISTAKEN_KERNEL_POLICIES) | $(CLANG) $(KERNEL_C) -x c -c - -o $@

$B/mistaken/first.elf: $(MISTAKEN_OBJECTS) $B/no_symbols.o kernel/boot/kernel.ld
	@echo "  $@"
	@$(LINK_KERNEL) --lto-obj-path=$B/mistaken/kernel.o -Map=$(@:.elf=.map) $(MISTAKEN_OBJECTS) $B/no_symbols.o -o $@

$B/mistaken/symbols.S: tools/make_symbols.sh $B/mistaken/first.elf
	sh $< $B/mistaken/first.map > $@

$B/mistaken/kernel.elf: $B/mistaken/first.elf $B/mistaken/symbols.o
	@echo "  $@"
	@$(LINK_KERNEL) $(filter %.S.o,$(MISTAKEN_OBJECTS)) $B/mistaken/symbols.o $B/mistaken/kernel.o -o $@

# The simulator with that policy and all others, as users build it: without sanitizers.

MISTAKEN_SIMULATOR := $(addprefix $B/sim/,$(filter-out policy_table.o engine_table.o,$(SIMULATOR_PARTS)) \
                        main.o crash_report.o)

$B/mistaken/engine.o: tests/mistakes/mistaken.c sim/engine.c Makefile sim/sim.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(SIMULATOR_C) -DENGINE=engine_mistaken -DPOLICY=policy_mistaken -include $< -c sim/engine.c -o $@

$B/mistaken/policy_table.c: tools/make_policy_table.sh $B/policies.list
	@mkdir -p $(@D)
	@sh $< $(POLICIES) tests/mistakes/mistaken.c > $@

$B/mistaken/engine_table.c: sim/make_engine_table.sh $B/mistaken/policy_table.c
	@sh $^ > $@

$B/mistaken/schedlab-sim: $B/mistaken/engine.o $B/mistaken/policy_table.c $B/mistaken/engine_table.c \
                          $(MISTAKEN_SIMULATOR)
	@echo "  $@"
	@$(HOST_CC) $(filter-out -MMD -MP,$(HOST_C)) $^ -o $@
