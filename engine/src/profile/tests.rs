//! The recorder, the spans and the trace, without a model.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::counters::Ended;

/// A model whose runtime records nothing, or this.
#[derive(Default)]
struct Model(Mutex<OwnProfile>);

impl EndProfile for Model {
    fn end_profile(&self, runs: &Runs) -> Vec<Event> {
        runs.operators(std::mem::take(&mut self.0.lock().unwrap()))
    }
}

fn attach(session: &ProfileSession, profiler: &Profiler) -> Result<(), AlreadyProfiled> {
    session.attach(profiler, Arc::new(Model::default()))
}

fn session(capacity: usize) -> (ProfileSession, Profiler) {
    let session = ProfileSession::start(ProfileOptions::default().with_capacity(capacity));
    let profiler = Profiler::default();
    attach(&session, &profiler).unwrap();
    (session, profiler)
}

fn of(profile: &Profile, stage: Stage) -> Vec<&Event> {
    let events = profile.events().iter();
    events.filter(|event| event.stage == stage).collect()
}

#[test]
fn nothing_is_recorded_where_nobody_looks() {
    let profiler = Profiler::default();
    let request = profiler.request(3);
    assert!(!request.scope().is_on());
    assert_eq!(request.scope().request(), None);
    let batch = Scope::batch([request.scope()]);
    assert!(!batch.scope().is_on());
    profiler.counter("never asked", || panic!("nobody looks"));
}

#[test]
fn a_request_and_what_is_done_for_it_have_its_id() {
    let (session, profiler) = session(100);
    let mut first = profiler.request(2);
    let second = profiler.request(1);
    let ids = [first.scope(), second.scope()].map(|scope| scope.request().unwrap());
    assert_ne!(ids[0], ids[1]);
    drop(first.scope().span(Stage::Tokenize));
    let mut batch = Scope::batch([first.scope(), second.scope(), first.scope()]);
    batch.holds((3, 20, 24));
    {
        let run = batch.scope().span(Stage::Run);
        let begun = run.scope().operator().unwrap();
        run.scope().ran(begun, "linear", Detail::None);
        drop(run.scope().operator());
    }
    drop(batch);
    first.ended(Ended::Well);
    drop((first, second));
    let profile = session.finish();

    let [tokenize] = of(&profile, Stage::Tokenize)[..] else {
        panic!("{profile:?}")
    };
    assert_eq!(tokenize.request, Some(ids[0]));
    let [batch] = of(&profile, Stage::Batch)[..] else {
        panic!("{profile:?}")
    };
    assert_eq!(batch.request, None, "it is for several");
    let Detail::Batch { requests, rows, .. } = &batch.detail else {
        panic!("{batch:?}")
    };
    assert_eq!((&requests[..], *rows), (&ids[..], 3));
    let [operator] = of(&profile, Stage::Operator)[..] else {
        panic!("{profile:?}")
    };
    assert_eq!(
        (operator.name.as_ref(), operator.batch),
        ("linear", batch.batch)
    );
    let [run] = of(&profile, Stage::Run)[..] else {
        panic!("{profile:?}")
    };
    assert!(run.start <= operator.start);
    assert!(run.start + run.took() >= operator.start + operator.took());
    let ended = |event: &&Event| match event.detail {
        Detail::Request { ended, texts } => (ended, texts),
        _ => panic!("{event:?}"),
    };
    let requests = of(&profile, Stage::Request);
    let ended: Vec<_> = requests.iter().map(ended).collect();
    assert_eq!(ended, [(Ended::Well, 2), (Ended::Cancelled, 1)]);
}

#[test]
fn the_ring_keeps_the_latest() {
    let (session, profiler) = session(3);
    for _ in 0..5 {
        drop(profiler.request(1));
    }
    session.counter("level", 2.5);
    let profile = session.finish();
    assert_eq!((profile.events().len(), profile.dropped()), (3, 3));
    assert!(matches!(
        profile.events()[2].kind,
        Kind::Counter { value } if value == 2.5
    ));
}

