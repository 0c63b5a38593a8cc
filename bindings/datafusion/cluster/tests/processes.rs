//! A cluster of a scheduler and two executors, each a process: the vectors are those of Rust, and an executor that is killed costs
//! no row.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ballista::prelude::SessionContextExt;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float32Type, Int64Type};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use isovec::Embedder;
use isovec_datafusion::{FINGERPRINT, register, with_functions};

const FILES: usize = 6;
const ROWS_OF_A_FILE: usize = 60;

fn model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/tiny-bert")
}

/// A port that nobody has, for a program that takes no listener.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(log: &Path, args: &[&str]) -> Self {
        let log = fs::File::create(log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_isovec-datafusion-cluster"))
            .args(args)
            .arg(model())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        Self(child.unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Cluster {
    folder: tempfile::TempDir,
    executors: Vec<Process>,
    _scheduler: Process,
    port: u16,
}

impl Cluster {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = |name: &str| folder.path().join(name);
        let port = free_port();
        let scheduler = Process::start(&log("scheduler.log"), &["scheduler", &port.to_string()]);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let executor = |at: usize| {
            let work = work_of(folder.path(), at);
            fs::create_dir(&work).unwrap();
            let ports = [port, free_port(), free_port()].map(|port| port.to_string());
            let args = [
                "executor",
                &ports[0],
                &ports[1],
                &ports[2],
                work.to_str().unwrap(),
            ];
            Process::start(&log(&format!("executor-{at}.log")), &args)
        };
        let executors = (0..2).map(executor).collect();
        Self {
            folder,
            executors,
            _scheduler: scheduler,
            port,
        }
    }

    /// A client's session with the table `docs`.
    async fn session(&self, embedder: &Embedder) -> SessionContext {
        let config = SessionConfig::new()
            .with_target_partitions(FILES)
            .with_batch_size(16);
        let builder = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config);
        let state = with_functions(builder, embedder).unwrap().build();
        let url = format!("df://127.0.0.1:{}", self.port);
        let context = SessionContext::remote_with_state(&url, state)
            .await
            .unwrap();
        let docs = self.folder.path().join("docs");
        fs::create_dir_all(&docs).unwrap();
        for file in 0..FILES {
            let rows = (0..ROWS_OF_A_FILE).map(|row| {
                let id = file * ROWS_OF_A_FILE + row;
                format!("{id},{}\n", text(id).unwrap_or_default())
            });
            let content = format!("id,body\n{}", rows.collect::<String>());
            fs::write(docs.join(format!("{file}.csv")), content).unwrap();
        }
        let docs = docs.to_str().unwrap();
        context
            .register_csv("docs", docs, Default::default())
            .await
            .unwrap();
        context
    }

    /// Files that an executor has written for others.
    fn written(&self, executor: usize) -> usize {
        let mut open = vec![work_of(self.folder.path(), executor)];
        let mut files = 0;
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    _ => files += 1,
                }
            }
        }
        files
    }
}

fn work_of(folder: &Path, executor: usize) -> PathBuf {
    folder.join(format!("work-{executor}"))
}

/// The text of a row; some rows have none.
fn text(id: usize) -> Option<String> {
    let words = ["rain", "falls", "on", "old", "hills", "again"];
    let words: Vec<&str> = (0..=id % 9).map(|word| words[(id + word) % 6]).collect();
    (id % 50 != 7).then(|| format!("{id} {}", words.join(" ")))
}

/// Ids and vectors, in the order of the ids.
fn sorted(batches: &[RecordBatch]) -> Vec<(i64, Option<Vec<f32>>)> {
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let vectors = batch.column(1).as_fixed_size_list().iter();
        let vectors =
            vectors.map(|list| Some(list?.as_primitive::<Float32Type>().values().to_vec()));
        rows.extend(ids.iter().copied().zip(vectors));
    }
    rows.sort_by_key(|(id, _)| *id);
    rows
}

async fn expected(embedder: &Embedder) -> Vec<(i64, Option<Vec<f32>>)> {
    let texts: Vec<_> = (0..FILES * ROWS_OF_A_FILE).map(text).collect();
    let vectors = embedder.embed(texts.iter().flatten()).await.unwrap();
    let mut vectors = vectors.into_vecs().into_iter();
    let rows = texts.iter().enumerate();
    rows.map(|(id, text)| {
        let vector = text.as_ref().map(|_| vectors.next().unwrap());
        (i64::try_from(id).unwrap(), vector)
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_processes_gives_the_vectors_of_rust() {
    let embedder = Embedder::load(model()).await.unwrap();
    let cluster = Cluster::start().await;
    let context = cluster.session(&embedder).await;
    let found = context
        .sql("SELECT id, embed(body) AS v FROM docs")
        .await
        .unwrap();
    assert!(found.schema().field(1).metadata().contains_key(FINGERPRINT));
    let found = found.collect().await.unwrap();
    assert_eq!(sorted(&found), expected(&embedder).await);

    // Sorted by a call, with a condition, as one process gives it.
    let sql = "SELECT id FROM docs WHERE id < 100 AND body IS NOT NULL
               ORDER BY similarity(embed(body), embed_query('old hills')) DESC, id LIMIT 7";
    let alone = SessionContext::new();
    register(&alone, &embedder).unwrap();
    let docs = cluster.folder.path().join("docs");
    let docs = docs.to_str().unwrap();
    alone
        .register_csv("docs", docs, Default::default())
        .await
        .unwrap();
    let ids = |batches: Vec<RecordBatch>| -> Vec<i64> {
        let ids = batches
            .iter()
            .map(|batch| batch.column(0).as_primitive::<Int64Type>());
        ids.flat_map(|ids| ids.values().to_vec()).collect()
    };
    let one = alone.sql(sql).await.unwrap().collect().await.unwrap();
    let many = context.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(ids(many), ids(one));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_is_killed_costs_no_row() {
    let embedder = Embedder::load(model()).await.unwrap();
    let mut cluster = Cluster::start().await;
    let context = cluster.session(&embedder).await;
    let sql = "SELECT id, embed(body) AS v FROM docs ORDER BY id";
    let query = context.sql(sql).await.unwrap();
    let query = tokio::spawn(query.collect());
    // With results of its own, which are lost with it.
    let killed = loop {
        if let Some(executor) = (0..2).find(|&executor| cluster.written(executor) > 0) {
            break executor;
        }
        assert!(
            !query.is_finished(),
            "the query ended before an executor wrote"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    cluster.executors[killed].kill();
    fs::remove_dir_all(work_of(cluster.folder.path(), killed)).unwrap();
    let found = query.await.unwrap().unwrap();
    assert_eq!(sorted(&found), expected(&embedder).await);
}
