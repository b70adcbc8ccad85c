# For the build stage: pin apt to the Debian snapshot of one day, then update the package lists.
set -eu
if [ -n "$1" ]; then
    rm -f /etc/apt/sources.list.d/*
    for archive in "debian $1 bookworm" "debian $1 bookworm-updates" "debian-security $1 bookworm-security"; do
        set -- $archive
        echo "deb [check-valid-until=no] https://snapshot.debian.org/archive/$1/$2 $3 main"
    done > /etc/apt/sources.list
fi
apt-get update
