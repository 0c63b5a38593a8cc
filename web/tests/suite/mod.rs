//! The engine's tests, written once: `native.rs` and `browser.rs` run the same functions.

pub mod fakes;
pub mod model;
pub mod pictures;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine, EngineFactory, Probe, RunOutput};
use isovec_engine::onnx::proto::GraphProto;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_engine::weights::{BytesWeights, WeightInfo};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{int, ints};
use isovec_web::Portable;
use isovec_web::executor::Executor;

use fakes::{CountingWeights, FakeExecutor, SLICE, Turns};
use model::{MASK, OTHER_MASK, VOCABULARY, WIDTH, Weights, batch, reference, rows};

/// The bounds of the whole project, per component and in L2.
const COMPONENT: f64 = 1e-6;
const L2: f64 = 5e-6;

async fn load(executor: Arc<dyn Executor>, bundle: &ModelBundle) -> Arc<dyn Engine> {
    load_with(executor, bundle, &EngineConfig::default()).await
}

pub async fn load_with(
    executor: Arc<dyn Executor>,
    bundle: &ModelBundle,
    config: &EngineConfig,
) -> Arc<dyn Engine> {
    Portable::new(executor)
        .load(bundle, config, &Cancel::new())
        .await
        .unwrap()
}

async fn refusal(executor: Arc<dyn Executor>, bundle: &ModelBundle) -> EngineError {
    Portable::new(executor)
        .load(bundle, &EngineConfig::default(), &Cancel::new())
        .await
        .unwrap_err()
}

pub fn seeded() -> ModelBundle {
    model::model(Arc::new(Weights::seeded().source()))
}

fn vectors(mut output: RunOutput) -> Vec<f32> {
    let vectors = output.take("vector").unwrap();
    vectors.as_slice::<f32>().unwrap().to_vec()
}

async fn embed(engine: &dyn Engine, rows: &[Vec<i64>]) -> Vec<f32> {
    vectors(engine.run(batch(rows), &Cancel::new()).await.unwrap())
}

fn assert_close(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    let differences: Vec<f64> = got
        .iter()
        .zip(want)
        .map(|(g, w)| f64::from(*g) - w)
        .collect();
    let worst = differences
        .iter()
        .fold(0.0, |worst: f64, d| worst.max(d.abs()));
    let l2 = differences.iter().map(|d| d * d).sum::<f64>().sqrt();
    assert!(
        worst <= COMPONENT && l2 <= L2,
        "component {worst:.2e}, L2 {l2:.2e}"
    );
}

/// Every vector is the reference's, alone and in a padded batch.
pub async fn agrees_with_the_reference(executor: Arc<dyn Executor>) {
    let weights = Weights::seeded();
    let engine = load(executor, &seeded()).await;
    let rows = rows(32);
    let together = embed(&*engine, &rows).await;
    assert_eq!(together.len(), 32 * WIDTH);
    for (row, together) in rows.iter().zip(together.chunks(WIDTH)) {
        let want = reference(&weights, row);
        assert_close(&embed(&*engine, std::slice::from_ref(row)).await, &want);
        assert_close(together, &want);
    }
}

/// The same on tract, which runs what no program can say.
pub async fn tract_agrees_with_the_reference(executor: Arc<dyn Executor>) {
    let weights = Weights::seeded();
    let bundle = model::model_with_mask(Arc::new(weights.source()), OTHER_MASK);
    let engine = load(executor, &bundle).await;
    assert!(engine.provider().version.starts_with("tract "));
    assert!(!engine.capabilities().ragged);
    let rows = rows(32);
    let run = async |rows: &[Vec<i64>]| {
        let batch = model::batch_with_mask(rows, OTHER_MASK);
        vectors(engine.run(batch, &Cancel::new()).await.unwrap())
    };
    let together = run(&rows).await;
    for (row, together) in rows.iter().zip(together.chunks(WIDTH)) {
        let want = reference(&weights, row);
        assert_close(&run(std::slice::from_ref(row)).await, &want);
        assert_close(together, &want);
    }
}

/// Vectors of pictures.
async fn see(engine: &dyn Engine, seeds: &[u64]) -> Vec<f32> {
    let batch = pictures::batch(seeds);
    vectors(engine.run(batch, &Cancel::new()).await.unwrap())
}

