//! How tensors reach an engine and come back.

/// How tensors reach an engine and come back. `None` in a field leaves the choice to the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoConfig {
    /// Tell the engine before a run where its outputs go, so that it writes them there.
    pub io_binding: Option<bool>,
    /// Let the engine read inputs where they are.
    pub zero_copy: Option<bool>,
    /// Input buffers that are made when the model is loaded, so that the first batches find some.
    pub pre_allocated_input_buffers: Option<usize>,
    /// The same for outputs.
    pub pre_allocated_output_buffers: Option<usize>,
}
