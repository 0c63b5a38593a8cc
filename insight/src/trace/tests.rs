//! Traces of several programs, whole and broken.

use std::time::Duration;

use super::load::{Limits, Loaded, load_from};
use super::{Comparison, Filter, Summary, TraceError};

/// Two requests: one in a batch of its own, both in the other.
const OURS: &str = r#"{"displayTimeUnit":"ms","otherData":{"producer":"isovec 0.1.0","dropped":2},"traceEvents":[
{"name":"thread_name","ph":"M","ts":0.0,"pid":1,"tid":3,"args":{"name":"engine"}},
{"name":"request","cat":"request","ph":"X","ts":1000,"dur":10000,"pid":1,"tid":10,"args":{"request":7,"texts":3,"ended":"well"}},
{"name":"tokenize","cat":"tokenize","ph":"X","ts":1000,"dur":1000,"pid":1,"tid":10,"args":{"request":7,"texts":3,"tokens":30}},
{"name":"queued texts","cat":"other","ph":"C","ts":1500,"pid":1,"tid":1,"args":{"value":3}},
{"name":"queue","cat":"queue","ph":"X","ts":2000,"dur":2000,"pid":1,"tid":10,"args":{"request":7}},
{"name":"request","cat":"request","ph":"X","ts":3000,"dur":9000,"pid":1,"tid":11,"args":{"request":8,"texts":1,"ended":"failed"}},
{"name":"batch","cat":"batch","ph":"X","ts":4000,"dur":3000,"pid":1,"tid":20,"args":{"request":7,"batch":1,"rows":2,"tokens":20,"positions":30,"requests":[7]}},
{"name":"run","cat":"run","ph":"X","ts":4500,"dur":2500,"pid":1,"tid":3,"args":{"request":7,"batch":1}},
{"name":"linear","cat":"operator","ph":"X","ts":4500,"dur":2000,"pid":1,"tid":3,"args":{"request":7,"batch":1,"rows":20}},
{"name":"batch","cat":"batch","ph":"X","ts":6000,"dur":5000,"pid":1,"tid":21,"args":{"batch":2,"rows":2,"tokens":10,"positions":10,"requests":[7,8]}},
{"name":"run","cat":"run","ph":"X","ts":7000,"dur":4000,"pid":1,"tid":3,"args":{"batch":2}},
{"name":"linear","cat":"operator","ph":"X","ts":7000,"dur":3000,"pid":1,"tid":3,"args":{"batch":2,"rows":10}},
{"name":"norm","cat":"operator","ph":"X","ts":10000,"dur":1000,"pid":1,"tid":3,"args":{"batch":2,"rows":10}}
]}
"#;

fn loaded(text: impl AsRef<[u8]>, filter: &Filter) -> Result<Loaded, TraceError> {
    load_from(|| Ok(text.as_ref()), filter, Limits::default())
}

fn summary(text: impl AsRef<[u8]>) -> Summary {
    let loaded = loaded(text, &Filter::default()).unwrap();
    Summary::new("a trace".into(), &loaded, 10)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// The time and the number of spans of a stage.
fn stage(summary: &Summary, name: &str) -> (usize, f64) {
    let found = summary.stages.iter().find(|stage| stage.name == name);
    found.map_or((0, 0.0), |stage| (stage.count, stage.total))
}

#[test]
fn our_own_trace_is_counted_up() {
    let summary = summary(OURS);
    assert_eq!((summary.events, summary.spans), (13, 11));
    assert!(close(summary.seconds, 0.011), "{summary:?}");
    assert_eq!(summary.faults.len(), 1, "{:?}", summary.faults);
    let (count, total) = stage(&summary, "operator");
    assert!(count == 3 && close(total, 0.006));
    assert_eq!(summary.names[0].name, "linear");
    assert!(close(summary.names[0].share, 5.0 / 6.0));
    let batches = summary.batches.as_ref().unwrap();
    assert_eq!(
        (batches.count, batches.tokens, batches.positions),
        (2, 30, 40)
    );
    assert!(close(batches.fill, 0.75) && close(batches.mean_requests, 1.5));
    let requests = summary.requests.as_ref().unwrap();
    assert_eq!(
        (requests.well, requests.failed, requests.cancelled),
        (1, 1, 0)
    );
    let slowest = &summary.slowest_requests[0];
    assert_eq!((slowest.request, slowest.batches), (7, 2));
    assert!(close(slowest.tokenize, 0.001) && close(slowest.queue, 0.002));
    assert!(
        close(slowest.batch, 0.007),
        "they overlap by a millisecond: {slowest:?}"
    );
    assert!(close(slowest.other, 0.0));
    // It prints, and as JSON too.
    assert!(summary.to_string().contains("75.0 % filled"), "{summary}");
    serde_json::to_string(&summary).unwrap();
}

#[test]
fn the_critical_path_is_what_was_waited_for() {
    let summary = summary(OURS);
    let path = summary.critical_path.as_ref().unwrap();
    assert_eq!(path.of, "request 7");
    let names: Vec<&str> = path.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["tokenize", "queue", "batch"]);
    let batch = &path.steps[2];
    assert!(batch.count == 2 && close(batch.seconds, 0.007), "{path:?}");
    let run = &batch.steps[0];
    // Of the first batch's run only what was before the second batch began.
    assert!(run.name == "run" && close(run.seconds, 0.0055), "{path:?}");
    let linear = run.steps.iter().find(|step| step.name == "linear").unwrap();
    assert!(close(linear.seconds, 0.0045), "{path:?}");
}

