//! A graph that is ready to run.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr::{self, NonNull};

use ort::sys::{OrtAllocator, OrtKeyValuePairs, OrtSession, OrtValue};
use smallvec::SmallVec;

use super::{Env, Result, RunOptions, SessionOptions, Value, Weight, check, edit, end, written};

/// Names as the C interface takes them, once and for all.
#[derive(Debug)]
pub(crate) struct Names {
    texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead into the texts, which are never changed.
unsafe impl Send for Names {}
// SAFETY: as above.
unsafe impl Sync for Names {}

impl Names {
    pub(crate) fn new(texts: Vec<CString>) -> Self {
        // A text's bytes stay where they are when the vector moves.
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Self { texts, pointers }
    }

    pub(crate) fn texts(&self) -> &[CString] {
        &self.texts
    }
}

/// A graph that is ready to run, by several threads at once.
#[derive(Debug)]
pub(crate) struct Session {
    session: NonNull<OrtSession>,
    outputs: usize,
}

// SAFETY: a session has no ties to the thread that made it.
unsafe impl Send for Session {}
// SAFETY: the interface documents `Run` as callable from several threads at the same time, and
// the other calls here only read.
unsafe impl Sync for Session {}

impl Session {
    /// Parses, optimises and prepares a serialised graph. Its inputs are `inputs` and, after them,
    /// the weights, which become constants.
    pub(crate) fn new(
        env: &Env,
        graph: &[u8],
        options: &SessionOptions,
        inputs: &[CString],
        weights: Vec<Weight>,
    ) -> Result<Self> {
        let session = edit::session(env, graph, options, inputs, weights)?;
        let mut session = Self {
            session,
            outputs: 0,
        };
        // SAFETY: the session is alive; the count is written on success.
        check(unsafe {
            (ort::api().SessionGetOutputCount)(session.session.as_ptr(), &mut session.outputs)
        })?;
        Ok(session)
    }

