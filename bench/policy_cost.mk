# SPDX-License-Identifier: MIT
#
# Included by the Makefile, whose flags and objects of policies it uses.

POLICY_COST_OBJECTS = $B/bench/policy_cost.kernel.o $B/policy_table.c.o \
                      $(patsubst %,$B/%.o,$(POLICIES) $(wildcard policies/support/*.c))

$B/bench/policy_cost.kernel.o: bench/policy_cost.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

$B/policy_cost.elf: $(POLICY_COST_OBJECTS) bench/policy_cost.ld
	@echo "  $@"
	@$(LINKER) -T bench/policy_cost.ld --no-relax --fatal-warnings $(POLICY_COST_OBJECTS) -o $@

.PHONY: policy-cost
policy-cost: $B/policy_cost.elf
