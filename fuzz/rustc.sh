#!/bin/sh
# The compiler of isovec's own crates for `cargo xtask fuzz` (RUSTC_WORKSPACE_WRAPPER): it adds the
# counters that libFuzzer watches, as cargo-fuzz does, and to no crate of others, so that these are
# compiled once for tests and fuzzing. Build scripts and macros run in the compiler, where there is
# no libFuzzer. Cargo does not see that this file changed: touch a file of the crates that it concerns.
rustc=$1
shift
case " $* " in
*" --crate-name build_script_"* | *" --crate-name ___ "* | *" --crate-type proc-macro "*) ;;
*)
    set -- "$@" --cfg fuzzing \
        -Cpasses=sancov-module \
        -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table
    case " $* " in
    # Loops over numbers: what they compare says nothing of the input, and to look took most of the time.
    *" --crate-name isovec_fuzz "* | *" --crate-name isovec_kernels "*) ;;
    *) set -- "$@" -Cllvm-args=-sanitizer-coverage-trace-compares ;;
    esac
    ;;
esac
exec "$rustc" "$@"
