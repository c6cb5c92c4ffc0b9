#!/usr/bin/env bash
# Pairs this tree with an older commit: fibra's figures of `compare` from both, taken in turn, and the ratios of now to before.
# Usage: benches/pair.sh COMMIT [turns, 5 unless given] [options and questions of compare]; a built `compare` may stand for COMMIT,
# which needs a `compare` that knows --json.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

before=${1:?the commit to pair with} turns=${2:-5}
shift $(($# < 2 ? $# : 2))
program=(-p fibra-bench --features rivals --bin compare)
if [[ ! -x $before || -d $before ]]; then
    before=$(benches/before.sh "$before" "${program[@]}" | head -n 1)/compare
fi
cargo build --release "${program[@]}"
now=${CARGO_TARGET_DIR:-target}/release/compare

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Prints a row for each figure of one run: what it is of, and the median.
figures() {
    rm -f "$work/figures.json"
    # An entrant that dies or a file that cannot be written is an error, but leaves the other figures.
    "$1" --among fibra --html "$work/page.html" --json "$work/figures.json" "${@:2}" >/dev/null 2>"$work/complaints" ||
        cat "$work/complaints" >&2
    [[ -s $work/figures.json ]] || return 1
    sed 's/{"best_rival"/\n&/g' "$work/figures.json" | sed -nE \
        's/.*"median":([0-9.e+]*),"name":"fibra".*"measure":"(\w*)".*"question":"([^"]*)".*"subject":"([^"]*)".*"workers":([0-9]*).*/\5 \4: \3 [\2]\t\1/p'
}
for turn in $(seq "$turns"); do
    order=(before now)
    ((turn % 2)) || order=(now before)
    for name in "${order[@]}"; do
        echo "turn $turn of $turns: $name" >&2
        figures "${!name}" "$@" | sed "s/^/$turn\t$name\t/"
    done
done >"$work/all"
[[ -s $work/all ]] || { echo "fibra answered none of the questions" >&2; exit 1; }

awk -F '\t' '
    { figure[$3, $1, $2] = $4; if (!($3 in seen)) { seen[$3]; row[++rows] = $3 }; if ($1 > turns) turns = $1 }
    function middle(all, count,    i, j, swap) {
        for (i = 2; i <= count; i++)
            for (j = i; j > 1 && all[j] < all[j - 1]; j--) { swap = all[j]; all[j] = all[j - 1]; all[j - 1] = swap }
        return (all[int((count + 1) / 2)] + all[int(count / 2) + 1]) / 2
    }
    END {
        printf "%-60s %12s %12s %8s\n", "workers, question [measure]", "before", "now", "ratio"
        for (r = 1; r <= rows; r++) {
            count = 0
            for (turn = 1; turn <= turns; turn++) {
                old = figure[row[r], turn, "before"]; new = figure[row[r], turn, "now"]
                if (old > 0 && new > 0) { count++; olds[count] = old; news[count] = new; ratios[count] = new / old }
            }
            if (count) printf "%-60s %12.1f %12.1f %8.2f\n", row[r], middle(olds, count), middle(news, count), middle(ratios, count)
            else printf "%-60s asked of one of the two only\n", row[r]
        }
    }' "$work/all"
