# SPDX-License-Identifier: MIT
#
# Runs in a guest. Loads every policy and preset, one after the other, while processes compute,
# sleep, fork and are bound to CPUs. Then hogs of different weights compete. The results are in
# /result; tests/linux/test_linux_policies.py reads them.

control=/run/schedlab

# Uses only the shell, because starting programs would take longer than a policy's time.
look() {
    ops=
    read -r state </sys/kernel/sched_ext/state
    [ ! -e /sys/kernel/sched_ext/root/ops ] || read -r ops </sys/kernel/sched_ext/root/ops
    { read -r _; read -r policy; read -r since; } <"$control/sched_status"
    echo "$state ${ops:+$ops }$policy $since"
}

hog() {
    exec chrt --other 0 sh -c 'while :; do :; done'
}

# Prints the CPU time of each named process, in nanoseconds.
run_times() {
    for pid; do
        cut -d ' ' -f 1 "/proc/$pid/schedstat"
    done
}

# This script records the results, so it runs in a class that no policy controls.
chrt --fifo --pid 80 $$
schedlab-linux serve --policy fair --seed 1 --trace /result/trace.bin --trace-queues --background || exit 1

# The verifier is faster while nothing else computes. It runs with real-time priority, and the
# kernel reserves a part of each CPU for the fair class only. Tasks under another policy would
# starve during this time.
for name in $LOADED; do
    schedlab-linux policy "$name"
    echo fair >"$control/sched_status"
done

hog &
load=$!
hog &
load="$load $!"
hog &
load="$load $!"
chrt --other 0 sh -c 'while :; do sleep 0.01; done' &
load="$load $!"
chrt --other 0 sh -c 'while :; do true | cat >/dev/null; done' &
load="$load $!"
chrt --other 0 sh -c 'while :; do taskset -p 1 $$; sleep 0.03; taskset -p 2 $$; sleep 0.03; taskset -p 3 $$; done' >/dev/null &
load="$load $!"
echo $! >/result/bound

# Preempts the other processes everywhere, including in the observer's programs.
chrt --fifo 50 sh -c 'while :; do sleep 0.002; done' &
load="$load $!"

for name in $POLICIES; do
    echo "$name" >"$control/sched_status" || echo "refused: $(cat "$control/sched_problem")"
    sleep "$TURN"
    echo "$name: $(look)"
done >/result/policies
dmesg | grep -A 40 -E 'WARNING|BUG|stall|sched_ext.*error' >/result/complaints
kill $load
sleep 0.2

# A thread that is not its process's first calls exec(), which changes its PID. Then a policy has a
# process killed.
echo rr >"$control/sched_status"
chrt --other 0 timeout 20 observed
echo "status: $?" >/result/observed
chrt --other 0 timeout 20 long_exit
for name in priority priority:inheritance; do
    echo "$name" >"$control/sched_status"
    echo aging_interval=0 >"$control/sched_tunables"
    chrt --other 0 timeout 20 inversion
done >/result/inversion
echo priority:thesis >"$control/sched_status"
echo kill_after=20 >"$control/sched_tunables"
hog &
wait $!
echo "status: $?" >/result/doomed
# Otherwise the policy would also kill the next hogs before their first policy is active.
echo fair >"$control/sched_status"

# Hogs of weights 1, 3 and 6, with the same numbers of tickets, on two CPUs. The time slices by
# weight are long, because a busy host may delay a tick.
hogs=
for value in 1 3 6; do
    hog &
    schedlab-linux set $! weight $value
    schedlab-linux set $! tickets $value
    hogs="$hogs $!"
done
for name in wrr lottery; do
    echo "$name" >"$control/sched_status"
    [ "$name" != wrr ] || echo quantum_us=40000 >"$control/sched_tunables"
    sleep 0.5
    run_times $hogs >"/result/$name.begin"
    sleep 3
    run_times $hogs >"/result/$name.end"
done

# Study 5's commands.
{
    echo cfs:linux >"$control/sched_status"
    echo "99999 3" >"$control/sched_status" && echo accepted
    echo "99999 weight 3" >"$control/sched_status" || echo refused
    echo "${hogs##* } 11" >"$control/sched_status"
    grep " ${hogs##* } " "$control/sched_status"
} >/result/study-5 2>/dev/null

# Groups. A user's group, which contains the last hog, may use 0.2 of the two CPUs. It is set before
# the active policy supports groups. The third of three control groups has the same quota. Later,
# its hog moves to the second control group.
echo "group 2 quota 20000000" >"$control/sched_status"
echo "group 2 parent 2" >"$control/sched_status" || cat "$control/sched_problem" >/result/group
held=${hogs##* }
schedlab-linux set "$held" taskgroup 2
groups=/sys/fs/cgroup
echo +cpu >$groups/cgroup.subtree_control
mkdir $groups/first $groups/second $groups/third
echo 300 >$groups/second/cpu.weight
echo "20000 100000" >$groups/third/cpu.max
kill ${hogs% *}
hogs=$held
for group in first first second second third; do
    hog &
    echo $! >$groups/$group/cgroup.procs
    hogs="$hogs $!"
done
moved=$!
echo "$moved" >/result/moved

# Policies that use groups only with a tunable.
for choice in wrr:shares=2 lottery:currencies=1; do
    name=${choice%:*}
    echo "$name" >"$control/sched_status"
    echo "${choice#*:}" >"$control/sched_tunables"
    sleep 0.5
    run_times $hogs >"/result/$name-groups.begin"
    sleep 3
    run_times $hogs >"/result/$name-groups.end"
done

echo hsfq >"$control/sched_status"
echo "group 1 weight 300" >"$control/sched_status"
echo "group 9 weight 300" >"$control/sched_status" || cat "$control/sched_problem" >>/result/group
sleep 0.5
run_times $hogs >/result/hsfq.begin
sleep 2
run_times $hogs >/result/hsfq.end
grep Group "$control/sched_status" >>/result/group
echo "$moved" >$groups/second/cgroup.procs
run_times $hogs >/result/hsfq-moved.begin
sleep 1.5
run_times $hogs >/result/hsfq-moved.end
schedlab-linux stop
cat /sys/kernel/sched_ext/state >/result/ended
kill $hogs
