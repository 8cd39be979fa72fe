# A run that has become long goes on by paths: every token as one by one, and a state saved then goes on as another does, one by one or by paths. What
# planes cannot hold, and what ends early, stays with the sparse back end.
run() { # CHIP BACKEND NAME FILE [OPTION...]: the trace in NAME.trace, what --stats says in NAME.stats
    local chip=$1 backend=$2 name=$3 file=$4; shift 4
    "$TAPEOUT" run "$chip" $file --backend "$backend" --trace "$tmp/$name.trace" --stats "$@" </dev/null >"$tmp/$name.out" 2>"$tmp/$name.stats"
}
count() { sed -n "s/^$1: //p" "$tmp/$2.stats"; }
mkdir "$tmp/soak" && firmware/build.sh "$tmp/soak" tests/lockstep/soak.c || exit 1
for elf in "$WORK"/firmware/{matrix,sha256}.elf "$tmp/soak/soak.elf"; do
    run "$CHIP" sparse one "$elf" --max-steps 100000
    run "$CHIP" adaptive two "$elf" --max-steps 100000
    cmp "$tmp/one.trace" "$tmp/two.trace" && cmp "$tmp/one.out" "$tmp/two.out" || { echo "$elf"; exit 1; }
    grep -q no_paths "$tmp/two.stats" && { echo "$elf: no paths: $(cat "$tmp/two.stats")"; exit 1; }
done
[ "$(uname -m)" != x86_64 ] || [ "$(count paths two)" -gt 10 ] || { echo "no paths were made"; exit 1; }

# The state in the middle: 70,000 steps, then 20,000 more in every combination.
for b in sparse adaptive; do run "$CHIP" $b "$b" "$tmp/soak/soak.elf" --max-steps 70000 --save-state "$tmp/$b.state"; done
for from in sparse adaptive; do
    for b in sparse adaptive; do
        run "$CHIP" $b "$from.$b" "" --load-state "$tmp/$from.state" --max-steps 20000
        cmp "$tmp/sparse.sparse.trace" "$tmp/$from.$b.trace" || { echo "from $from by $b"; exit 1; }
    done
done