/// A convolutional network has a program of its own, which gives a picture the same bits alone, in a batch and on any number of
/// threads.
pub async fn convolutions_agree_with_the_reference(executor: Arc<dyn Executor>) {
    let mut results = Vec::new();
    for threads in [1, 2] {
        let mut config = EngineConfig::default();
        config.session.intra_op_threads = Some(threads);
        let engine = load_with(Arc::clone(&executor), &pictures::model(false), &config).await;
        assert!(engine.provider().version.starts_with("isovec "));
        assert!(!engine.capabilities().ragged && engine.capabilities().deterministic);
        let together = see(&*engine, &[1, 2, 3]).await;
        for (seed, together) in (1..).zip(together.chunks(pictures::CHANNELS)) {
            assert_close(together, &pictures::reference(seed));
            assert_eq!(see(&*engine, &[seed]).await, together);
        }
        let blocking = engine.run_blocking(pictures::batch(&[1, 2, 3]), &Cancel::new());
        assert_eq!(vectors(blocking.unwrap()), together);
        results.push(together);
    }
    assert_eq!(results[0], results[1]);
}

/// One that has what no program has is tract's.
pub async fn other_convolutions_run_on_tract(executor: Arc<dyn Executor>) {
    let engine = load(executor, &pictures::model(true)).await;
    assert!(engine.provider().version.starts_with("tract "));
    assert_close(&see(&*engine, &[1]).await, &pictures::reference(1));
}

/// Pictures are computed in slices of time, and no operator runs after a cancel.
pub async fn convolutions_pause_and_are_cancelled() {
    let turns = Arc::new(Turns::default());
    let executor = Arc::new(FakeExecutor(Arc::clone(&turns)));
    let engine = load(executor, &pictures::model(false)).await;
    turns.forget();
    let whole = see(&*engine, &[1, 2]).await;
    assert!(turns.pauses() >= 4, "{} pauses", turns.pauses());
    assert!(turns.longest() <= SLICE + 1, "{} ticks", turns.longest());
    let cancel = Cancel::new();
    let token = cancel.clone();
    turns.forget();
    turns.on_pause(move |count| {
        if count == 2 {
            token.cancel();
        }
    });
    let result = engine.run(pictures::batch(&[1, 2]), &cancel).await;
    assert!(matches!(result, Err(EngineError::Cancelled)));
    assert_eq!(turns.pauses(), 2);
    turns.on_pause(|_| ());
    assert_eq!(see(&*engine, &[1, 2]).await, whole, "the engine works on");
}

/// A batch too heavy for one time slice, on tract: some rows at a time.
pub async fn tract_runs_heavy_batches_in_groups() {
    let turns = Arc::new(Turns::default());
    let bundle = model::model_with_mask(Arc::new(Weights::seeded().source()), OTHER_MASK);
    let engine = load(Arc::new(FakeExecutor(Arc::clone(&turns))), &bundle).await;
    let rows: Vec<Vec<i64>> = (0..7).map(|row| vec![row * 31; 512]).collect();
    let mut pauses = Vec::new();
    for rows in [&rows[..1], &rows[..]] {
        turns.forget();
        let batch = model::batch_with_mask(rows, OTHER_MASK);
        vectors(engine.run(batch, &Cancel::new()).await.unwrap());
        pauses.push(turns.pauses());
        assert!(turns.longest() <= SLICE + 1, "{} ticks", turns.longest());
    }
    assert!(pauses[1] >= 2 * pauses[0], "{pauses:?} pauses");
}

/// Tokens that are hidden in the middle of a text are refused: rows are run without padding.
pub async fn masks_with_holes_are_refused(executor: Arc<dyn Executor>) {
    let engine = load(executor, &seeded()).await;
    for mask in [[1, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0], [1, 2, 0, 0]] {
        let mut batch = batch(&[vec![1, 2, 3, 4]]);
        batch.inputs[1].tensor = Tensor::from_slice(&[1, 4], &mask.map(i64::from)).unwrap();
        let refused = engine.run(batch, &Cancel::new()).await.unwrap_err();
        assert!(refused.to_string().contains(MASK), "{refused}");
    }
}

/// The blocking twin gives the same bits, and both give the caller's tensors back.
pub async fn blocking_gives_the_same(executor: Arc<dyn Executor>) {
    let engine = load(executor, &seeded()).await;
    let rows = rows(3);
    let waited = embed(&*engine, &rows).await;
    let output = engine.run_blocking(batch(&rows), &Cancel::new()).unwrap();
    assert_eq!(output.inputs.len(), 2);
    assert_eq!(&*output.inputs[0].name, "ids");
    assert_eq!(vectors(output), waited);
}

