# SPDX-License-Identifier: MIT
#
# Runs in a guest of two CPUs. The tests' policy `budget` sets every time that a policy may set, and
# ends itself if the adapter breaks its rules. Hogs compute, other processes sleep, fork and are
# bound to CPUs, and one hog gets another weight. The results are in /result;
# tests/linux/test_linux_times.py reads them.

control=/run/schedlab

run() {
    exec chrt --other 0 "$@"
}

# This script records the results, so it runs in a class that the policy does not control.
chrt --fifo --pid 80 $$
schedlab-linux serve --policy budget --seed 1 --trace /result/trace.bin --trace-memory --background || exit 1

hogs=
for hog in 1 2 3 4; do
    run sh -c 'while :; do :; done' &
    hogs="$hogs $!"
done
echo $hogs >/result/hogs
sleep 0.2
cut -d ' ' -f 1 /proc/uptime >/result/times
sleep 1
schedlab-linux set "${hogs##* }" weight 10
cut -d ' ' -f 1 /proc/uptime >>/result/times
sleep 1
cut -d ' ' -f 1 /proc/uptime >>/result/times

# Four hogs share one CPU, and each may use half of it. No budget runs out, and three hogs wait
# during each slice.
for hog in $hogs; do
    taskset -p 2 "$hog" >/dev/null
    schedlab-linux set "$hog" weight 10
done
cut -d ' ' -f 1 /proc/uptime >/result/shared
sleep 0.4
cut -d ' ' -f 1 /proc/uptime >>/result/shared
kill $hogs

# Threads block and wake on other CPUs, and the policy restarts with a state of zero.
run sh -c 'while :; do taskset -p 1 $$; sleep 0.005; taskset -p 2 $$; sleep 0.005; done' >/dev/null &
moved=$!
run sh -c 'while :; do taskset -p 3 $$; sleep 0.003; true | cat; done' >/dev/null &
moved="$moved $!"
sleep 0.5
schedlab-linux policy fair
schedlab-linux policy budget
sleep 0.2
cat /sys/kernel/sched_ext/state "$control/sched_status" "$control/sched_problem" >/result/status
kill $moved
schedlab-linux stop
dmesg | grep -A 40 -E 'WARNING|BUG:|sched_ext.*(error|stall)' >/result/complaints
