//! The small graphs of `isovec-test-operators`, every operator of a program, on the GPU as well.

#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod common;

isovec_test_operators::operators!(elsewhere::run);

/// Where else a graph runs: on the adapter that there is.
mod elsewhere {
    use isovec_engine::bundle::ModelBundle;
    use isovec_engine::cancel::Cancel;
    use isovec_engine::engine::{Batch, Engine as _};

    /// The outputs, as rows by text.
    pub(crate) fn run(
        name: &str,
        bundle: &ModelBundle,
        batch: Batch,
    ) -> Option<Vec<Vec<Vec<f32>>>> {
        if !crate::common::has_adapter() {
            return None;
        }
        let again = Batch {
            inputs: batch.inputs.clone(),
            row_lengths: batch.row_lengths.clone(),
            ..Batch::default()
        };
        let plain = on(name, bundle, batch, false);
        let shared = on(name, bundle, again, true);
        for (plain, shared) in plain.iter().zip(&shared) {
            for (a, b) in plain.concat().iter().zip(shared.concat()) {
                let alike = *a == b || a.is_nan() && b.is_nan();
                let near = (a - b).abs() <= 2e-5 * a.abs().max(1.0);
                assert!(alike || near, "{name} by subgroups: {b} for {a}");
            }
        }
        Some(plain)
    }

    fn on(name: &str, bundle: &ModelBundle, batch: Batch, subgroups: bool) -> Vec<Vec<Vec<f32>>> {
        let texts = batch.rows();
        let load = crate::common::factory().with_subgroups(subgroups);
        let config = crate::common::config();
        let engine = pollster::block_on(load.load_model(bundle, &config, &Cancel::new()));
        let engine = engine.unwrap_or_else(|error| panic!("{name} on the GPU: {error}"));
        let output = engine.run_blocking(batch, &Cancel::new());
        let output = output.unwrap_or_else(|error| panic!("{name} on the GPU: {error}"));
        let rows = output.outputs.iter().map(|output| {
            let values = output.tensor.as_slice::<f32>().unwrap();
            let width = values.len() / texts;
            values.chunks(width).map(<[f32]>::to_vec).collect()
        });
        rows.collect()
    }
}
