# First boot: the package is installed on a fresh system and everything an administrator expects of it is tried.
. ./checks.sh

check "without the package amd64 programs do not run" ends_with 126 $amd64/true
check "install" dpkg -i ./phybin-x86_64-arm64.deb
# In an emulator the 20 ms that a program waits for the daemon are short.
sed -i 's/^#daemon_timeout.*/daemon_timeout = 10000/' /etc/phybin.conf
check "socket is listening" within 20 systemctl is-active phybind.socket
check "service is up" within 20 systemctl is-active phybind.service
check "maintenance timer is set" systemctl is-active phybin-maintenance.timer
check "system runs without failed units" prints "" systemctl --failed --no-legend
check "daemon runs as its own user" prints phybin stat -c %U "/proc/$(systemctl show -P MainPID phybind.service)"
check "cache belongs to it alone" prints "700 phybin" stat -c '%a %U' /var/cache/phybin
check "sysctl settings are there" test -e /usr/lib/sysctl.d/50-phybin.conf

check "registered with the kernel, once" prints 1 entries
check "registered with flags P, O, C and F" sh -c "grep '^flags:' $binfmt/x86_64-arm64 | grep P | grep O | grep C | grep F"
check "known to binfmt-support" sh -c "update-binfmts --display x86_64-arm64 | grep enabled"
check "importing again is no error" update-binfmts --import /usr/share/phybin/x86_64-arm64
/lib/systemd/systemd-binfmt
check "systemd-binfmt too makes no second entry" prints 1 entries

check "amd64 program" prints x86_64 $amd64/uname -m
check "amd64 static program" prints "busybox 42" $amd64/busybox sh -c 'echo busybox $((6*7))'
check "amd64 shell with children and a pipe" prints "3" $amd64/bash -c "$amd64/seq 3 | $amd64/wc -l"
printf '#!%s\necho "script $0 $1"\n' $amd64/bash >/tmp/script && chmod +x /tmp/script
check "script with an amd64 interpreter" prints "script /tmp/script one" /tmp/script one
check "exit status" ends_with 3 $amd64/bash -c 'exit 3'
check "death by a signal" ends_with 143 $amd64/bash -c 'kill -TERM $$'

mkdir -p /tmp/chroot/{bin,lib64,lib/x86_64-linux-gnu}
cp $amd64/busybox /tmp/chroot/bin/
check "chroot without ARM64 libraries" prints "inside x86_64" chroot /tmp/chroot /bin/busybox sh -c 'echo inside $(/bin/busybox uname -m)'

check "daemon has seen workers" within 30 sh -c '[ "$(phybinctl status --json | tr , "\n" | grep -c version)" -ge 1 ]'
check "images are made" within 60 phybinctl settle
for i in 1 2 3; do $amd64/bash -c "$amd64/seq 3 | $amd64/wc -l" >/dev/null; phybinctl settle; done
check "the cache holds images" sh -c '[ "$(phybinctl cache list --json | grep -c "\"id\"")" -ge 1 ]'
$amd64/sleep 60 & sleeping=$!
check "a later run maps shared images" within 20 has_images $sleeping
kill $sleeping

$amd64/bash -c 'while :; do read -t 0.2 x </dev/zero 2>/dev/null; :; done' & looping=$!
check "a running program has images" within 20 has_images $looping
check "policy: off" phybinctl policy set --shared-translation-cache=off
check "a running program leaves its images" within 20 has_no_images $looping
check "and goes on" kill -0 $looping
check "policy: auto" phybinctl policy set --shared-translation-cache=auto
kill $looping

$amd64/sleep 6 & sleeping=$!
check "kill -9 of the daemon" kill -9 "$(systemctl show -P MainPID phybind.service)"
check "amd64 programs run meanwhile" prints x86_64 $amd64/uname -m
check "the service is started again" within 30 systemctl is-active phybind.service
check "the program that ran goes on" wait $sleeping
check "a user may not steer others" ends_with 1 setpriv --reuid=65534 --clear-groups phybinctl policy set --uid=0 --shared-translation-cache=off

now=$(date +%s)
date -s "@$((now - 100000))" >/dev/null
check "a clock set back does no harm" prints x86_64 $amd64/uname -m
check "nor to the daemon" phybinctl settle
check "nor to the images" phybinctl cache verify
date -s "@$((now + 5))" >/dev/null

check "configuration is good" phybinctl config check
check "doctor" sh -c 'phybinctl doctor; [ $? -le 1 ]'
check "maintenance" within 60 systemctl start phybin-maintenance.service
check "service runs after maintenance" within 20 systemctl is-active phybind.service

$amd64/sleep 8 & sleeping=$!
check "upgrade with a program running" dpkg -i ./phybin-x86_64-arm64.deb
check "the program that ran goes on over the upgrade" wait $sleeping
check "amd64 programs after the upgrade" prints x86_64 $amd64/uname -m
check "service after the upgrade" within 20 systemctl is-active phybind.service
systemd-analyze security phybind.service --no-pager >"$OUT/security" 2>&1
check "hardening: 2.0 or better" sh -c "systemd-analyze security phybind.service --threshold=20 >/dev/null"
echo "     $(tail -n 1 "$OUT/security")"
journalctl -u phybind.service --no-pager >"$OUT/journal"
exit 0