#[test]
fn filters_leave_what_they_say() {
    let with = |filter: &Filter| loaded(OURS, filter).unwrap();
    let request = with(&Filter {
        request: Some(8),
        ..Filter::default()
    });
    assert_eq!(
        request.spans.len(),
        5,
        "itself, a batch, a run, two operators"
    );
    let stages = with(&Filter {
        stages: vec!["queue".into(), "run".into()],
        ..Filter::default()
    });
    assert_eq!(stages.spans.len(), 3);
    let window = with(&Filter {
        start: Some(Duration::from_micros(9500)),
        end: Some(Duration::from_millis(20)),
        ..Filter::default()
    });
    assert_eq!(
        window.spans.len(),
        5,
        "both requests, a batch, a run, an operator"
    );
    let early = with(&Filter {
        end: Some(Duration::from_micros(500)),
        ..Filter::default()
    });
    assert_eq!(early.spans.len(), 2);
    for nothing in [
        Filter {
            stages: vec!["none".into()],
            ..Filter::default()
        },
        Filter {
            request: Some(99),
            ..Filter::default()
        },
        Filter {
            start: Some(Duration::from_secs(60)),
            ..Filter::default()
        },
    ] {
        let error = loaded(OURS, &nothing).unwrap_err();
        assert!(error.to_string().contains("tokenize"), "{error}");
    }
}

#[test]
fn onnx_runtimes_profile_is_read() {
    let summary = summary(
        r#"[
{"cat" : "Session","pid" :7,"tid" :7,"dur" :900,"ts" :3,"ph" : "X","name" :"session_initialization","args" : {}},
{"cat" : "Node","pid" :7,"tid" :7,"dur" :0,"ts" :1000,"ph" : "X","name" :"a/MatMul_fence_before","args" : {"op_name" : "MatMul"}},
{"cat" : "Node","pid" :7,"tid" :7,"dur" :40,"ts" :1000,"ph" : "X","name" :"a/MatMul_kernel_time","args" : {"op_name" : "MatMul","provider" : "CPUExecutionProvider","thread_scheduling_stats" : {"x": [1, {"y": 2}]}}},
{"cat" : "Node","pid" :7,"tid" :7,"dur" :60,"ts" :1040,"ph" : "X","name" :"b/MatMul_kernel_time","args" : {"op_name" : "MatMul"}},
{"cat" : "Session","pid" :7,"tid" :7,"dur" :103,"ts" :999,"ph" : "X","name" :"SequentialExecutor::Execute","args" : {}},
{"cat" : "Session","pid" :7,"tid" :7,"dur" :105,"ts" :998,"ph" : "X","name" :"model_run","args" : {}}
]"#,
    );
    assert!(summary.faults.is_empty(), "{:?}", summary.faults);
    let names: Vec<(&str, usize)> = summary
        .names
        .iter()
        .map(|named| (named.name.as_str(), named.count))
        .collect();
    assert_eq!(names, [("MatMul", 2)]);
    assert_eq!(stage(&summary, "run").0, 1);
    let path = summary.critical_path.unwrap();
    assert_eq!(path.of, "model_run");
    assert_eq!(path.steps[0].steps[0].name, "MatMul");
}

