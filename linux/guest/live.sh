# SPDX-License-Identifier: MIT
#
# Runs in a guest that is watched and controlled from outside: live.sh SEED POLICY [OPTION]... loads
# the policy into the kernel. It sends the trace through one port and runs the commands from another
# (linux/guest/steer.c), until it receives the command to end. The options are those of
# `schedlab-linux serve`.

seed=$1 policy=$2
shift 2

here=$(pwd)
export PATH="$here/workloads:$here:$PATH"
export WORKLOAD_SEED="$seed" WORKLOAD_TICK_US=4000

# The kernel's messages after its boot belong to the watched output.
dmesg -n 7

# The process that controls the guest must not depend on the policy.
chrt --fifo --pid 80 $$

schedlab-linux serve --background --seed "$seed" --policy "$policy" "$@" \
    --trace /dev/vport0p1 --trace-queues || exit
steer /dev/vport0p2
schedlab-linux stop
