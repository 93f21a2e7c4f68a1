# SPDX-License-Identifier: MIT
#
# make linux-host LINUX_SDK=FOLDER    build/linux/schedlab-linux: the loader, one static program
#                                     build/linux/bpf/*.bpf.o: the policies, and the observer of the
#                                     kernel
#                                     build/linux/steer: controls a guest for a monitor
# make linux-stripped LINUX_SDK=FOLDER  the first two without debugging information:
#                                     build/linux/stripped
# make build/linux/attach             starts a scheduler of sched_ext in a guest
# make build/linux/taking_turns.so    makes QEMU's two threads take turns
# make linux-tests LINUX_SDK=FOLDER   the same in build/linux-tests, with the policies of
#                                     tests/linux/policies; many break a rule on purpose;
#                                     parts that do not depend on the policies come from build/linux
#
# LINUX_SDK holds Debian's packages unpacked: vmlinux.h (linux-bpf-dev), and the headers and static
# libraries of libbpf-dev, libelf-dev, zlib1g-dev, libzstd-dev and libfuse3-dev.
#
# libbpf loads BPF programs and fits them to the running kernel; libfuse serves the control files.
#
# Included by the Makefile, whose flags it uses.

LINUX_SDK      ?= $B/linux-sdk
LINUX_LIBRARY  := $(LINUX_SDK)/usr/lib/x86_64-linux-gnu
LINUX_VMLINUX  := $(LINUX_SDK)/usr/include/x86_64-linux-gnu/linux/bpf
LINUX_LINK     := $(patsubst %,$(LINUX_LIBRARY)/lib%.a,fuse3 bpf elf z zstd)
LINUX_LOADER   := $(sort $(wildcard linux/loader/*.c))
LINUX_ADAPTER  ?= linux/bpf/policy_host.bpf.c
LINUX_PARTS    := $(filter-out $(LINUX_ADAPTER),$(sort $(wildcard linux/bpf/*.bpf.c)))
LINUX_PATIENCE_MS := 4000 # the kernel's patience with misbehaving policies of the tests
LINUX_MISUSED  := policies/rr.c policies/mlfq.c $(sort $(wildcard tests/linux/policies/*.c)) \
                  tests/kernel_policies/mover.c tests/kernel_policies/surveyor.c

LINUX_VERSION_IN := python/schedlab/__init__.py
LINUX_VERSION    := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' $(LINUX_VERSION_IN))

LOADER_C := $(HOST_C) -DSCHEDLAB_VERSION='"$(LINUX_VERSION)"' -isystem $(LINUX_SDK)/usr/include
# vmlinux.h has anonymous members of named types; libbpf's BPF_PROG() gives each function a
# parameter that most do not use.
BPF_C    := -target bpf -mcpu=v4 -O2 -g -fms-extensions -fno-builtin $(WARNINGS) -Wno-microsoft-anon-tag \
            -Wno-unused-parameter -D__TARGET_ARCH_x86 -MMD -MP -I. -Ilinux/bpf/include \
            -isystem $(LINUX_SDK)/usr/include -isystem $(LINUX_VMLINUX)

.PHONY: linux-host linux-stripped linux-tests linux-observed

# The lists of dependencies leave out system headers, which differ between packages.
LINUX_SDK_PLACE := $(shell readlink -f '$(LINUX_SDK)')
ifneq ($(strip $(shell cat $B/linux-sdk.name 2>/dev/null)),$(strip $(LINUX_SDK_PLACE)))
$(shell mkdir -p $B; echo '$(LINUX_SDK_PLACE)' > $B/linux-sdk.name)
endif

$(LINUX_LINK) $(LINUX_VMLINUX)/vmlinux.h:
	@echo "$@ is not there: make ... LINUX_SDK=FOLDER names the folder of unpacked packages that" \
	    "linux/linux.mk lists" >&2; exit 1

LINUX_ALL_NEED := linux/linux.mk Makefile $B/linux-sdk.name $(LINUX_VMLINUX)/vmlinux.h

$B/linux/objects/linux/loader/main.o: $(LINUX_VERSION_IN)

$B/linux/objects/%.o: %.c $(LINUX_ALL_NEED)
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(LOADER_C) -c $< -o $@

$B/linux/bpf/%.bpf.o: linux/bpf/%.bpf.c $(LINUX_ALL_NEED)
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(BPF_C) -c $< -o $@

$B/linux-tests/bpf/%.bpf.o: $B/linux/bpf/%.bpf.o
	@mkdir -p $(@D)
	@cp $< $@

# $(1): directory in build/. $(2): policies.
define LINUX_HOST_RULES
$B/$(1)/policy_table.c: tools/make_policy_table.sh $(2) $B/policies.list linux/linux.mk
	@mkdir -p $$(@D)
	sh $$< $(2) > $$@

$B/$(1)/objects/policy_table.o: $B/$(1)/policy_table.c $$(LINUX_ALL_NEED)
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$(SYSTEM_CLANG) $$(LOADER_C) -c $$< -o $$@

$B/$(1)/schedlab-linux: $(patsubst %.c,$B/linux/objects/%.o,$(LINUX_LOADER) $(2) policies/support/registry.c) \
                          $B/$(1)/objects/policy_table.o $$(LINUX_LINK)
	@echo "  $$@"
	@$$(SYSTEM_CLANG) --ld-path=$$$$(command -v $(SYSTEM_LINKER)) -static -pthread $$^ -o $$@
endef

# $(1): directory in build/. $(2): a policy. $(3): its name. $(4): flags.
define LINUX_POLICY_RULE
$B/$(1)/bpf/$(3).bpf.o: $$(LINUX_ADAPTER) $(2) $$(LINUX_ALL_NEED)
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$$(SYSTEM_CLANG) $$(BPF_C) $(4) -DPOLICY_SOURCE='"$(2)"' -DPOLICY=policy_$(subst -,_,$(3)) \
	    -DPOLICY_NAME='"$(subst -,_,$(3))"' -c $$< -o $$@
endef

# All products in directory $(1) of build/, for policies $(2).
linux_products = $B/$(1)/schedlab-linux $(patsubst linux/bpf/%.c,$B/$(1)/bpf/%.o,$(LINUX_PARTS)) \
                 $(foreach policy,$(2),$B/$(1)/bpf/$(basename $(notdir $(policy))).bpf.o)

linux-host: $(call linux_products,linux,$(POLICIES)) $B/linux/steer
linux-tests: $(call linux_products,linux-tests,$(LINUX_MISUSED))

$(eval $(call LINUX_HOST_RULES,linux,$(POLICIES)))
$(eval $(call LINUX_HOST_RULES,linux-tests,$(LINUX_MISUSED)))
$(foreach policy,$(POLICIES),\
    $(eval $(call LINUX_POLICY_RULE,linux,$(policy),$(basename $(notdir $(policy))))))
$(foreach policy,$(LINUX_MISUSED),\
    $(eval $(call LINUX_POLICY_RULE,linux-tests,$(policy),$(basename $(notdir $(policy))),\
        -DWATCHDOG_MS=$(LINUX_PATIENCE_MS))))

# libbpf needs the types (BTF) of BPF objects, so they stay.
linux-stripped: $(patsubst $B/linux/%,$B/linux/stripped/%,$(call linux_products,linux,$(POLICIES)))

$B/linux/stripped/schedlab-linux: $B/linux/schedlab-linux
	@mkdir -p $(@D)
	@$(SYSTEM_STRIP) --strip-all -o $@ $<

$B/linux/stripped/bpf/%.bpf.o: $B/linux/bpf/%.bpf.o
	@mkdir -p $(@D)
	@$(SYSTEM_STRIP) --strip-debug -o $@ $<

$B/linux/steer: linux/guest/steer.c abi/trace_format.h Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -MMD -MP,$(HOST_C)) -static -s -pthread $< -o $@

# Starts a scheduler of sched_ext, whose object follows in the program's file.
$B/linux/attach: linux/guest/attach.c linux/guest/callback_log.h $(LINUX_ALL_NEED) $(LINUX_LINK)
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -MMD -MP,$(LOADER_C)) --ld-path=$$(command -v $(SYSTEM_LINKER)) -static $< $(filter-out %fuse3.a,$(LINUX_LINK)) -o $@

$B/linux/taking_turns.so: linux/qemu/taking_turns.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -MMD -MP -D_GNU_SOURCE,$(HOST_C)) --ld-path=$$(command -v $(SYSTEM_LINKER)) -shared -fPIC $< -o $@

# Programs that a test has run in a guest.
LINUX_OBSERVED := $(patsubst %,$B/linux-tests/%,observed inversion long_exit)
linux-observed: $(LINUX_OBSERVED)

$(LINUX_OBSERVED): $B/linux-tests/%: tests/linux/%.c $(wildcard abi/*.h) Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -MMD -MP -D_GNU_SOURCE,$(HOST_C)) -static -pthread $< -o $@