    /// How many outputs the graph has.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Runs the graph. `results` holds a value for every output: those that are there are written
    /// to, the others are made. Ends early, with an error, once `options` are stopped.
    pub(crate) fn run(
        &self,
        input_names: &Names,
        inputs: &[Value<'_>],
        output_names: &Names,
        results: &mut [Option<Value<'_>>],
        options: &RunOptions,
    ) -> Result<()> {
        assert_eq!(
            (inputs.len(), results.len()),
            (input_names.pointers.len(), output_names.pointers.len()),
            "a value for every name"
        );
        let input_values: SmallVec<[*const OrtValue; 4]> = inputs
            .iter()
            .map(|value| value.value.as_ptr().cast_const())
            .collect();
        let mut output_values: SmallVec<[*mut OrtValue; 4]> = results
            .iter()
            .map(|value| {
                value
                    .as_ref()
                    .map_or(ptr::null_mut(), |value| value.value.as_ptr())
            })
            .collect();
        // SAFETY: every array has the length passed with it, every pointer in them is alive
        // until the call returns, and ONNX Runtime only reads inputs. Outputs that are null it
        // allocates; the others are ours alone (`view_mut` took their memory exclusively).
        let result = check(unsafe {
            (ort::api().Run)(
                self.session.as_ptr(),
                options.ptr(),
                input_names.pointers.as_ptr(),
                input_values.as_ptr(),
                input_values.len(),
                output_names.pointers.as_ptr(),
                output_values.len(),
                output_values.as_mut_ptr(),
            )
        });
        // Taken over before looking at the result, so that none is lost.
        for (slot, value) in results.iter_mut().zip(output_values) {
            if slot.is_none() {
                *slot = NonNull::new(value).map(Value::owned);
            }
        }
        result?;
        if results.iter().any(Option::is_none) {
            return Err(ort::Error::new("ONNX Runtime left an output out"));
        }
        Ok(())
    }

    /// How many nodes of the optimised graph each provider has. The session was made with the
    /// entry `session.record_ep_graph_assignment_info`.
    pub(crate) fn placement(&self) -> Result<BTreeMap<String, usize>> {
        let api = ort::api();
        let (mut graphs, mut count) = (ptr::null(), 0);
        // SAFETY: the session is alive and owns what is written.
        check(unsafe {
            (api.Session_GetEpGraphAssignmentInfo)(self.session.as_ptr(), &mut graphs, &mut count)
        })?;
        let mut placement = BTreeMap::new();
        for at in 0..count {
            // SAFETY: there are `count` pointers, alive as long as the session.
            let graph = unsafe { *graphs.add(at) };
            let mut name = ptr::null();
            // SAFETY: as above; the name is the session's.
            check(unsafe { (api.EpAssignedSubgraph_GetEpName)(graph, &mut name) })?;
            let (mut nodes, mut node_count) = (ptr::null(), 0);
            // SAFETY: as above.
            check(unsafe {
                (api.EpAssignedSubgraph_GetNodes)(graph, &mut nodes, &mut node_count)
            })?;
            if name.is_null() {
                continue;
            }
            // SAFETY: not null, ends in a zero byte, lives as long as the session.
            let name = unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned();
            *placement.entry(name).or_default() += node_count;
        }
        Ok(placement)
    }

    /// Ends the profile that the session's options asked for, and gives the name of its file. No
    /// run may be under way.
    pub(crate) fn end_profiling(&self) -> Result<String> {
        let api = ort::api();
        let (mut allocator, mut name) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the allocator is ONNX Runtime's own, which lives as long as the library.
        check(unsafe { (api.GetAllocatorWithDefaultOptions)(&mut allocator) })?;
        // SAFETY: the session is alive, and its profile has a lock of its own; the name is written
        // on success.
        check(unsafe { (api.SessionEndProfiling)(self.session.as_ptr(), allocator, &mut name) })?;
        let name = written(name)?;
        // SAFETY: not null, and ends in a zero byte.
        let text = unsafe { CStr::from_ptr(name.as_ptr()) };
        let text = text.to_string_lossy().into_owned();
        // SAFETY: the allocator gave it, and it is not used after.
        check(unsafe { (api.AllocatorFree)(allocator, name.as_ptr().cast()) })?;
        Ok(text)
    }

    /// The session's allocator on the host.
    pub(crate) fn arena(&self, env: &Env) -> Result<Arena<'_>> {
        let mut allocator = ptr::null_mut();
        // SAFETY: both are alive; the allocator is written on success.
        check(unsafe {
            (ort::api().CreateAllocator)(self.session.as_ptr(), env.cpu.as_ptr(), &mut allocator)
        })?;
        Ok(Arena {
            allocator: written(allocator)?,
            _session: self,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and no run is under way (`run` borrows it).
        end::release(|| unsafe { (ort::api().ReleaseSession)(self.session.as_ptr()) });
    }
}

/// A session's memory on the host.
#[derive(Debug)]
pub(crate) struct Arena<'session> {
    allocator: NonNull<OrtAllocator>,
    _session: &'session Session,
}

impl Arena<'_> {
    /// The most bytes that were in use at one time; `None` where the allocator does not count
    /// (one without an arena).
    pub(crate) fn peak_bytes(&self) -> Result<Option<u64>> {
        self.number(c"MaxInUse")
    }

    /// The bytes in use now.
    pub(crate) fn bytes(&self) -> Result<Option<u64>> {
        self.number(c"InUse")
    }

    fn number(&self, key: &CStr) -> Result<Option<u64>> {
        let mut pairs: *mut OrtKeyValuePairs = ptr::null_mut();
        // SAFETY: the allocator is alive; the pairs are written on success.
        check(unsafe { (ort::api().AllocatorGetStats)(self.allocator.as_ptr(), &mut pairs) })?;
        let pairs = written(pairs)?;
        // SAFETY: the pairs are alive until released below; an unknown key gives null.
        let value = unsafe { (ort::api().GetKeyValue)(pairs.as_ptr(), key.as_ptr()) };
        let number = if value.is_null() {
            None
        } else {
            // SAFETY: not null, ends in a zero byte, and belongs to the pairs.
            unsafe { CStr::from_ptr(value) }
                .to_str()
                .ok()
                .and_then(|text| text.parse().ok())
        };
        // SAFETY: made above, not used after.
        unsafe { (ort::api().ReleaseKeyValuePairs)(pairs.as_ptr()) };
        Ok(number)
    }
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `arena`, while the session still lives.
        unsafe { (ort::api().ReleaseAllocator)(self.allocator.as_ptr()) };
    }
}
