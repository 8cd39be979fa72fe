#!/bin/bash
# setup.sh demo | test | test-hf | build | packages: from a fresh Debian 12 to a running result. Quiet unless something fails.
#   build      install what is missing, compile everything into build/
#   demo       build, compile the RISC-V machine into a chip, run a C program on it
#   test       build twice (plain and with sanitizers), run every test, fuzz the parsers and loaders for a minute
#   test-hf    run chips in the stock transformers package, installed from PyPI into .venv-hf (tests/hf/README.md)
#   packages   print the packages and why each is needed
set -eu -o pipefail
cd "$(dirname "$0")"
jobs=${JOBS:-$(nproc)}
build=${BUILD:-build}

packages="
cmake                            the build
ninja-build                      runs it
gcc                              the compiler is C11
libc6-dev                        its headers
pkg-config                       finds the two libraries
re2c                             the lexer of the circuit language
lemon                            its grammar
libelf-dev                       firmware is ELF
libjansson-dev                   chip files carry a JSON manifest
gcc-riscv64-unknown-elf          compiles the firmware (rv32i is one of its targets)
picolibc-riscv64-unknown-elf     the C library for it"
test_packages="
qemu-system-misc                 an independent RISC-V machine to compare with
clang                            libFuzzer
libclang-rt-14-dev               its sanitizers"

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

# quietly NAME COMMAND...: shows the output only when the command fails.
quietly() {
    local name=$1 log; shift
    log=$(mktemp)
    "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; die "$name failed"; }
    rm -f "$log"
}

missing_of() { # LIST: the packages in it that are not installed
    awk 'NF { print $1 }' <<<"$1" | while read -r p; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q ' installed$' || echo "$p"
    done
}

install_packages() { # LIST
    local missing root=
    command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
        { say "no apt here: the tools of '$0 packages' must already be in the path"; return 0; }
    missing=$(missing_of "$1")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "not root and no sudo; install by hand: apt-get install" $missing
        root=sudo
    fi
    say "installing:" $missing
    quietly "apt-get update" $root apt-get update -q
    quietly "apt-get install" $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

compile() { # FOLDER CMAKE-OPTION...
    local folder=$1; shift
    quietly "cmake" cmake -S . -B "$folder" -G Ninja "$@"
    quietly "the build of $folder/" ninja -C "$folder" -j "$jobs"
}

do_build() {
    install_packages "$packages"
    compile "$build" -DCMAKE_BUILD_TYPE=Release
    firmware/build.sh "$build/firmware"
}

do_demo() {
    do_build
    local chip=$build/rv32im.chip
    say "compiling cpu-spec/rv32im.ckt into the weights of a model: $chip"
    quietly "tapeout build" "$build/tapeout" build cpu-spec/rv32im.ckt -o "$chip"
    say "running firmware/queens.c on it, every token checked against the netlist:"
    "$build/tapeout" run "$chip" "$build/firmware/queens.elf" --check --stats
    say "your own: $build/tapeout run $chip PROGRAM.elf (firmware/build.sh compiles C for it); $build/tapeout --help"
}

# Short runs of libFuzzer from the seeds beside each harness; a finding fails and stays in build-fuzz/.
do_fuzz() {
    local harness name seeds flags pids=() pid failed=0
    CC=clang compile build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTAPEOUT_FUZZ=ON -DTAPEOUT_CUDA=OFF
    for harness in build-fuzz/fuzz/*; do
        [ -f "$harness" ] && [ -x "$harness" ] || continue
        name=$(basename "$harness")
        seeds=tests/fuzz/$name
        mkdir -p "build-fuzz/corpus/$name"
        flags=$(sed -n "1,9s/^.*fuzz: *\([^*]*\).*/\1/p" "tests/fuzz/$name.c")
        quietly "fuzzing $name" "$harness" $flags -max_total_time="${FUZZ_SECONDS:-12}" -timeout=10 -rss_limit_mb=2048 \
            -artifact_prefix="build-fuzz/$name-" "build-fuzz/corpus/$name" "$seeds" &
        pids+=($!)
        [ ${#pids[@]} -lt 2 ] || { wait "${pids[0]}" || failed=1; pids=("${pids[@]:1}"); }
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    return $failed
}

do_test() {
    install_packages "$packages$test_packages"
    do_build
    # Undefined behaviour and wild accesses in what reads files from outside: the unit tests and the text cases again.
    compile build-asan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-O1 -g" -DTAPEOUT_SANITIZE=ON -DTAPEOUT_CUDA=OFF
    local sanitized=0
    # What a compilation builds lives until the process ends: leaks are no findings here (the fuzzers look for the runtime's).
    SANITIZED=1 BUILD=build-asan ASAN_OPTIONS=detect_leaks=0 tests/run.sh --level unit --level text --level command --level machine | sed 's/^/sanitized build: /' ||
        { sanitized=1; say "the sanitized run above failed"; }
    do_fuzz
    tests/run.sh || exit 1
    exit $sanitized
}

do_test_hf() {
    install_packages "$packages
python3-venv                     the stock package lives in an environment of its own"
    do_build
    [ -x .venv-hf/bin/python ] || quietly "python3 -m venv" python3 -m venv .venv-hf
    quietly "pip install" .venv-hf/bin/pip install -r tests/hf/requirements.txt
    quietly "pip install" .venv-hf/bin/pip install --no-deps --upgrade --target .venv-hf/fla -r tests/hf/requirements-fla.txt
    TAPEOUT=$PWD/$build/tapeout WORK=$PWD/$build/hf .venv-hf/bin/python tests/hf/parity.py
}

case ${1:-} in
build) do_build; say "built: $build/tapeout" ;;
demo) do_demo ;;
test) do_test ;;
test-hf) do_test_hf ;;
packages) echo "$packages$test_packages" | sed '/^$/d' ;;
*) sed -n '2,7s/^# //p' "$0" >&2; exit 2 ;;
esac
