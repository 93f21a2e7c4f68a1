# SPDX-License-Identifier: MIT
#
# make kernel      build/kernel.elf
# make image       build/disk.img: the programs, in a file system
# make soak-image  build/soak.img: the same with the storm of `./schedlab dev soak`
# make all         both, and the programs of the host: mkfs, fsck, policy_list
# make host-tests  build/host-tests/*: run by pytest
# make linux-workloads  build/linux/*: the workloads as programs of Linux
# make simulator   build/sim/schedlab-sim, build/sim/simulator.a
# make model       build/model/libschedlab-model.so: the monitor's computations; and model.wasm
# make linux-host  build/linux/schedlab-linux, build/linux/bpf/*: policies on a Linux kernel
#                  (linux/linux.mk)
#
# ./schedlab passes the compiler that python/requirements.lock pins
# (python/schedlab/base/toolchain/tools.py). By hand: make ZIG=FOLDER/ziglang/zig. CLANG is a plain
# clang, for the kernel, its programs and WebAssembly. HOST_CC compiles and links programs of this
# host, and WASI_CC those of WASI, each with its C library.

ZIG         ?= zig
CLANG       ?= $(ZIG) clang -resource-dir=$(dir $(ZIG))lib
LINKER      ?= $(ZIG) ld.lld
WASM_LINKER ?= $(ZIG) wasm-ld
ARCHIVER    ?= $(ZIG) ar
HOST_CC     ?= $(ZIG) cc -target $(shell uname -m)-linux-gnu.2.34 -UNDEBUG -fno-sanitize=undefined -fomit-frame-pointer
WASI_CC     ?= $(ZIG) cc -target wasm32-wasi -UNDEBUG -fno-sanitize=undefined
# Has sanitizers and libraries of Linux, which the pinned compiler lacks. No run's result depends on
# it.
SYSTEM_CLANG  ?= clang-19
SYSTEM_LINKER ?= ld.lld-19
SYSTEM_STRIP  ?= llvm-strip-19
B             := build

WARNINGS  := -Wall -Wextra -Wdate-time -Werror
# Products have the same bytes in every checkout.
NAMES     := -fdebug-compilation-dir=.
TARGET    := --target=riscv64-unknown-elf -march=rv64imac_zicsr_zicntr_zifencei -mabi=lp64 -mno-relax
COMMON    := $(TARGET) -std=c17 -O2 -g $(NAMES) $(WARNINGS) -ffreestanding -fno-builtin-printf -MMD -MP -I.
KERNEL_C  := $(COMMON) -flto -mcmodel=medany -Ikernel -fno-omit-frame-pointer
USER_C    := $(COMMON) -mcmodel=medany -Iuser/library -Iworkloads -ffunction-sections -fdata-sections
HOST_C    := -std=c17 -O2 -g $(NAMES) $(WARNINGS) -MMD -MP -I. -Ikernel -D_GNU_SOURCE

# For macOS, clang and its linker need other options.
ifneq ($(findstring -macos,$(HOST_CC)),)
PIC := -fPIC
offering =
else
PIC := -fPIC -fno-semantic-interposition
# A library exports only the symbols that a map names.
offering = -Wl,--version-script=$(1) -Wl,-soname,$(@F)
endif

# Objects of two compilers are never linked together: products of another compiler are deleted.
COMPILER := $(strip $(shell $(CLANG) --version 2>/dev/null | head -n 1))
ifneq ($(COMPILER),)
ifneq ($(COMPILER),$(strip $(shell cat $B/.compiler 2>/dev/null)))
$(shell mkdir -p $B && find $B -mindepth 1 -maxdepth 1 ! -name .lock ! -name linux-sdk -exec rm -rf {} + && \
    echo '$(COMPILER)' > $B/.compiler)
endif
endif

.PHONY: all kernel image soak-image host-tests host-tools linux-workloads clean
.DELETE_ON_ERROR:
.SECONDARY:

all: kernel image host-tools

# The kernel is linked twice, the second time with the table of its functions.

