# shellcheck shell=bash
# What scripts/test and bench/run share: a temporary folder, packages that are missing, and a
# private PostgreSQL on a free port. To be sourced from the root of the checkout.
# It must never touch a server that it did not start, and must stop the one that it did, also
# after a failure.

work="" # the temporary folder; gone at the end
server="" # process of the private PostgreSQL

make_work() { # name
  work=$(mktemp -d "${TMPDIR:-/tmp}/ichido-$1-XXXXXX") || exit 1
  chmod 755 "$work" # an ordinary user's server lives in it
  trap finish EXIT
  trap 'exit 130' INT TERM
}
stop_server() {
  [ -n "$server" ] || return 0
  kill -INT "$server" 2>/dev/null
  wait "$server" 2>/dev/null
  server=""
}
# shellcheck disable=SC2317 # called by the trap
finish() {
  stop_server
  rm -rf "$work"
}

# --- what is needed ----------------------------------------------------------------------------
newest_pg() {
  local root=${ICHIDO_PG_ROOT:-/usr/lib/postgresql} found
  found=$(find "$root" -maxdepth 3 -path "$root/*/bin/postgres" 2>/dev/null | sort -V | tail -1)
  [ -n "$found" ] && dirname "$found"
}
install_packages() { # Debian packages
  local run=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    run=(sudo -n)
  fi
  command -v apt-get >/dev/null || return 1
  echo "installing $* ..."
  # Debian's package would start a server of its own: not ours to have.
  "${run[@]}" mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' |
      "${run[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
  "${run[@]}" apt-get update -qq >/dev/null &&
    "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}
find_pg() { # sets pg_bin
  pg_bin=${ICHIDO_PG_BIN:-$(newest_pg)}
  [ -z "$pg_bin" ] || return 0
  if ! install_packages postgresql; then
    echo "no PostgreSQL server found, and it may not be installed from here:" >&2
    echo "  apt-get install postgresql     (or set ICHIDO_PG_BIN to the folder of its binaries)" >&2
    return 1
  fi
  pg_bin=$(newest_pg)
}

# --- a private PostgreSQL ----------------------------------------------------------------------
free_port() {
  python3 - 2>/dev/null <<'PY' || echo $((20000 + RANDOM % 20000))
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])
PY
}
start_server() { # folder of binaries; sets server and pg_url
  local bin=$1 as_user=() name data log port _
  data=$(mktemp -d "$work/pg-XXXXXX")
  log="$data.log"
  if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root
    name=postgres
    id "$name" >/dev/null 2>&1 || name=nobody
    as_user=(setpriv "--reuid=$(id -u "$name")" "--regid=$(id -g "$name")" --clear-groups)
    chown "$name" "$data"
  fi
  (cd "$data" && "${as_user[@]}" "$bin/initdb" -U postgres -A trust -E UTF8 --locale=C --no-sync \
    -D "$data/db") >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  port=$(free_port)
  (cd "$data" && exec "${as_user[@]}" "$bin/postgres" -D "$data/db" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories="$data" -c max_connections=300 \
    -c shared_buffers=256MB -c max_wal_size=2GB) >>"$log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    grep -q "ready to accept connections" "$log" && break
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; return 1; }
    sleep 0.1
  done
  pg_url="postgres://postgres@127.0.0.1:$port"
  export pg_url
  echo "PostgreSQL $("$bin/postgres" --version | grep -o '[0-9.]*' | head -1) on port $port"
}
