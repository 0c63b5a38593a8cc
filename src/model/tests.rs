//! Planning, feeding and collecting around an engine that only counts.

use isovec_engine::EngineError;
use isovec_engine::config::MemoryConfig;
use isovec_engine::description::{Dim, ModelDescription};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use proptest::prelude::*;

use super::counting::*;
use super::item::TEXTS;
use super::rows::RowForm;
use super::*;
use crate::error::Error;

fn embed(model: &Arc<Model>, texts: &[String]) -> Result<Embeddings> {
    let waited = backend::wait(
        Arc::clone(model).call::<Vectors, _>(texts.to_vec(), EmbedOptions::default()),
    );
    let blocked = model.call_blocking::<Vectors, _>(texts, &EmbedOptions::default());
    match (&waited, &blocked) {
        (Ok(a), Ok(b)) => assert_eq!(a, b),
        (a, b) => assert_eq!(
            a.as_ref().unwrap_err().kind(),
            b.as_ref().unwrap_err().kind()
        ),
    }
    waited
}

proptest! {
    #[test]
    fn every_text_gets_its_own_vector(
        words in prop::collection::vec(prop::collection::vec(2u32..90, 1..12), 0..60),
    ) {
        let (model, engine) = model(Counting::free());
        let texts: Vec<String> = words.iter().map(|words| text(words)).collect();
        let set = embed(&model, &texts).unwrap();
        prop_assert_eq!((set.len(), set.dim()), (words.len(), 3));
        for (at, words) in words.iter().enumerate() {
            let seen: Vec<i64> = words.iter().take(8).map(|&word| i64::from(word)).collect();
            prop_assert_eq!(set.get(at).unwrap(), vector(&seen));
            prop_assert_eq!(set.token_counts()[at] as usize, seen.len());
            prop_assert_eq!(set.truncated()[at], words.len() > 8);
        }
        for shape in engine.shapes.lock().unwrap().iter() {
            prop_assert!(shape[0] == 1 || (shape[0] <= 4 && shape[0] * shape[1] <= 12), "{shape:?}");
        }
    }
}

#[test]
fn more_texts_than_one_window() {
    let (model, _) = model(Counting::free());
    let texts: Vec<String> = (0..TEXTS + 10)
        .map(|at| text(&[2 + (at % 80) as u32]))
        .collect();
    let set = embed(&model, &texts).unwrap();
    for at in [0, TEXTS - 1, TEXTS, TEXTS + 9] {
        assert_eq!(
            set.get(at).unwrap(),
            vector(&[2 + (at % 80) as i64]),
            "{at}"
        );
    }
}

#[test]
fn a_graph_of_fixed_size_is_filled_up() {
    let (model, engine) = model(Counting::new(Dim::Fixed(3), Dim::Fixed(8), DType::I32));
    let texts: Vec<String> = (2..7).map(|word| text(&[word])).collect();
    let set = model
        .call_blocking::<Vectors, _>(&texts, &EmbedOptions::default())
        .unwrap();
    assert_eq!(set.get(4).unwrap(), vector(&[6]));
    assert!(
        engine
            .shapes
            .lock()
            .unwrap()
            .iter()
            .all(|shape| shape == &[3, 8])
    );
}

#[test]
fn nothing_in_gives_an_empty_set() {
    let (model, engine) = model(Counting::free());
    let set = embed(&model, &[]).unwrap();
    assert_eq!((set.len(), set.dim()), (0, 3));
    assert!(engine.shapes.lock().unwrap().is_empty());
}

#[test]
fn a_poisoned_row_names_its_text() {
    let (model, _) = model(Counting::free());
    let texts = |bad: u32| vec![text(&[5, 6, 7]), text(&[5]), text(&[bad, 8]), text(&[9])];
    assert!(matches!(
        embed(&model, &texts(NAN)),
        Err(Error::NotFinite { text: 2 })
    ));
    assert!(matches!(
        embed(&model, &texts(ZERO)),
        Err(Error::NotNormalized { text: 2, .. })
    ));
}

#[test]
fn a_text_without_tokens_is_named() {
    let (model, _) = model(Counting::free());
    let texts = [text(&[5]), " \u{1c} ".to_owned()];
    assert!(matches!(
        embed(&model, &texts),
        Err(Error::NoTokens { text: 1 })
    ));
}

#[test]
fn the_callers_token_stops_a_run() {
    let (model, _) = model(Counting {
        stuck: true,
        ..Counting::free()
    });
    let cancel = Cancel::new();
    let options = EmbedOptions::default().with_cancel(cancel.clone());
    let embedding = std::thread::spawn(move || {
        backend::wait(model.call::<Vectors, _>(vec![text(&[5])], options))
    });
    cancel.cancel();
    assert!(embedding.join().unwrap().unwrap_err().is_cancelled());

    let (model, _) = self::model(Counting::free());
    let options = EmbedOptions::default().with_cancel(cancel);
    assert!(
        model
            .call_blocking::<Vectors, _>(&[text(&[5])], &options)
            .unwrap_err()
            .is_cancelled()
    );
}