#[test]
fn what_ends_after_the_session_is_nobodys() {
    let (session, profiler) = session(3);
    let late = profiler.request(1);
    assert!(session.finish().events().is_empty());
    drop(late);
    assert!(!profiler.request(1).scope().is_on());
}

#[test]
fn one_session_at_a_time_records_a_model() {
    let (first, profiler) = session(3);
    attach(&first, &profiler).unwrap();
    let second = ProfileSession::start(ProfileOptions::default());
    assert_eq!(attach(&second, &profiler), Err(AlreadyProfiled));
    drop(first);
    attach(&second, &profiler).unwrap();
    drop(profiler.request(1));
    assert_eq!(second.finish().events().len(), 1);
}

#[test]
fn operators_can_be_left_out() {
    let options = ProfileOptions::default().with_operators(false);
    let session = ProfileSession::start(options);
    let profiler = Profiler::default();
    attach(&session, &profiler).unwrap();
    let request = profiler.request(1);
    assert!(request.scope().operator().is_none());
    drop(request.scope().span(Stage::Run));
    assert_eq!(session.finish().events().len(), 1);
}

#[test]
fn every_thread_records_under_its_name() {
    let (session, profiler) = session(1000);
    let thread = |at: usize| {
        let profiler = profiler.clone();
        std::thread::Builder::new()
            .name(format!("worker {at}"))
            .spawn(move || (0..50).for_each(|_| drop(profiler.request(1).scope().span(Stage::Run))))
            .unwrap()
    };
    let threads: Vec<_> = (0..4).map(thread).collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let profile = session.finish();
    let mut spans: HashMap<u32, usize> = HashMap::new();
    for event in of(&profile, Stage::Run) {
        *spans.entry(event.thread).or_default() += 1;
    }
    let names: BTreeMap<&str, usize> = profile
        .threads()
        .iter()
        .map(|(number, name)| (name.as_str(), spans[number]))
        .collect();
    let all = (0..4).map(|at| (format!("worker {at}"), 50));
    assert!(all.clone().count() == names.len());
    assert!(all.into_iter().all(|(name, count)| names[&*name] == count));
}

/// An event of a made-up profile; times in milliseconds.
fn span(stage: Stage, start: u64, took: u64, request: Option<u64>, batch: Option<u64>) -> Event {
    Event {
        kind: Kind::Span {
            took: Duration::from_millis(took),
        },
        stage,
        name: stage.name().into(),
        start: Duration::from_millis(start),
        thread: 3,
        request,
        batch,
        detail: Detail::None,
    }
}