#[test]
fn chromes_own_trace_is_read() {
    let summary = summary(
        r#"{"metadata": {"x": [[[{}]]]}, "traceEvents": [
{"pid":1,"tid":2,"ts":500000000010,"ph":"B","cat":"devtools.timeline","name":"Task","args":{}},
{"pid":1,"tid":2,"ts":500000000012,"ph":"B","cat":"v8","name":"Compile"},
{"pid":1,"tid":2,"ts":500000000020,"ph":"E","cat":"v8","name":"Compile"},
{"pid":1,"tid":2,"ts":500000000030,"ph":"E"},
{"pid":1,"tid":2,"ts":500000000000,"ph":"b","cat":"blink.user_timing","name":"load","id2":{"local":"0x1"}},
{"pid":1,"tid":2,"ts":500000000005,"ph":"b","cat":"blink.user_timing","name":"load","id2":{"local":"0x2"}},
{"pid":1,"tid":9,"ts":500000000007,"ph":"e","cat":"blink.user_timing","name":"load","id2":{"local":"0x1"}},
{"pid":1,"tid":2,"ts":500000000025,"ph":"I","s":"t","cat":"v8","name":"GC"},
{"pid":1,"tid":2,"ts":500000000026,"ph":"s","id":5,"cat":"flow","name":"go"}
], "more": null}"#,
    );
    assert_eq!(summary.spans, 3);
    let task = stage(&summary, "devtools.timeline");
    assert!(task.0 == 1 && close(task.1, 20e-6));
    assert!(close(stage(&summary, "v8").1, 8e-6));
    assert!(close(stage(&summary, "blink.user_timing").1, 7e-6));
    assert_eq!(summary.faults, ["1 spans have no end, and are left out"]);
}

#[test]
fn spans_of_two_processes_may_share_a_local_id() {
    let mut took: Vec<Vec<f64>> = Vec::new();
    for id in [
        "\"id2\":{\"local\":\"0x1\"}",
        "\"id2\":{\"global\":\"0x1\"}",
    ] {
        let event = |ph: &str, pid: u32, ts: u32| {
            format!(r#"{{"ph":"{ph}","pid":{pid},"tid":1,"ts":{ts},"cat":"a","name":"load",{id}}}"#)
        };
        let events = [
            event("b", 1, 0),
            event("b", 2, 5),
            event("e", 1, 6),
            event("e", 2, 20),
        ];
        let events = format!("[{}]", events.join(","));
        let loaded = loaded(events, &Filter::default()).unwrap();
        took.push(loaded.spans.iter().map(|span| span.took).collect());
    }
    let wanted: [Vec<f64>; 2] = [vec![6.0, 15.0], vec![20.0, 1.0]];
    assert_eq!(took, wanted);
}

#[test]
fn what_follows_the_trace_is_said() {
    for (first, rest) in [("[]", 2), ("{\"traceEvents\": []}", 19)] {
        let joined = summary(format!("{first}{OURS}"));
        assert_eq!((joined.spans, joined.faults.len()), (0, 1));
        let said = &joined.faults[0];
        assert!(said.contains(&format!("at byte {rest}, after")), "{said}");
        assert!(summary(format!("{first} \n\t\r\n")).faults.is_empty());
    }
}

#[test]
fn numbers_that_add_up_to_too_much_are_no_panic() {
    let batch = |id: u32| {
        format!(
            r#"{{"name":"batch","cat":"batch","ph":"X","ts":0,"dur":1,"args":{{"batch":{id},"rows":1e19,"tokens":1e19,"positions":1e19,"requests":[1]}}}}"#
        )
    };
    let summary = summary(format!("[{},{}]", batch(1), batch(2)));
    let batches = summary.batches.as_ref().unwrap();
    assert_eq!((batches.tokens, batches.positions), (u64::MAX, u64::MAX));
    assert!((batches.mean_rows / 1e19 - 1.0).abs() < 1e-9, "{batches:?}");
    assert!(close(batches.fill, 1.0));
}

#[test]
fn names_move_nothing_on_a_terminal() {
    let events = r#"{"otherData":{"producer":"pODD"},"traceEvents":[
{"name":"nODD","cat":"cODD","ph":"X","ts":0,"dur":100,"pid":1,"tid":1},
{"name":"mODD","cat":"cODD","ph":"X","ts":1,"dur":50,"pid":1,"tid":1},
{"name":"r","cat":"request","ph":"X","ts":1,"dur":2,"pid":1,"tid":2,"args":{"request":1,"ended":"eODD"}},
{"name":"?","ph":"QODD","ts":1}
]}"#
        .replace("ODD", r"\u001b[2J\r\n\u0007\u202e");
    let loaded_events = loaded(&events, &Filter::default()).unwrap();
    let summary = Summary::new("f\u{1b}]0;x\u{7}".into(), &loaded_events, 10);
    let nothing = Filter {
        stages: vec!["none".into()],
        ..Filter::default()
    };
    for shown in [
        summary.to_string(),
        Comparison::new(&summary, &summary).to_string(),
        loaded(&events, &nothing).unwrap_err().to_string(),
    ] {
        let odd = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!shown.contains(odd), "{shown:?}");
        assert!(shown.contains("c\u{fffd}[2J\u{fffd}\u{fffd}"), "{shown:?}");
    }
    // Programs get them as they are.
    let json = serde_json::to_value(&summary).unwrap();
    let names = json["names"].as_array().unwrap();
    let odd = "n\u{1b}[2J\r\n\u{7}\u{202e}";
    assert!(names.iter().any(|named| named["name"] == odd), "{json}");
}

