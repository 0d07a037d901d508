# Second boot: what was installed is there again; then it is removed and purged.
. ./checks.sh

check "after a reboot: socket" within 30 systemctl is-active phybind.socket
check "after a reboot: registered once" prints 1 entries
check "after a reboot: amd64 program" prints x86_64 $amd64/uname -m
check "after a reboot: images are still there" sh -c '[ "$(phybinctl cache list --json | grep -c "\"id\"")" -ge 1 ]'
check "after a reboot: no failed units" prints "" systemctl --failed --no-legend

$amd64/sleep 8 & sleeping=$!
check "remove" dpkg -r phybin
check "removed: amd64 programs do not run" ends_with 126 $amd64/true
check "removed: no entry in the kernel" test ! -e $binfmt/x86_64-arm64
check "removed: no units" sh -c '! systemctl cat phybind.service'
check "removed: the configuration stays" test -e /etc/phybin.conf
check "removed: the program that ran goes on" wait $sleeping
check "purge" dpkg -P phybin
check "purged: configuration, cache and user are gone" sh -c '! test -e /etc/phybin.conf && ! test -e /var/cache/phybin && ! getent passwd phybin'
check "purged: no failed units" prints "" systemctl --failed --no-legend

check "install without systemd running" sh -c 'mv /run/systemd/system /run/systemd/away; dpkg -i ./phybin-x86_64-arm64.deb; s=$?; mv /run/systemd/away /run/systemd/system; exit $s'
check "amd64 program, daemon absent" prints x86_64 $amd64/uname -m
check "remove and purge again" dpkg -P phybin
exit 0
