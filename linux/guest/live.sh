# SPDX-License-Identifier: MIT
#
# In a guest that is watched and steered from outside: live.sh SEED POLICY [OPTION]... brings the
# policy to the kernel, sends the trace through one port and obeys what comes through another
# (linux/guest/steer.c), until it is told to end. The options are those of `schedlab-linux serve`.

seed=$1 policy=$2
shift 2

here=$(pwd)
export PATH="$here/workloads:$here:$PATH"
export WORKLOAD_SEED="$seed" WORKLOAD_TICK_US=4000

# The kernel's own words are a part of what is watched, from here on: not those of its boot.
dmesg -n 7

# The process that looks after the guest must not depend on the policy.
chrt --fifo --pid 80 $$

schedlab-linux serve --background --seed "$seed" --policy "$policy" "$@" \
    --trace /dev/vport0p1 --trace-queues || exit
steer /dev/vport0p2
schedlab-linux stop