#[test]
fn spans_of_a_track_lie_within_one_another() {
    let mut instant = span(Stage::Other, 1, 0, None, None);
    instant.kind = Kind::Instant;
    instant.name = "\"quoted\" \u{1f600}\n".into();
    let mut counter = span(Stage::Other, 2, 0, None, None);
    counter.kind = Kind::Counter { value: 0.5 };
    let profile = Profile {
        began: web_time::SystemTime::now(),
        took: Duration::from_secs(1),
        events: vec![
            span(Stage::Request, 0, 10, Some(1), None),
            span(Stage::Tokenize, 1, 2, Some(1), None),
            instant,
            counter,
            span(Stage::Batch, 3, 5, Some(1), Some(1)),
            span(Stage::Wait, 3, 1, Some(1), Some(1)),
            span(Stage::Run, 4, 4, Some(1), Some(1)),
            span(Stage::Request, 5, 10, Some(2), None),
            span(Stage::Batch, 6, 5, Some(2), Some(2)),
            // Its request had to go, and was there all the same.
            span(Stage::Queue, 10, 9, Some(3), None),
            span(Stage::Request, 20, 1, Some(4), None),
            // A device runs one while its thread sends the next.
            span(Stage::Batch, 30, 6, Some(5), Some(5)),
            span(Stage::Run, 31, 4, Some(5), Some(5)),
            span(Stage::Operator, 32, 1, Some(5), Some(5)),
            span(Stage::Batch, 32, 9, Some(6), Some(6)),
            span(Stage::Run, 33, 7, Some(6), Some(6)),
            span(Stage::Operator, 36, 2, Some(6), Some(6)),
        ],
        dropped: 7,
        threads: vec![(3, "main".into())],
    };
    let trace: Value = serde_json::from_str(&profile.to_chrome_trace()).unwrap();
    assert_eq!(trace["otherData"]["dropped"], 7);
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(spans.len(), 15);
    let number = |event: &Value, of: &str| event[of].as_f64().unwrap();
    for a in &spans {
        for b in &spans {
            if a["tid"] != b["tid"] {
                continue;
            }
            let end = |event: &Value| number(event, "ts") + number(event, "dur");
            let [first, second] = match (number(a, "ts"), end(b)) <= (number(b, "ts"), end(a)) {
                true => [a, b],
                false => [b, a],
            };
            let apart = end(first) <= number(second, "ts");
            assert!(apart || end(second) <= end(first), "{a} and {b}");
        }
    }
    let track = |request: u64, stage: &str| {
        let found = spans
            .iter()
            .find(|span| span["cat"] == stage && span["args"]["request"] == request);
        found.unwrap()["tid"].clone()
    };
    assert_eq!(track(1, "request"), track(1, "tokenize"));
    assert_ne!(track(1, "request"), track(2, "request"));
    let lanes = [track(1, "request"), track(2, "request")];
    assert!(lanes.contains(&track(4, "request")), "a lane is used again");
    assert_ne!(track(1, "batch"), track(2, "batch"));
    assert_eq!(track(1, "run"), 3);
    for batch in [5, 6] {
        assert_eq!(track(batch, "run"), track(batch, "batch"));
        assert_eq!(track(batch, "operator"), track(batch, "batch"));
    }
    assert_ne!(track(5, "run"), track(6, "run"));
    let named = |track: &Value| {
        events
            .iter()
            .any(|event| event["name"] == "thread_name" && event["tid"] == *track)
    };
    assert!(spans.iter().all(|span| named(&span["tid"])));
    assert!(events.iter().any(|event| {
        event["ph"] == "i" && event["name"] == "\"quoted\" \u{1f600}\n" && event["ts"] == 1000.0
    }));
    assert!(
        events
            .iter()
            .any(|event| event["ph"] == "C" && event["args"]["value"] == 0.5)
    );
}

#[test]
fn a_runtimes_own_operators_stand_in_their_runs() {
    let session = ProfileSession::start(ProfileOptions::default());
    let profiler = Profiler::default();
    let model = Arc::new(Model::default());
    session.attach(&profiler, model.clone()).unwrap();
    let before = web_time::Instant::now();
    let nap = || std::thread::sleep(Duration::from_millis(20));
    nap();
    let lap = |name: &str, after: u64, took: u64| Lap {
        detail: Detail::None,
        name: name.into(),
        began: before + Duration::from_millis(after),
        took: Duration::from_millis(took),
        thread: 99,
    };
    // One run before ours, one in it.
    let request = profiler.request(1);
    let batch = Scope::batch([request.scope()]);
    let run = batch.scope().span(Stage::Run);
    let began = before.elapsed().as_millis() as u64 + 1;
    nap();
    drop((run, batch, request));
    *model.0.lock().unwrap() = OwnProfile {
        runs: vec![lap("model_run", 0, 10), lap("model_run", began, 10)],
        operators: vec![
            lap("Early", 1, 2),
            lap("MatMul", began + 1, 3),
            lap("Gather", began + 4, 2),
        ],
    };
    let profile = session.finish();
    let operators = of(&profile, Stage::Operator);
    let names: Vec<&str> = operators.iter().map(|event| event.name.as_ref()).collect();
    assert_eq!(names, ["MatMul", "Gather"]);
    let run = of(&profile, Stage::Run)[0];
    for operator in operators {
        assert_eq!((operator.batch, operator.thread), (run.batch, run.thread));
        assert!(operator.start >= run.start);
        assert!(operator.start + operator.took() <= run.start + run.took());
    }
}
