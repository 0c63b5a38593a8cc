//! The server, asked by the clients that others publish for its protocols.

use anyhow::Result;

use super::{Check, Verdict};
use crate::demo;
use crate::process::{Run, npm};
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "clients",
    what: "official clients of OpenAI (Python, JavaScript), Hugging Face and Triton get vectors and errors of `isovec serve`, and schemathesis asks for what its OpenAPI document allows and for what it does not",
    concerned: |broken| broken.in_code_of("isovec-serve") || broken.in_code_of("isovec-cli"),
    own: Some(|broken| broken.in_own_code_of("isovec-serve")),
    needs: &["python", "npm-clients"],
    run,
}];

fn run(workspace: &Workspace) -> Result<Verdict> {
    let program = demo::program(workspace)?;
    let python = Workspace::interpreter(&workspace.python());
    Run::new(workspace, python)?
        .args(["-m", "pytest", "--strict-markers", "-p", "no:cacheprovider"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("ISOVEC_TEST_PROGRAM", &program)
        .within(&workspace.clients())
        .show()?;
    npm(workspace)?
        .args(["test"])
        .env("ISOVEC_TEST_PROGRAM", &program)
        .within(&workspace.clients())
        .show()?;
    Ok(Verdict::Passed)
}
