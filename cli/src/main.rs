//! The program `isovec`.

use std::process::ExitCode;

fn main() -> ExitCode {
    isovec_cli::main()
}
