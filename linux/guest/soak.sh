# SPDX-License-Identifier: MIT
#
# For `./schedlab dev soak`, in a guest: soak.sh SECONDS POLICY... serves the policies and switches
# between them while processes start and end. It reports on the console the resources that the
# server and the kernel hold.
#
# Exit status: 0; 103, the server did not begin; 104, a policy was not active when its turn ended.

seconds=$1
shift

tar -xf programs.tar && rm programs.tar && mv workloads/* . || exit
control=/run/schedlab

# The process that controls the guest must not depend on the policy.
chrt --fifo --pid 80 $$

schedlab-linux serve --background --policy fair --trace /dev/null --trace-queues || exit 103
server=$(pidof schedlab-linux)

# Prints the number of FIELD in a file of the form "FIELD: NUMBER kB".
field() {
    while read -r name number rest; do
        [ "$name" != "$1:" ] || echo "$number"
    done <"$2"
}

tell() {
    set -- /proc/[0-9]*/exe
    processes=$#
    set -- /proc/"$server"/fd/*
    echo "soak turns=$turns server_memory_kib=$(field VmRSS /proc/"$server"/status) server_files=$#" \
        "kernel_memory_kib=$(field SUnreclaim /proc/meminfo) guest_processes=$processes"
}

# Runs processes that start, end, block and wake each other, for a few seconds.
work() {
    chrt --other 0 sh -c '
        for round in 1 2 3 4 5; do
            (while :; do :; done) & hog=$!
            for child in 1 2 3 4 5 6 7 8; do (echo "$child" | cat | cat >/dev/null) & done
            sleep 0.5
            kill "$hog"
            wait
        done' 2>/dev/null
}

# Sets `now` to the seconds since the machine began.
look_at_clock() {
    read -r now rest </proc/uptime
    now=${now%.*}
}

turns=0
look_at_clock
end=$((now + seconds))
while [ "$now" -lt "$end" ]; do
    for policy in "$@"; do
        schedlab-linux policy "$policy" || exit 104
        work
        in_force=$(sed -n 's/^Policy: //p' "$control/sched_status")
        [ "$in_force" = "$policy" ] || { cat "$control/sched_problem"; exit 104; }
        turns=$((turns + 1))
        tell
        look_at_clock
        [ "$now" -lt "$end" ] || break
    done
done
schedlab-linux stop
