# SPDX-License-Identifier: MIT
#
# make apart       build/apart/libschedlab-apart.so: the simulator with one policy, which runs in a
#                  separate machine (sim/apart/apart.h)
#
# Included by the Makefile, after sim/sim.mk.

APART_OBJECTS := $(addprefix $B/sim/,$(SIMULATOR_SOURCES:sim/%.c=%.o) registry.o declarations.o) \
                 $(addprefix $B/apart/,engine.o policy.o wasmtime.o costs_table.o build_name.o)

.PHONY: apart
apart: $B/apart/libschedlab-apart.so

$B/apart/engine.o: sim/engine.c sim/apart/policy.h Makefile sim/sim.mk sim/apart/apart.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(SIMULATOR_C) -DENGINE=engine_separate -DPOLICY=policy_separate -include sim/apart/policy.h \
	    -c sim/engine.c -o $@

$B/apart/policy.o $B/apart/wasmtime.o: $B/apart/%.o: sim/apart/%.c Makefile sim/sim.mk sim/apart/apart.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(SIMULATOR_C) -c $< -o $@

# Costs of policies that are not in this build are left out.
$B/apart/costs_table.c: sim/make_costs_table.sh sim/costs/kernel.json sim/apart/apart.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@sh sim/make_costs_table.sh sim/costs/kernel.json | sed 's/,[a-z_]*\.[^,"]*//g' > $@

$B/apart/costs_table.o: $B/apart/costs_table.c
	@echo "  $@"
	@$(HOST_CC) $(filter-out -MMD -MP,$(SIMULATOR_C)) -c $< -o $@

# Its checkpoints would need the policy, too: it restores only its own.
$B/apart/build_name.o: sim/apart/apart.mk
	@mkdir -p $(@D)
	@echo 'const char build_name[64] = "apart";' | $(HOST_CC) $(filter-out -MMD -MP,$(SIMULATOR_C)) -x c -c - -o $@

$B/apart/libschedlab-apart.so: $(APART_OBJECTS) sim/library.map
	@echo "  $@"
	@$(HOST_CC) -shared $(call offering,sim/library.map) $(filter %.o,$^) -o $@

# The kernel without policies, in one object that is linked with one policy. It is not optimised as
# a whole, because that would take longer than the rest of a grading.
APART_KERNEL := $(filter-out $(POLICIES),$(KERNEL_SOURCES))

$B/apart/kernel/%.o: % Makefile sim/apart/apart.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(filter-out -flto,$(KERNEL_C)) -c $< -o $@

$B/apart/kernel.o: $(APART_KERNEL:%=$B/apart/kernel/%.o) $B/no_symbols.o
	@echo "  $@"
	@$(LINKER) -r --no-relax $^ -o $@

# The whole kernel, with all policies: for a changed copy of the sources it is ready in a second.
APART_WHOLE := $(KERNEL_SOURCES:%=$B/apart/kernel/%.o) $B/apart/kernel/$B/policy_table.c.o $B/no_symbols.o

$B/apart/kernel.elf: $(APART_WHOLE) kernel/boot/kernel.ld
	@echo "  $@"
	@$(LINKER) -T kernel/boot/kernel.ld --no-relax -z max-page-size=4096 --fatal-warnings $(APART_WHOLE) -o $@