#[test]
fn what_is_wrong_is_said() {
    let summary = summary(
        r#"[
{"ph":"X","ts":100,"dur":-50,"name":"back","pid":1,"tid":1},
{"ph":"B","ts":300,"name":"stepped","pid":1,"tid":2},
{"ph":"E","ts":200,"name":"stepped","pid":1,"tid":2},
{"ph":"E","ts":200,"name":"never begun","pid":1,"tid":2},
{"ph":"X","ts":1000,"dur":100,"name":"a","pid":1,"tid":3},
{"ph":"X","ts":1050,"dur":100,"name":"crosses a","pid":1,"tid":3},
{"ph":"X","dur":100,"name":"when?","pid":1,"tid":3},
{"ph":"X","ts":1e999,"name":"never","pid":1,"tid":3},
{"ph":"X","ts":900,"name":"how long?","pid":1,"tid":3},
{"ph":"X","ts":900,"dur":"NaN","name":"no number","pid":1,"tid":3},
{"ph":"Q","ts":1,"name":"?","pid":1,"tid":3},
17, null, [], {}
]"#
        .replace("1e999", "\"inf\""),
    );
    let said = summary.faults.join("\n");
    for wanted in [
        "2 spans end before they begin",
        "1 spans begin within another",
        "1 ends have no beginning",
        "2 events have no time",
        "2 spans have no duration",
        "4 values are no events",
        "\"Q\" (1)",
    ] {
        assert!(said.contains(wanted), "{wanted} is not in {said}");
    }
    assert_eq!(summary.spans, 4);
}

#[test]
fn a_trace_is_read_up_to_the_cut() {
    let list = OURS.find('[').unwrap();
    let mut most = 0;
    for cut in 1..OURS.len() - 2 {
        match loaded(&OURS[..cut], &Filter::default()) {
            Ok(loaded) => {
                let (at, _) = loaded.faults.cut.clone().unwrap();
                assert!(cut > list && at <= cut as u64);
                assert!(loaded.spans.len() >= most, "cut at {cut}");
                most = loaded.spans.len();
                Summary::new(String::new(), &loaded, 3).to_string();
            }
            Err(error) => {
                assert!(cut <= list + 1, "cut at {cut}: {error}");
                assert!(matches!(error, TraceError::NoTrace(_)), "{error}");
            }
        }
    }
    assert_eq!(most, 11);
}

#[test]
fn no_byte_makes_it_panic() {
    let whole = OURS.as_bytes();
    for at in (0..whole.len()).step_by(3) {
        for byte in [b'"', b'{', b']', b',', b'9', b'-', 0xff, b' '] {
            let mut broken = whole.to_vec();
            broken[at] = byte;
            if let Ok(loaded) = loaded(&broken, &Filter::default()) {
                Summary::new(String::new(), &loaded, 3).to_string();
            }
        }
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    for (bytes, says) in [
        (&b""[..], "is empty"),
        (b" \n", "is empty"),
        (b"\x1f\x8b\x08", "gunzip"),
        (b"\x0a\x12perfetto", "no trace"),
        (b"hello", "begins with h"),
        (b"{\"events\": []}", "no list traceEvents"),
        (b"{\"traceEvents\": 5}", "no list traceEvents"),
    ] {
        let error = loaded(bytes, &Filter::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_trace_without_spans_is_one() {
    let summary = summary("[]");
    assert_eq!((summary.events, summary.spans), (0, 0));
    assert!(summary.to_string().contains("no spans"));
}
