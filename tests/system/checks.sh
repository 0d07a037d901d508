# Sourced by the scripts that run in the machine: check NAME COMMAND... prints `ok NAME` or `FAIL NAME` with the command's
# output; the host counts these lines.

check() {
  local name=$1 status
  shift
  # Not in a subshell: `wait` is to know the children.
  "$@" >/tmp/check.output 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    echo "ok   $name"
  else
    echo "FAIL $name (status $status)"
    tail -n 15 /tmp/check.output | sed 's/^/     /'
  fi
}

# A command that prints just this.
prints() {
  local expected=$1 output
  shift
  output=$("$@" 2>&1) || { echo "status $?: $output"; return 1; }
  [ "$output" = "$expected" ] || { echo "expected '$expected', got '$output'"; return 1; }
}

# A command that ends with this status.
ends_with() {
  local expected=$1 status
  shift
  "$@"
  status=$?
  [ $status -eq "$expected" ] || { echo "expected status $expected, got $status"; return 1; }
}

# Until a command succeeds, at most so many seconds.
within() {
  local limit=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $limit ] || { "$@"; return 1; }
    sleep 0.3
  done
}

# Entries of the kernel that start the worker.
entries() { grep -ls '^interpreter /usr/lib/phybin/' /proc/sys/fs/binfmt_misc/* 2>/dev/null | wc -l; }

# Whether a process has an image of translations mapped.
has_images() { grep -q '/var/cache/phybin/images/' "/proc/$1/maps"; }
has_no_images() { ! has_images "$1"; }

amd64=/opt/x86/bin
binfmt=/proc/sys/fs/binfmt_misc
