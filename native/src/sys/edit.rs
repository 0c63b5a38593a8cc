//! A session whose weights are added to a graph that was parsed without them.
//!
//! Only this way of passing weights transfers ownership: ONNX Runtime's model editor takes tensors that own their
//! memory, and frees each as soon as it has repacked or folded it. (`AddExternalInitializers` and `AddInitializer`
//! need memory that outlives the session, so every matrix would be in memory twice: original and repacked.)

use std::ffi::{CStr, CString};
use std::ptr::{self, NonNull};

use ort::sys::{OrtGraph, OrtModel, OrtModelEditorApi, OrtSession};

use super::{Env, Result, SessionOptions, Value, check, written};

/// The least size of a tensor that is taken over; smaller ones are copied.
const LEAST_TAKEN_OVER: usize = 128;

/// A tensor of the graph that was declared as an input of it.
#[derive(Debug)]
pub(crate) struct Weight {
    pub(crate) name: CString,
    pub(crate) value: Value<'static>,
    pub(crate) bytes: usize,
}

fn editor() -> Result<&'static OrtModelEditorApi> {
    // SAFETY: no preconditions; the table is static.
    unsafe { (ort::api().GetModelEditorApi)().as_ref() }
        .ok_or_else(|| ort::Error::new("this build of ONNX Runtime cannot edit models"))
}

/// Parses a graph whose first inputs are `inputs` and whose other inputs are the weights' names,
/// turns the latter into constants with the given values, and prepares it.
pub(super) fn session(
    env: &Env,
    graph: &[u8],
    options: &SessionOptions,
    inputs: &[CString],
    weights: Vec<Weight>,
) -> Result<NonNull<OrtSession>> {
    let editor = editor()?;
    let mut made = ptr::null_mut();
    // SAFETY: the environment and the options are alive; the bytes are read during the call.
    check(unsafe {
        (editor.CreateModelEditorSessionFromArray)(
            env.env.as_ptr(),
            graph.as_ptr().cast(),
            graph.len(),
            options.options.as_ptr(),
            &mut made,
        )
    })?;
    let made = Made(written(made)?);
    let mut model = update(editor, made.0, inputs, weights)?;
    // SAFETY: both are alive; the model is only read.
    check(unsafe { (editor.ApplyModelToModelEditorSession)(made.0.as_ptr(), model.0) })?;
    // The session has its own references to the weights; the last others go here.
    model.release();
    // SAFETY: the session and the options are alive, and no container is given.
    check(unsafe {
        (editor.FinalizeModelEditorSession)(made.0.as_ptr(), options.options.as_ptr(), ptr::null())
    })?;
    Ok(made.keep())
}

/// The change: fewer inputs, more constants.
fn update(
    editor: &OrtModelEditorApi,
    session: NonNull<OrtSession>,
    inputs: &[CString],
    weights: Vec<Weight>,
) -> Result<Model> {
    let mut graph = ptr::null_mut();
    // SAFETY: `graph` is written on success.
    check(unsafe { (editor.CreateGraph)(&mut graph) })?;
    let mut graph = Graph(written(graph)?.as_ptr());
    let mut infos = inputs
        .iter()
        .enumerate()
        .map(|(index, name)| input(editor, session, index, name))
        .collect::<Result<Vec<_>>>()?;
    // SAFETY: as many as are passed; the graph takes them over.
    check(unsafe { (editor.SetGraphInputs)(graph.0, infos.as_mut_ptr(), infos.len()) })?;
    for Weight { name, value, bytes } in weights {
        let taken_over = bytes >= LEAST_TAKEN_OVER;
        // SAFETY: the graph and the value are alive; the name is copied; the value's memory is
        // its own, so it is there for as long as anybody holds a reference.
        check(unsafe {
            (editor.AddInitializerToGraph)(graph.0, name.as_ptr(), value.value.as_ptr(), taken_over)
        })?;
        std::mem::forget(value); // The graph has taken it over.
    }
    let mut opset = 0;
    // SAFETY: the session is alive; `opset` is written on success.
    check(unsafe {
        (editor.SessionGetOpsetForDomain)(session.as_ptr(), c"".as_ptr(), &mut opset)
    })?;
    let mut model = ptr::null_mut();
    // SAFETY: one domain with one version.
    check(unsafe { (editor.CreateModel)(&c"".as_ptr(), &opset, 1, &mut model) })?;
    let model = Model(written(model)?.as_ptr());
    // SAFETY: both are alive; the model takes the graph over.
    check(unsafe { (editor.AddGraphToModel)(model.0, graph.0) })?;
    graph.0 = ptr::null_mut();
    Ok(model)
}

/// The description of one of the session's inputs.
fn input(
    editor: &OrtModelEditorApi,
    session: NonNull<OrtSession>,
    index: usize,
    name: &CStr,
) -> Result<*mut ort::sys::OrtValueInfo> {
    let mut kind = ptr::null_mut();
    // SAFETY: the session is alive; it refuses an index past its inputs.
    check(unsafe { (ort::api().SessionGetInputTypeInfo)(session.as_ptr(), index, &mut kind) })?;
    let kind = written(kind)?;
    let mut info = ptr::null_mut();
    // SAFETY: both are alive and copied.
    let result =
        check(unsafe { (editor.CreateValueInfo)(name.as_ptr(), kind.as_ptr(), &mut info) });
    // SAFETY: made above, not used after.
    unsafe { (ort::api().ReleaseTypeInfo)(kind.as_ptr()) };
    result.map(|()| info)
}

struct Made(NonNull<OrtSession>);

impl Made {
    fn keep(self) -> NonNull<OrtSession> {
        let session = self.0;
        std::mem::forget(self);
        session
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: made here and given to nobody.
        unsafe { (ort::api().ReleaseSession)(self.0.as_ptr()) };
    }
}

struct Graph(*mut OrtGraph);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made here, or null, which is ignored.
        unsafe { (ort::api().ReleaseGraph)(self.0) };
    }
}

struct Model(*mut OrtModel);

impl Model {
    fn release(&mut self) {
        let model = std::mem::replace(&mut self.0, ptr::null_mut());
        // SAFETY: made here, or null, which is ignored.
        unsafe { (ort::api().ReleaseModel)(model) };
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.release();
    }
}
