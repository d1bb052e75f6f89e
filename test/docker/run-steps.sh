#!/usr/bin/env bash
# Executes the RUN steps of the Dockerfile in a Debian root made with debootstrap, for machines without a
# Docker engine. Steps before `USER node` run as root there, the others as an unprivileged user. It proves
# that the steps work, not that an image was built.
#
#   sudo test/docker/run-steps.sh [FOLDER]     (FOLDER: where the root is made; default: a temporary one)
#
# Needs debootstrap. Node.js of the base image is stood for by this machine's node, npm and headers.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
target=${1:-$(mktemp -d)}
user=node
mkdir -p "$target"

if [ ! -e "$target/etc/debian_version" ]; then
  echo "== debootstrap bookworm into $target"
  debootstrap --variant=minbase bookworm "$target" ${DEBIAN_MIRROR:-}
fi

# Network and certificates as on this machine.
cp -L /etc/resolv.conf "$target/etc/resolv.conf"
cp -L /etc/hosts "$target/etc/hosts"
mkdir -p "$target/etc/ssl" "$target/usr/local/share"
cp -aL /etc/ssl/certs "$target/etc/ssl/" 2>/dev/null || true
[ -d /etc/apt/apt.conf.d ] && cp -a /etc/apt/apt.conf.d/. "$target/etc/apt/apt.conf.d/"
for file in /etc/pip.conf /etc/npmrc; do [ -f "$file" ] && cp "$file" "$target$file"; done

# The base image's Node.js.
prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
mkdir -p "$target/usr/local/bin" "$target/usr/local/lib/node_modules" "$target/usr/local/include"
cp -L "$(command -v node)" "$target/usr/local/bin/node"
cp -a "$(npm root -g)/npm" "$target/usr/local/lib/node_modules/"
[ -d "$prefix/include/node" ] && cp -a "$prefix/include/node" "$target/usr/local/include/"
ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$target/usr/local/bin/npm"
ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$target/usr/local/bin/npx"

chroot "$target" id "$user" >/dev/null 2>&1 || chroot "$target" useradd --create-home --uid 1000 "$user"
[ -f "$HOME/.npmrc" ] && install -o 1000 -g 1000 -m 600 "$HOME/.npmrc" "$target/home/$user/.npmrc"
mountpoint -q "$target/proc" || mount -t proc proc "$target/proc"
mountpoint -q "$target/dev" || mount --bind /dev "$target/dev"
trap 'umount "$target/proc" "$target/dev" 2>/dev/null || true' EXIT

inside() { # user, command: the environment keeps what a registry client may need
  chroot --userspec="$1" "$target" /usr/bin/env -i \
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="$([ "$1" = root ] && echo /root || echo /home/$user)" \
    npm_config_nodedir=/usr/local $(env | grep -iE '^(https?_proxy|no_proxy|pip_|npm_config_registry|ssl_cert|node_extra_ca)' || true) \
    sh -c "cd ${3:-/} && $2"
}

who=root
stage=0
folder=/
while IFS= read -r line; do
  case "$line" in
    'FROM '*)
      stage=$((stage + 1))
      who=root
      folder=/
      [ "$stage" -gt 1 ] && rm -rf "$target/final" && mv "$target/app" "$target/build-stage" 2>/dev/null || true
      ;;
    'USER '*) who=${line#USER } ;;
    'WORKDIR '*)
      folder=${line#WORKDIR }
      mkdir -p "$target$folder"
      ;;
    'COPY '*)
      words=(${line#COPY })
      from="$project"
      files=()
      for word in "${words[@]}"; do
        case "$word" in
          --from=*) from="" ;;
          --*) ;;
          *) files+=("$word") ;;
        esac
      done
      to="$target$folder/${files[-1]#./}"
      unset 'files[-1]'
      for file in "${files[@]}"; do
        source_path=$([ -n "$from" ] && echo "$project/$file" || echo "$target/build-stage/${file#/app/}")
        if [ "${#files[@]}" -gt 1 ] || [ ! -d "$source_path" ]; then mkdir -p "$to"; cp -a "$source_path" "$to"
        else mkdir -p "$to"; cp -a "$source_path/." "$to/"; fi
      done
      chown -R 1000:1000 "$target$folder"
      ;;
    'RUN '*)
      echo "== stage $stage, $who: ${line#RUN }"
      inside "$who" "${line#RUN }" "$folder"
      ;;
  esac
done <"$project/Dockerfile"

echo '== the installed product answers as the unprivileged user'
inside node 'SEARCHLOOP_PATHS_HOME=/data/models SEARCHLOOP_PATHS_INDEXES=/data/indexes node dist/main.js doctor' /app
echo 'all RUN steps passed'
