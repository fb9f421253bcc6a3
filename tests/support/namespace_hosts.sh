#!/bin/bash
# Hosts as Linux namespaces (net, mount, pid, uts), connected by a bridge in a separate network namespace, the switch.
# `kill-host` is a power failure, `cut` a pulled cable. Needs root. State is below $HOSTS_DIR.
# usage: namespace_hosts.sh up N | boot I CMD... | in I CMD... | pid I | kill-host I | pause I | resume I | cut I | uncut I | down
set -e
P=${HOSTS_PREFIX:?} NET=10.77.0 D=${HOSTS_DIR:?}
mkdir -p "$D"
case $1 in
up)
    ip netns add "$P-sw"
    ip -n "$P-sw" link add br0 type bridge
    ip -n "$P-sw" link set br0 up
    for i in $(seq 1 "$2"); do
        ip netns add "$P$i"
        ip -n "$P$i" link set lo up
        ip link add "v$P$i" netns "$P$i" type veth peer name "p$i" netns "$P-sw"
        ip -n "$P$i" link set "v$P$i" name eth0
        ip -n "$P$i" addr add "$NET.$i/24" dev eth0
        ip -n "$P$i" link set eth0 up
        # Ray finds its address by the default route.
        ip -n "$P$i" route add default via "$NET.254"
        ip -n "$P-sw" link set "p$i" master br0 up
    done ;;
boot) # A host's init mounts a separate /tmp/ray and /dev/shm, and runs a command.
    i=$2
    shift 2
    rm -rf "$D/$i"
    mkdir -p "$D/$i/tmp"
    setsid ip netns exec "$P$i" unshare --mount --uts --pid --fork --kill-child --mount-proc --propagation private bash -c '
        hostname "host$0"
        mkdir -p /tmp/ray
        mount --bind "$1" /tmp/ray
        mount -t tmpfs -o size=1g tmpfs /dev/shm
        shift
        "$@"
        sleep infinity & wait' "$i" "$D/$i/tmp" "$@" > "$D/$i/boot.log" 2>&1 < /dev/null &
    outer=$!
    for _ in $(seq 500); do
        init=$(pgrep -P $outer || true)
        [ -n "$init" ] && break
        sleep 0.02
    done
    echo "$init" > "$D/$i/init.pid" ;;
in) i=$2; shift 2; exec nsenter -t "$(cat "$D/$i/init.pid")" -m -u -p -n "$@" ;;
pid) cat "$D/$2/init.pid" ;;
kill-host) kill -9 "$(cat "$D/$2/init.pid")" ;;
pause | resume)
    signal=STOP
    [ "$1" = resume ] && signal=CONT
    space=$(readlink "/proc/$(cat "$D/$2/init.pid")/ns/pid")
    for path in /proc/[0-9]*; do
        if [ "$(readlink "$path/ns/pid" 2> /dev/null)" = "$space" ]; then kill -$signal "${path#/proc/}" 2> /dev/null || true; fi
    done ;;
cut) ip -n "$P-sw" link set "p$2" down ;;
uncut) ip -n "$P-sw" link set "p$2" up ;;
down)
    for file in "$D"/*/init.pid; do kill -9 "$(cat "$file")" 2> /dev/null || true; done
    sleep 0.3
    for name in $(ip netns list | awk '{print $1}' | grep "^$P"); do ip netns del "$name"; done ;;
esac
