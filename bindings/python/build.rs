//! On macOS a module of Python is linked although Python's symbols are not there yet.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