#[test]
fn an_engine_that_breaks_its_promise_is_caught() {
    let (_, engine) = model(Counting::free());
    let mut rows = Rows::new(1, 4, RowForm::Whole, None).unwrap();
    let ids = Tensor::from_slice(&[1, 1], &[5i64]).unwrap();
    let mask = Tensor::from_slice(&[1, 1], &[1i64]).unwrap();
    let batch = Batch {
        inputs: vec![
            NamedTensor::new("input_ids", ids),
            NamedTensor::new("attention_mask", mask.clone()),
            NamedTensor::new("token_type_ids", mask),
        ],
        row_lengths: vec![1],
        ..Batch::default()
    };
    let output = engine.run_blocking(batch, &Cancel::new()).unwrap();
    assert_eq!(
        rows.place(0, &[0], &output).unwrap_err().kind(),
        "InvalidOutput"
    );
    assert_eq!(
        rows.place(0, &[0], &RunOutput::default())
            .unwrap_err()
            .kind(),
        "InvalidOutput"
    );
}

#[test]
fn batches_are_split_to_fit_into_memory_and_a_text_that_cannot_fit_is_refused() {
    let within = |limit: u64| {
        let mut engine = Counting::free();
        engine.bytes_per_position = Some(10);
        let mut memory = MemoryConfig::default();
        memory.memory_limit = Some(limit);
        model_within(engine, &memory)
    };
    // Two runs at the same time share the limit: 50 bytes each, five positions.
    let (model, engine) = within(100);
    let texts: Vec<String> = (0..6).map(|_| text(&[1, 2])).collect();
    assert_eq!(embed(&model, &texts).unwrap().len(), 6);
    let shapes = engine.shapes.lock().unwrap().clone();
    assert!(
        shapes
            .iter()
            .all(|shape| shape.iter().product::<usize>() <= 5),
        "{shapes:?}"
    );

    let (model, engine) = within(100);
    let error = embed(&model, &[text(&[1]), text(&[1; 8])]).unwrap_err();
    assert_eq!(error.kind(), "InputTooLarge");
    assert!(error.to_string().contains("80 bytes"), "{error}");
    assert!(
        engine.shapes.lock().unwrap().is_empty(),
        "it ran before it was refused"
    );
    assert_eq!(model.stats().calls.failed, 2);
}

#[test]
fn calls_texts_and_padding_are_counted() {
    let (model, _) = model(Counting::free());
    embed(&model, &[text(&[1]), text(&[1, 2, 3]), text(&[4; 20])]).unwrap();
    let stats = model.stats();
    // `embed` calls twice.
    assert_eq!((stats.calls.embedded, stats.calls.texts), (2, 6));
    assert_eq!((stats.calls.truncated, stats.calls.batches), (2, 4));
    assert_eq!((stats.tokens.real, stats.tokens.padding), (24, 4));
    assert_eq!(stats.stages.embed.count, 2);
}

#[test]
fn inputs_that_a_text_does_not_give_are_refused() {
    let mut description = Counting::free().description;
    description.inputs.truncate(1);
    let refused =
        |description: &ModelDescription| Feed::new("test", description, (PAD, 0), 0).unwrap_err();
    assert!(
        matches!(refused(&description), EngineError::UnsupportedModel { .. }),
        "no mask"
    );
    let mut description = Counting::free().description;
    description.inputs[2].name = "task_id".into();
    assert!(refused(&description).to_string().contains("task_id"));
    let mut description = Counting::free().description;
    description.inputs[0].dtype = Some(DType::F32);
    assert_eq!(refused(&description).kind(), "UnsupportedModel");
}

#[test]
fn a_result_that_does_not_fit_into_memory_is_refused() {
    let error = Rows::new(usize::MAX / 2, 384, RowForm::Unit, None).unwrap_err();
    assert_eq!(error.kind(), "InputTooLarge");
}

#[test]
fn texts_are_stripped_as_python_strips() {
    assert_eq!(item::prepare_text("", " \u{a0}A b\u{1c}\n", false), "A b");
    assert_eq!(item::prepare_text("query: ", "", false), "query:");
    assert_eq!(item::prepare_text("Q: ", " Straße ", true), "q:  straße");
    assert_eq!(item::prepare_text("", "\u{200b}a", false), "\u{200b}a");
}

#[test]
fn a_call_is_cancelled_by_its_caller_and_by_its_end() {
    let caller = Cancel::new();
    let own = OwnCancel::linked(Some(&caller));
    let seen = own.0.clone();
    caller.cancel();
    assert!(seen.is_cancelled());

    let caller = Cancel::new();
    let own = OwnCancel::linked(Some(&caller));
    let seen = own.0.clone();
    drop(own);
    assert!(seen.is_cancelled() && !caller.is_cancelled());
}
