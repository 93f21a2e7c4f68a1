# SPDX-License-Identifier: MIT
#
# Runs in a guest. Tests the policy server (linux/loader) with a kernel that has sched_ext, and with
# faulty policies. The results of each step are in /result, in a file with the step's name;
# tests/linux/test_linux_server.py reads them. The last line of a step is its `status`.

control=/run/schedlab

# Runs a command, and saves its output and exit status.
step() {
    file=/result/$1
    shift
    "$@" >>"$file" 2>&1
    echo "status: $?" >>"$file"
}

# Saves the active policy according to the kernel and the server.
look() {
    {
        cat /sys/kernel/sched_ext/state
        head -n 4 "$control/sched_status"
    } >"/result/$1" 2>&1
}

# Waits until the kernel falls back to the fair class, at most the given tenths of a second.
settle() {
    rounds=0
    while [ "$rounds" -lt "$1" ] && ! grep -q disabled /sys/kernel/sched_ext/state; do
        rounds=$((rounds + 1))
        sleep 0.1
    done
}

obey() {
    echo "$1" >"$2"
}


# This script records the results, so it runs in a class that no policy controls.
chrt --fifo --pid 80 $$

step dry-run schedlab-linux serve --policy rr --dry-run
step without-root su nobody -s /bin/sh -c "/job/schedlab-linux serve --dry-run"
step no-sched-ext unshare -m sh -c "mount -t tmpfs none /sys/kernel && schedlab-linux serve"
step busy-folder schedlab-linux serve --control /job
step no-objects schedlab-linux serve --objects /nowhere
ls -A /run >/result/untouched

# If control groups or nice values share out CPU time.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/tenth
echo "10000 100000" >/sys/fs/cgroup/tenth/cpu.max
chrt --other 0 sleep 1000 &
polite=$!
until grep -q '(sleep)' /proc/$polite/stat; do sleep 0.1; done
renice -n 7 -p "$polite"
step limits schedlab-linux serve --policy rr
step limits-dry-run schedlab-linux serve --policy rr --dry-run
step limits-fair schedlab-linux serve --background
step limits-later schedlab-linux policy rr
look limits-kept
step limits-fair-stop schedlab-linux stop
ls -A /run >/result/limits-left
step limits-ignored schedlab-linux serve --policy rr --ignore-limits --background
look limits-ignored-begun
step limits-ignored-later schedlab-linux policy fair
step limits-ignored-again schedlab-linux policy rr
look limits-ignored-kept
step limits-ignored-stop schedlab-linux stop
kill "$polite"
wait "$polite"
rmdir /sys/fs/cgroup/tenth
echo -cpu >/sys/fs/cgroup/cgroup.subtree_control

step serve schedlab-linux serve --policy rr --seed 1 --background
look begun
chrt --other 0 sleep 1000 &
sleeper=$!
echo "$sleeper" >/result/sleeper
step second timeout 20 schedlab-linux serve
step set schedlab-linux set "$sleeper" tickets 17
step set-file obey "$sleeper 9" "$control/sched_status"
step tunable schedlab-linux tunable slice=3
cat "$control/sched_status" >/result/sched_status
cat "$control/sched_tunables" >/result/sched_tunables
cat "$control/sched_policies" >/result/sched_policies
schedlab-linux status --json >/result/status.json
schedlab-linux tunable --json >/result/tunables.json
schedlab-linux policies --json >/result/policies.json
# The server's CPU time for 100 writes and for 100 reads of a file about 300 more threads.
server=$(sed -n 's/^schedlab-linux *\([0-9]*\) .*/\1/p' "$control/sched_status" | head -n 1)
crowd=
for _ in $(seq 300); do
    sleep 1000 &
    crowd="$crowd $!"
done
cost() {
    begin=$(($(cut -d ' ' -f 14,15 "/proc/$server/stat" | tr ' ' '+')))
    for _ in $(seq 100); do "$@"; done
    echo $(($(cut -d ' ' -f 14,15 "/proc/$server/stat" | tr ' ' '+') - begin))
}
read_status() {
    cat "$control/sched_status" >/dev/null
}
{
    cost obey "$sleeper 9" "$control/sched_status"
    cost read_status
} >/result/costs
# shellcheck disable=SC2086 # a list of processes
kill $crowd

step two-lines sh -c "printf 'rr\nfair\n' >$control/sched_status"
step no-policy obey nosuch "$control/sched_status"
step no-process obey "99999 3" "$control/sched_status"
step no-range obey "$sleeper 11" "$control/sched_status"
step no-tunable obey nosuch=1 "$control/sched_tunables"
step not-written obey rr "$control/sched_policies"
step fair obey fair "$control/sched_status"
look in-fair
step kept schedlab-linux status