POLICIES       := $(sort $(wildcard policies/*.c policies/studies/*.c))
KERNEL_SOURCES := $(sort $(wildcard kernel/*/*.c kernel/*/*.S)) $(POLICIES) \
                  $(sort $(wildcard policies/support/*.c))
KERNEL_OBJECTS := $(KERNEL_SOURCES:%=$B/%.o) $B/policy_table.c.o

kernel: $B/kernel.elf

$B/kernel/%.c.o: kernel/%.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

$B/kernel/%.S.o: kernel/%.S Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

$B/policies/%.c.o: policies/%.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

# Removing a policy makes no file newer; the list of policies does.
ifneq ($(strip $(shell cat $B/policies.list 2>/dev/null)),$(strip $(POLICIES)))
$(shell mkdir -p $B; echo '$(POLICIES)' > $B/policies.list)
endif

$B/policy_table.c: tools/make_policy_table.sh $B/policies.list
	@mkdir -p $(@D)
	sh $< $(POLICIES) > $@

$B/policy_table.c.o: $B/policy_table.c
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

$B/no_symbols.S: tools/make_symbols.sh
	@mkdir -p $(@D)
	sh $< > $@

$B/symbols.S: tools/make_symbols.sh $B/kernel-without-symbols.elf
	sh $< $B/kernel-without-symbols.map > $@

$B/%ymbols.o: $B/%ymbols.S
	@echo "  $@"
	@$(CLANG) $(TARGET) -c $< -o $@

LINK_KERNEL = $(LINKER) -T kernel/boot/kernel.ld --no-relax -z max-page-size=4096 --fatal-warnings

# The linker compiles the C files' intermediate code once, and keeps that as $B/kernel.o for the
# second link.
$B/kernel-without-symbols.elf: $(KERNEL_OBJECTS) $B/no_symbols.o kernel/boot/kernel.ld
	@echo "  $@"
	@$(LINK_KERNEL) --lto-obj-path=$B/kernel.o -Map=$(@:.elf=.map) $(KERNEL_OBJECTS) $B/no_symbols.o -o $@

$B/kernel.elf: $B/kernel-without-symbols.elf $B/symbols.o
	@echo "  $@"
	@$(LINK_KERNEL) $(filter %.S.o,$(KERNEL_OBJECTS)) $B/symbols.o $B/kernel.o -o $@

# Programs: each C file of these directories is one program in / of the disk.

PROGRAM_SOURCES := $(sort $(wildcard user/programs/*.c workloads/*.c tests/guest/*.c \
                     bench/guest/*.c)) tests/scenario/scenario.c
PROGRAMS        := $(foreach source,$(PROGRAM_SOURCES),$B/programs/$(basename $(notdir $(source))))
# On a separate disk: one more program on the default disk would move all of them.
STORM_SOURCE    := tests/soak/storm.c
WORKLOAD_API    := workloads/api/common.c workloads/api/suite.c workloads/api/loader.c
LIBRARY_SOURCES := $(sort $(wildcard user/library/*.c user/library/*.S)) $(WORKLOAD_API) \
                   workloads/api/schedlab_host.c workloads/api/schedlab_play.c
LIBRARY_OBJECTS := $(LIBRARY_SOURCES:%=$B/%.o)

$B/user/%.o: user/% Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(USER_C) -c $< -o $@

$B/workloads/%.o: workloads/% Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(USER_C) -c $< -o $@

$B/tests/%.o: tests/% Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(USER_C) -c $< -o $@

$B/bench/%.o: bench/% Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(USER_C) -c $< -o $@

$B/library.a: $(LIBRARY_OBJECTS)
	rm -f $@
	$(ARCHIVER) rcs $@ $^

define PROGRAM_RULE
$B/programs/$(basename $(notdir $(1))): $B/$(1).o $B/library.a user/program.ld
	@mkdir -p $$(@D)
	@echo "  $$@"
	@$(LINKER) -T user/program.ld --no-relax --gc-sections -z max-page-size=4096 $$< $B/library.a -o $$@ --strip-all
endef
$(foreach source,$(PROGRAM_SOURCES) $(STORM_SOURCE),$(eval $(call PROGRAM_RULE,$(source))))

# Programs made as for another kernel of the same interface: without schedlab's library.

RAW_SOURCES := $(sort $(wildcard tests/guest/raw/*.c))
RAW_PROGRAMS := $(RAW_SOURCES:tests/guest/raw/%.c=$B/raw/%)
PROGRAMS += $(RAW_PROGRAMS)

$B/raw/%: $B/tests/guest/raw/%.c.o
	@mkdir -p $(@D)
	@echo "  $@"
	@$(LINKER) -N --image-base=0 -Ttext 0 -e begin --no-relax --strip-all $< -o $@

IMAGE_BLOCKS ?= 8192

image: $B/disk.img

$B/disk.img: $B/mkfs $(PROGRAMS)
	@echo "  $@"
	@$B/mkfs $@ $(IMAGE_BLOCKS) $(PROGRAMS)

soak-image: $B/soak.img

$B/soak.img: $B/mkfs $(PROGRAMS) $B/programs/storm
	@echo "  $@"
	@$B/mkfs $@ $(IMAGE_BLOCKS) $(PROGRAMS) $B/programs/storm

# Programs of the host.

HOST_TOOLS := $(patsubst tools/%.c,$B/%,$(wildcard tools/*.c))

host-tools: $(HOST_TOOLS)

# Each file is compiled separately, and not optimised, so that a changed policy is listed quickly.
POLICY_LIST_C       := $(filter-out -O2 -g,$(HOST_C)) -O0
POLICY_LIST_OBJECTS := $(addprefix $B/list/,$(POLICIES:%.c=%.o) policies/support/registry.o \
                         tools/policy_list.o policy_table.o)

$B/list/policy_table.o: $B/policy_table.c
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(POLICY_LIST_C) -c $< -o $@

$B/list/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(POLICY_LIST_C) -c $< -o $@

$B/policy_list: $(POLICY_LIST_OBJECTS)
	@echo "  $@"
	@$(HOST_CC) $(filter %.o,$^) -o $@

SYS_SHAPE := tools/sys_shape.c linux/loader/sys_shape.c linux/loader/text.c

$B/sys_shape: $(SYS_SHAPE) linux/loader/sys_shape.h linux/loader/text.h \
              $(wildcard policies/policy.h policies/support/*.h) abi/cpu_list.h Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(filter-out -MMD -MP,$(HOST_C)) $(SYS_SHAPE) -o $@

$B/%: tools/%.c
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(HOST_C) $< -o $@

LINUX_API       := $(WORKLOAD_API) $(sort $(wildcard workloads/api/linux_*.c))
LINUX_WORKLOADS := $(patsubst %.c,$B/linux/%,$(notdir $(wildcard workloads/*.c workloads/linux/*.c)))

linux-workloads: $(LINUX_WORKLOADS)

$B/linux/parts/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(HOST_C) -c $< -o $@

# Static and small: they are copied into a guest without libraries each time.
define LINUX_WORKLOAD_RULE
$B/linux/$(basename $(notdir $(1))): $(patsubst %.c,$B/linux/parts/%.o,$(1) $(LINUX_API))
	@echo "  $$@"
	@$$(SYSTEM_CLANG) -static -s $$^ -o $$@
endef
$(foreach source,$(wildcard workloads/*.c workloads/linux/*.c),\
    $(eval $(call LINUX_WORKLOAD_RULE,$(source))))

HOST_TESTS := $(patsubst tests/host/%.c,$B/host-tests/%,$(wildcard tests/host/*_test.c))

host-tests: $(HOST_TESTS)

# Optimising takes longer than most of them run; these run longer.
HOST_TESTS_THAT_RUN_LONG := device_tree_test executable_test file_system_crash_test memory_test policy_mlfq_test \
                            policy_stride_test

$B/host-tests/%: tests/host/%.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(SYSTEM_CLANG) $(HOST_C) -DHOST_TEST -fstrict-flex-arrays=3 $(if $(filter $*,$(HOST_TESTS_THAT_RUN_LONG)),-O1,-O0) \
	    -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all $< -o $@

# Runs the scenarios of tests/scenario on the model, under any policy; started by pytest.
$B/scenario_model: tests/scenario/model.c $B/policy_table.c $(wildcard policies/*.[ch] \
                     policies/studies/*.[ch] policies/support/*.[ch] tests/scenario/*.h tests/host/*.h abi/*.h) Makefile
	@echo "  $@"
	@$(SYSTEM_CLANG) $(filter-out -O2 -MMD -MP,$(HOST_C)) -fstrict-flex-arrays=3 -O0 -fno-omit-frame-pointer \
	    -fsanitize=address,undefined -fno-sanitize-recover=all $(filter %.c,$^) -o $@

# A special-purpose kernel with the real one's first instructions, and a test program for QEMU.

$B/device_signal.elf: $B/tests/bare/device_signal.kernel.o $B/kernel/boot/entry.S.o kernel/boot/kernel.ld
	@echo "  $@"
	@$(LINK_KERNEL) $(filter %.o,$^) -o $@

$B/tests/bare/%.kernel.o: tests/bare/%.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(CLANG) $(KERNEL_C) -c $< -o $@

$B/slow_lock.so: tests/bare/slow_lock.c Makefile
	@mkdir -p $(@D)
	@echo "  $@"
	@$(HOST_CC) $(filter-out -MMD -MP,$(HOST_C)) -shared -fPIC $< -ldl -o $@

include bench/policy_cost.mk
include sim/sim.mk
include sim/checked/checked.mk
include explore/explore.mk
include sim/apart/apart.mk
include bench/races/races.mk
include model/model.mk
include linux/linux.mk
include page/page.mk
include tests/mistakes/mistakes.mk

clean:
	rm -rf $B

-include $(shell find $B -name '*.d' 2>/dev/null)
