#!/bin/sh
# The compiler of isovec's own crates for `cargo xtask fuzz` (RUSTC_WORKSPACE_WRAPPER): it adds the
# counters that libFuzzer watches, as cargo-fuzz does, and to no crate of others, so that these are
# compiled once for tests and fuzzing. Build scripts and macros run in the compiler, where there is
# no libFuzzer.
rustc=$1
shift
case " $* " in
*" --crate-name build_script_"* | *" --crate-name ___ "* | *" --crate-type proc-macro "*) ;;
*)
    set -- "$@" --cfg fuzzing \
        -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
esac
exec "$rustc" "$@"
