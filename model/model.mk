# SPDX-License-Identifier: MIT
#
# make model       build/model/libschedlab-model.so, and build/model/model.wasm
# make model-tests its tests under AddressSanitizer and UBSan
# make model-fuzz  libFuzzer, for FUZZ_SECONDS
#
# Included by the Makefile, whose flags it uses. Policies are linked in: they explain the meaning of
# their numbers.

MODEL_SOURCES := $(sort $(wildcard model/*.c)) $(POLICIES) $(sort $(wildcard policies/support/*.c))
MODEL_OBJECTS := $(MODEL_SOURCES:%.c=%.o) policy_table.o
# A trace may contain any times, so overflow must wrap. Sums of doubles are the same on all
# machines.
MODEL_FLAGS   := -fwrapv -ffp-contract=off -ffreestanding -fno-strict-aliasing
MODEL_C       := $(HOST_C) $(MODEL_FLAGS) $(PIC)
MODEL_SAFE    := $(filter-out -O2,$(HOST_C)) $(MODEL_FLAGS) $(SIMULATOR_SAFE)
# Optimising takes longer than the tests run.
MODEL_TRIED   := $(MODEL_SAFE) -fsanitize=fuzzer-no-link -O0
MODEL_WASM    := --target=wasm32 -std=c17 -O2 $(WARNINGS) -MMD -MP -I. $(MODEL_FLAGS) -mbulk-memory
MODEL_TESTS   := $(patsubst tests/model/%.c,$B/model-tests/%,$(wildcard tests/model/*_test.c))

.PHONY: model model-tests model-fuzz
model: $B/model/libschedlab-model.so $B/model/model.wasm
model-tests: $(MODEL_TESTS)

# $(1): directory in build/. $(2): which compiler. $(3): flags.
define MODEL_RULES
$B/$(1)/policy_table.o: $B/policy_table.c
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$($(2)) $(3) -c $$< -o $$@

$B/$(1)/%.o: %.c Makefile model/model.mk
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$($(2)) $(3) -c $$< -o $$@
endef
$(eval $(call MODEL_RULES,model,HOST_CC,$(MODEL_C)))
$(eval $(call MODEL_RULES,model-wasm,CLANG,$(MODEL_WASM)))
$(eval $(call MODEL_RULES,model-safe,SYSTEM_CLANG,$(MODEL_TRIED)))

MODEL_CALLS := begin feed reach set_window own record_cost status frame history explain

$B/model/libschedlab-model.so: $(MODEL_OBJECTS:%=$B/model/%) model/library.map
	@echo "  $@"
	@$(HOST_CC) -shared -nostdlib $(call offering,model/library.map) $(filter %.o,$^) -lc -o $@

# Its memory is the page's, which places models after __heap_base.
$B/model/model.wasm: $(MODEL_OBJECTS:%=$B/model-wasm/%)
	@mkdir -p $(@D)
	@echo "  $@"
	@$(WASM_LINKER) --no-entry --strip-all -z stack-size=262144 --export=__heap_base \
	    $(MODEL_CALLS:%=--export=model_%) $^ -o $@

$B/model-fuzz/fuzz_model: tests/model/fuzz_model.c $(MODEL_OBJECTS:%=$B/model-safe/%) Makefile model/model.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(MODEL_SAFE) -fsanitize=fuzzer $(filter %.c %.o,$^) -o $@

model-fuzz: $B/model-fuzz/fuzz_model
	@mkdir -p $B/fuzz/fuzz_model
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=8000 -artifact_prefix=$B/fuzz/fuzz_model- $B/fuzz/fuzz_model

$B/model-tests/%: tests/model/%.c $(MODEL_OBJECTS:%=$B/model-safe/%) Makefile model/model.mk
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(MODEL_SAFE) $(filter %.c %.o,$^) -o $@