/// Several runs at once, each with its own result.
pub async fn runs_at_once_do_not_meet(executor: Arc<dyn Executor>) {
    let engine = load(executor, &seeded()).await;
    let rows = rows(6);
    let mut alone = Vec::new();
    for row in &rows {
        alone.push(embed(&*engine, std::slice::from_ref(row)).await);
    }
    let cancel = Cancel::new();
    let mut waiting: Vec<_> = rows
        .iter()
        .map(|row| Some(engine.run(batch(std::slice::from_ref(row)), &cancel)))
        .collect();
    let mut results: Vec<Option<Vec<f32>>> = vec![None; rows.len()];
    std::future::poll_fn(|context| {
        for (future, result) in waiting.iter_mut().zip(&mut results) {
            if let Some(run) = future
                && let Poll::Ready(output) = run.as_mut().poll(context)
            {
                *result = Some(vectors(output.unwrap()));
                *future = None;
            }
        }
        if waiting.iter().all(Option::is_none) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    for (result, alone) in results.into_iter().zip(alone) {
        assert_eq!(result.unwrap(), alone);
    }
}

/// A token that was cancelled before, for loading and for running.
pub async fn cancelled_from_the_start(executor: Arc<dyn Executor>) {
    let engine = load(Arc::clone(&executor), &seeded()).await;
    let cancel = Cancel::new();
    cancel.cancel();
    let refused = engine.run(batch(&rows(1)), &cancel).await;
    assert!(matches!(refused, Err(EngineError::Cancelled)));
    let refused = engine.run_blocking(batch(&rows(1)), &cancel);
    assert!(matches!(refused, Err(EngineError::Cancelled)));
    let refused = Portable::new(executor)
        .load(&seeded(), &EngineConfig::default(), &cancel)
        .await;
    assert!(matches!(refused, Err(EngineError::Cancelled)));
}

/// A cancel that comes in a pause stops the run there: no operator runs after it.
pub async fn cancel_stops_between_operators() {
    let turns = Arc::new(Turns::default());
    let engine = load(Arc::new(FakeExecutor(Arc::clone(&turns))), &seeded()).await;
    turns.forget();
    let whole = embed(&*engine, &rows(2)).await;
    let pauses = turns.pauses();
    assert!(
        pauses >= 4,
        "the model is too small for this test: {pauses} pauses"
    );

    let cancel = Cancel::new();
    let token = cancel.clone();
    turns.forget();
    turns.on_pause(move |count| {
        if count == 2 {
            token.cancel();
        }
    });
    let result = engine.run(batch(&rows(2)), &cancel).await;
    assert!(matches!(result, Err(EngineError::Cancelled)));
    assert_eq!(turns.pauses(), 2);

    turns.on_pause(|_| ());
    assert_eq!(
        embed(&*engine, &rows(2)).await,
        whole,
        "the engine works on"
    );
}

/// Between two pauses lies no more than the time slice and one operator.
pub async fn pauses_in_time() {
    let turns = Arc::new(Turns::default());
    let engine = load(Arc::new(FakeExecutor(Arc::clone(&turns))), &seeded()).await;
    turns.forget();
    embed(&*engine, &rows(4)).await;
    assert!(turns.pauses() >= 4, "{} pauses", turns.pauses());
    assert!(
        turns.longest() <= SLICE + 1,
        "{} ticks without a pause",
        turns.longest()
    );
}

/// A batch too heavy for one time slice is run a piece at a time, always the same pieces.
pub async fn heavy_batches_are_run_in_pieces() {
    let turns = Arc::new(Turns::default());
    let engine = load(Arc::new(FakeExecutor(Arc::clone(&turns))), &seeded()).await;
    let long = |row: usize| {
        (0..1024)
            .map(|at| ((row * 31 + at * 17) % VOCABULARY) as i64)
            .collect()
    };
    let rows: Vec<Vec<i64>> = (0..12).map(long).collect();
    turns.forget();
    embed(&*engine, &rows[..1]).await;
    let one = turns.pauses();
    turns.forget();
    let vectors_of_all = embed(&*engine, &rows).await;
    assert!(
        turns.pauses() >= 2 * one,
        "{} pauses, for one row {one}",
        turns.pauses()
    );
    assert!(
        turns.longest() <= SLICE + 1,
        "{} ticks without a pause",
        turns.longest()
    );
    assert_eq!(embed(&*engine, &rows).await, vectors_of_all);
    let whole = vectors(engine.run_blocking(batch(&rows), &Cancel::new()).unwrap());
    let whole: Vec<f64> = whole.into_iter().map(f64::from).collect();
    for (row, whole) in vectors_of_all.chunks(WIDTH).zip(whole.chunks(WIDTH)) {
        assert_close(row, whole);
    }
}

/// Dropping the future ends the run, and leaves an engine that works.
pub async fn dropping_the_future_cancels() {
    let turns = Arc::new(Turns::default());
    let engine = load(Arc::new(FakeExecutor(Arc::clone(&turns))), &seeded()).await;
    let whole = embed(&*engine, &rows(2)).await;
    turns.forget();
    {
        let cancel = Cancel::new();
        let mut run = pin!(engine.run(batch(&rows(2)), &cancel));
        let mut context = Context::from_waker(Waker::noop());
        assert!(run.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(turns.pauses(), 1);
    assert_eq!(embed(&*engine, &rows(2)).await, whole);
}

/// Dropping it where a real executor runs it.
pub async fn dropping_the_future_leaves_a_working_engine(executor: Arc<dyn Executor>) {
    let engine = load(executor, &seeded()).await;
    let whole = embed(&*engine, &rows(2)).await;
    for _ in 0..3 {
        let cancel = Cancel::new();
        let mut run = pin!(engine.run(batch(&rows(20)), &cancel));
        let mut context = Context::from_waker(Waker::noop());
        let _ = run.as_mut().poll(&mut context);
    }
    assert_eq!(embed(&*engine, &rows(2)).await, whole);
}

/// Weights are read once each, one at a time, and none is kept.
pub async fn weights_are_read_one_at_a_time(executor: Arc<dyn Executor>) {
    let weights = Arc::new(CountingWeights::new(Weights::seeded().source()));
    let engine = load(executor, &model::model(Arc::clone(&weights) as _)).await;
    let mut reads = weights.reads();
    reads.sort();
    let all = [
        "down",
        "down_bias",
        "gain",
        "query",
        "shift",
        "table",
        "up",
        "up_bias",
    ];
    assert_eq!(reads, all);
    assert_eq!(weights.live(), 0, "the source's bytes are not kept");
    let largest = Weights::seeded().source();
    let largest = isovec_engine::weights::WeightSource::weights(&largest);
    let largest = largest.iter().map(WeightInfo::byte_len).max().unwrap();
    // The small ones are in the graph while it is parsed, and gone when the large ones come.
    assert!(
        weights.most() <= largest,
        "{} bytes at once, the largest has {largest}",
        weights.most()
    );
    embed(&*engine, &rows(2)).await;
    assert_eq!(weights.reads().len(), all.len(), "a run reads nothing");
}

/// A batch that does not fit is named before anything runs.
pub async fn wrong_inputs_are_refused(executor: Arc<dyn Executor>) {
    let engine = load(executor, &seeded()).await;
    let tensor = |name: &str, shape: &[usize]| {
        NamedTensor::new(name, Tensor::zeros(DType::I64, shape).unwrap())
    };
    let floats = NamedTensor::new(
        "attention_mask",
        Tensor::zeros(DType::F32, &[1, 4]).unwrap(),
    );
    for (inputs, words) in [
        (vec![tensor("ids", &[1, 4])], "attention_mask: is missing"),
        (
            vec![tensor("ids", &[1, 4]), floats],
            "attention_mask: is f32",
        ),
        (
            vec![tensor("ids", &[1, 4]), tensor("attention_mask", &[4])],
            "attention_mask: has shape",
        ),
        (
            vec![tensor("ids", &[1, 4]), tensor("attention_mask", &[1, 5])],
            "sequence",
        ),
        (
            vec![tensor("ids", &[2, 4]), tensor("attention_mask", &[1, 4])],
            "attention_mask: has 1 rows",
        ),
        (
            vec![tensor("ids", &[1, 0]), tensor("attention_mask", &[1, 0])],
            "empty",
        ),
    ] {
        let batch = || Batch {
            inputs: inputs.clone(),
            row_lengths: Vec::new(),
            ..Batch::default()
        };
        for refused in [
            engine.run(batch(), &Cancel::new()).await.unwrap_err(),
            engine.run_blocking(batch(), &Cancel::new()).unwrap_err(),
        ] {
            assert!(
                matches!(refused, EngineError::InvalidInput { .. }),
                "{refused:?}"
            );
            assert!(
                refused.to_string().contains(words),
                "{refused} lacks {words:?}"
            );
        }
    }
}

/// Ids beyond the vocabulary: not a panic, which in the browser would end the instance.
pub async fn ids_beyond_the_table_are_refused(executor: Arc<dyn Executor>) {
    let engine = load(executor, &seeded()).await;
    for id in [VOCABULARY as i64, i64::MAX, -(VOCABULARY as i64) - 1] {
        let refused = engine
            .run(batch(&[vec![1, id, 2]]), &Cancel::new())
            .await
            .unwrap_err();
        assert!(
            matches!(refused, EngineError::InvalidInput { .. }),
            "{refused:?}"
        );
        assert!(refused.to_string().contains(&id.to_string()), "{refused}");
    }
    embed(&*engine, &rows(1)).await;
}

/// Operators that nobody here implements are named, all of them.
pub async fn unknown_operators_are_named(executor: Arc<dyn Executor>) {
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t.");
    g.input("x", DType::F32, &model::symbolic(&["batch"]));
    let a = g.node("Frobnicate", &["x"], vec![]);
    let b = g.node("Add", &[&a, "x"], vec![]);
    g.named_node("Zap", &[&b], "y", vec![]);
    g.output("y", DType::F32, &model::symbolic(&["batch"]));
    graph.node[1].domain = "elsewhere".into();
    let error = refusal(
        executor,
        &model::bundle(graph, Arc::new(BytesWeights::new())),
    )
    .await;
    let EngineError::UnsupportedOperator { operators, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(operators, ["Frobnicate", "Zap", "elsewhere::Add"]);
}

/// Graphs that cannot be right.
pub async fn broken_graphs_are_refused(executor: Arc<dyn Executor>) {
    let graph = |node: &dyn Fn(&mut GraphBuilder<'_>)| {
        let mut graph = GraphProto::default();
        let mut g = GraphBuilder::new(&mut graph, "t.");
        g.input("x", DType::F32, &model::symbolic(&["batch"]));
        node(&mut g);
        g.output("y", DType::F32, &model::symbolic(&["batch"]));
        model::bundle(graph, Arc::new(BytesWeights::new()))
    };
    let nowhere = graph(&|g| g.named_node("Add", &["x", "nowhere"], "y", vec![]));
    let no_output = graph(&|g| g.named_node("Relu", &["x"], "z", vec![]));
    let twice = graph(&|g| {
        g.named_node("Relu", &["x"], "y", vec![]);
        g.named_node("Relu", &["x"], "y", vec![]);
    });
    let mut empty = graph(&|g| g.named_node("Relu", &["x"], "y", vec![]));
    empty.graph.graph = None;
    for (bundle, words) in [
        (nowhere, "nowhere"),
        (no_output, "\"y\""),
        (twice, "two nodes"),
        (empty, "no graph"),
    ] {
        let error = refusal(Arc::clone(&executor), &bundle).await;
        assert!(
            matches!(
                error,
                EngineError::InvalidModel { .. } | EngineError::UnsupportedModel { .. }
            ),
            "{error:?}"
        );
        assert!(error.to_string().contains(words), "{error} lacks {words:?}");
    }
}

/// Weights whose shape does not fit the graph, and a source that lies about a length.
pub async fn wrong_weights_are_refused(executor: Arc<dyn Executor>) {
    let seeded = Weights::seeded().source();
    let infos = isovec_engine::weights::WeightSource::weights(&seeded).to_vec();
    let with = |change: &dyn Fn(&mut WeightInfo)| {
        let mut source = BytesWeights::new();
        for mut info in infos.clone() {
            change(&mut info);
            let data = Bytes::from(vec![0; info.byte_len()]);
            source.push(info, data).unwrap();
        }
        model::model(Arc::new(source))
    };
    let misfit = with(&|info| {
        if info.name == "up" {
            info.shape = vec![WIDTH + 1, model::INNER];
        }
    });
    let error = refusal(Arc::clone(&executor), &misfit).await;
    assert!(
        matches!(
            error,
            EngineError::InvalidModel { .. } | EngineError::UnsupportedModel { .. }
        ),
        "{error:?}"
    );
    let short = model::model(Arc::new(Short(Weights::seeded().source())));
    let error = refusal(executor, &short).await;
    assert!(matches!(&error, EngineError::Weight { .. }), "{error:?}");
}

/// Gives a byte less than it says.
#[derive(Debug)]
struct Short(BytesWeights);

impl isovec_engine::weights::WeightSource for Short {
    fn weights(&self) -> &[WeightInfo] {
        self.0.weights()
    }

    fn read<'a>(&'a self, index: usize) -> isovec_engine::maybe_send::EngineFuture<'a, Bytes> {
        Box::pin(async move {
            let data = self.0.read(index).await?;
            Ok(data.slice(..data.len() - 1))
        })
    }
}

/// A weight used as it is, transposed, and by two readers: one value each way.
pub async fn a_weight_with_several_readers(executor: Arc<dyn Executor>) {
    let (rows, columns) = (160, 160);
    let values: Vec<f32> = (0..rows * columns)
        .map(|at| ((at * 37) % 101) as f32 / 101.0)
        .collect();
    let mut source = BytesWeights::new();
    let info = WeightInfo {
        name: "w".into(),
        dtype: DType::F32,
        shape: vec![rows, columns],
    };
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    source.push(info, Bytes::from(data)).unwrap();
    let mut graph = GraphProto::default();
    let mut g = GraphBuilder::new(&mut graph, "t.");
    g.input("ids", DType::I64, &model::symbolic(&["batch", "sequence"]));
    let x = g.node("Gather", &["w", "ids"], vec![]);
    let straight = g.node("MatMul", &[&x, "w"], vec![]);
    let turned = g.node("Transpose", &["w"], vec![]);
    let turned = g.node("MatMul", &[&x, &turned], vec![]);
    let sum = g.node("Add", &[&straight, &turned], vec![]);
    let over = vec![ints("axes", &[1]), int("keepdims", 0)];
    g.named_node("ReduceMean", &[&sum], "vector", over);
    g.output("vector", DType::F32, &model::symbolic(&["batch", "width"]));
    let weights = Arc::new(CountingWeights::new(source));
    let engine = load(executor, &model::bundle(graph, Arc::clone(&weights) as _)).await;
    assert_eq!(weights.reads(), ["w"], "read once for all its readers");
    let ids = Tensor::from_slice(&[2, 1], &[3i64, 150]).unwrap();
    let batch = Batch {
        inputs: vec![NamedTensor::new("ids", ids)],
        row_lengths: Vec::new(),
        ..Batch::default()
    };
    let got = vectors(engine.run(batch, &Cancel::new()).await.unwrap());
    for (row, got) in [3, 150].into_iter().zip(got.chunks(columns)) {
        for (column, got) in got.iter().enumerate() {
            let want: f64 = (0..columns)
                .map(|k| {
                    let x = f64::from(values[row * columns + k]);
                    x * (f64::from(values[k * columns + column])
                        + f64::from(values[column * columns + k]))
                })
                .sum();
            assert!(
                (f64::from(*got) - want).abs() <= want.abs() * 1e-6,
                "{got} is not {want}"
            );
        }
    }
}

/// What the engine says of itself.
pub async fn says_what_it_is(executor: Arc<dyn Executor>) {
    let factory = Portable::new(Arc::clone(&executor));
    assert_eq!(factory.name(), "portable");
    assert!(matches!(factory.probe(), Probe::Available { .. }));
    let engine = load(executor, &seeded()).await;
    assert_eq!(engine.provider().engine, "portable");
    assert!(engine.provider().version.starts_with("isovec "));
    assert!(engine.capabilities().ragged);
    assert!(engine.capabilities().cancels_running);
    let names: Vec<_> = engine
        .description()
        .inputs
        .iter()
        .map(|v| v.name.as_str())
        .collect();
    assert_eq!(names, ["ids", MASK]);
    let zeros = engine.alloc(DType::I64, &[2, 3]).unwrap();
    assert_eq!(zeros.shape(), [2, 3]);
}

/// The number of threads does not change a bit.
pub async fn threads_do_not_change_results(executor: Arc<dyn Executor>) {
    let mut results = Vec::new();
    for threads in [1, 2, 3] {
        let mut config = EngineConfig::default();
        config.session.intra_op_threads = Some(threads);
        let engine = load_with(Arc::clone(&executor), &seeded(), &config).await;
        results.push(embed(&*engine, &rows(40)).await);
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}