step rejected schedlab-linux policy rejected
look after-rejected
step complains schedlab-linux policy complains
chrt --other 0 sleep 0.1
settle 30
look after-complains
step never-picks schedlab-linux policy never-picks
chrt --other 0 sleep 0.1
settle 30
look after-never-picks

step starves schedlab-linux policy starves
chrt --other 0 sh -c 'while :; do :; done' &
one=$!
chrt --other 0 sh -c 'while :; do :; done' &
two=$!
chrt --other 0 sh -c 'while :; do :; done' &
three=$!
settle 100
look after-starves

step again schedlab-linux policy rr
server=$(sed -n 's/^schedlab-linux *\([0-9]*\) .*/\1/p' "$control/sched_status" | head -n 1)
kill -KILL "$server"
settle 30
look after-kill
kill -0 "$one" "$two" "$three" "$sleeper" && echo alive >/result/alive
kill "$one" "$two" "$three"
step nobody schedlab-linux status
step serve-again schedlab-linux serve --policy rr --background
look begun-again
step stop schedlab-linux stop
look ended
ls -A /run >/result/left
step trial-unread schedlab-linux serve --for 5x
begun=$(cut -d . -f 1 /proc/uptime)
step trial timeout 60 schedlab-linux serve --policy rr --for 2s
echo $(($(cut -d . -f 1 /proc/uptime) - begun)) >/result/trial-seconds
look after-trial
ls -A /run >>/result/left
kill "$sleeper"

# --- the Debian package: installed, used, upgraded and removed while the server runs

# Uses only the installed files, as on a real machine, and none from /job.
installed() {
    file=$1
    shift
    step "$file" env PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# The dpkg of busybox unpacks, but calls the package's scripts without arguments.
scripts=/var/lib/dpkg/info/schedlab-linux
mkdir -p /var/lib/dpkg/info
touch /var/lib/dpkg/status
installed install dpkg -i /job/package.deb
installed install $scripts.postinst configure
cat /sys/kernel/sched_ext/state >/result/installed
ls -A /run >>/result/installed
installed version schedlab-linux --version
installed start schedlab-linux start
look started
installed switch schedlab-linux switch rr
look switched
installed restore schedlab-linux restore
look restored
installed switch schedlab-linux switch rr
installed upgrade-before $scripts.prerm upgrade 0.1.0
installed upgrade-unpack dpkg -i /job/package.deb
installed upgrade $scripts.postinst configure 0.1.0
look upgraded
echo "policy = nosuch" >>/etc/schedlab-linux.conf
installed wrong-configuration schedlab-linux start
installed remove $scripts.prerm remove
installed remove-files dpkg -r schedlab-linux
cat /sys/kernel/sched_ext/state >/result/removed
ls -A /run /usr/lib/schedlab-linux /usr/sbin/schedlab-linux >>/result/removed 2>&1

# --- a server that is tied to a process
sleep 1000 &
life=$!
step lifeline schedlab-linux serve --background --while "$life"
look with-lifeline
kill "$life"
rounds=0
while schedlab-linux status >/dev/null 2>&1 && [ "$rounds" -lt 100 ]; do
    rounds=$((rounds + 1))
    sleep 0.1
done
step after-lifeline schedlab-linux status


# --- the machine's shape as a policy reads it; a thread blocks, so that each CPU picks often
chrt --fifo --pid 80 $$
schedlab-linux serve --policy surveyor --seed 1 --trace /result/surveyed.bin --trace-memory --background
for cpu in 1 2; do
    chrt --other 0 taskset "$cpu" sh -c 'while :; do sleep 0.001; done' &
    sleepers="$sleepers $!"
done
sleep 0.3
kill $sleepers
step surveyed schedlab-linux stop


# --- a thread that moves to the other CPU after each time slice
schedlab-linux serve --policy mover --seed 1 --trace /result/moved.bin --trace-memory --background
chrt --other 0 sh -c 'while :; do :; done' &
echo $! >/result/mover
sleep 0.5
kill $!
step moved schedlab-linux stop


# --- traces that reach their limit or the end of their disk while two threads wake each other
limited() {
    limit=$1
    shift
    mkfifo /run/there /run/back
    chrt --other 0 sh -c 'while read -r line; do echo; done </run/there >/run/back' &
    chrt --other 0 sh -c '{ echo; while read -r line; do echo; done </run/back; } >/run/there' &
    busy=$!
    step "$limit" timeout 200 schedlab-linux serve --policy rr "$@"
    kill "$busy"
    rm /run/there /run/back
    cat /sys/kernel/sched_ext/state >"/result/after-$limit"
}
limited trace-limit --trace /result/trace-limit.bin --trace-limit 1
mkdir /run/small
mount -t tmpfs -o size=2m small /run/small
limited trace-disk --trace /run/small/trace.bin
cp /run/small/trace.bin /result/trace-disk.bin
