#!/usr/bin/env bash
# tree.sh DEB TREE: the root file system of the image: the package, the libraries that it depends on, time zones and CAs,
# each taken from its own Debian package; no shell and no package manager.
set -euo pipefail
deb=$(realpath "$1") tree=$2
user=65532

packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
mkdir -p "$packages/partial" "$tree"
# Against an empty status file apt names all of what is needed, not only what this machine lacks.
apt-get -q -o Dir::State::status=/dev/null -o Dir::Cache::archives="$packages" -o Debug::NoLocking=1 \
    -o APT::Sandbox::User=root install -y --download-only --no-install-recommends "$deb" ca-certificates tzdata
for package in "$packages"/*.deb "$deb"; do
    case $(dpkg-deb -f "$package" Package) in
    lib* | zlib1g | ca-certificates | tzdata | sluice) dpkg-deb -x "$package" "$tree" ;;
    esac
done

cd "$tree"
mkdir -p etc/ssl/certs run/sluice var/lib/sluice
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
echo "sluice:x:$user:$user:Sluice ingest gateway:/var/lib/sluice:/usr/sbin/nologin" >etc/passwd
echo "sluice:x:$user:" >etc/group
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >etc/nsswitch.conf
find usr/share/doc -type f ! -name copyright -delete
find usr/share/doc -type d -empty -delete
rm -rf usr/share/man usr/share/locale usr/share/lintian usr/share/bash-completion usr/share/fish usr/share/zsh \
    usr/share/ca-certificates lib/systemd usr/lib/sysusers.d usr/lib/tmpfiles.d usr/lib/systemd etc/default
find . -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH:-0}" {} +
chown -R "$user:$user" run/sluice var/lib/sluice
chown -R "0:$user" etc/sluice
chmod 750 etc/sluice
