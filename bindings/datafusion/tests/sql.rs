//! The functions in SQL, with a small model.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{
    config, ids, register_docs, reranker, rows, scores, session, texts, tiny, tiny_with, vectors,
};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, LargeStringArray, StringArray, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use isovec::config::Pooling;
use isovec::{Embedder, Similarity};
use isovec_datafusion::{Error, FINGERPRINT, METRIC, MODEL, Models, register};

/// `docs` of these texts.
fn docs(context: &SessionContext, bodies: impl IntoIterator<Item = Option<String>>) {
    let bodies: ArrayRef = Arc::new(StringArray::from_iter(bodies));
    register_docs(context, &bodies);
}

fn all(count: usize) -> impl Iterator<Item = Option<String>> {
    texts(count).into_iter().map(Some)
}

/// A session with `docs` of so many texts and one model.
async fn with_docs(count: usize) -> (SessionContext, Embedder) {
    let (context, embedder) = (session(), tiny().await);
    register(&context, &embedder).unwrap();
    docs(&context, all(count));
    (context, embedder)
}

/// Texts that were tokenised so far.
fn computed(embedder: &Embedder) -> u64 {
    embedder.stats().calls.texts
}

/// The message of a query that fails while it is planned.
async fn refused(context: &SessionContext, sql: &str) -> String {
    let planned = match context.sql(sql).await {
        Ok(frame) => frame.into_optimized_plan().map(drop),
        Err(error) => Err(error),
    };
    match planned.unwrap_err().find_root() {
        DataFusionError::Plan(message) => message.clone(),
        other => panic!("{sql}: no error of planning: {other}"),
    }
}

#[tokio::test]
async fn vectors_are_those_of_rust_and_nulls_stay() {
    let (context, embedder) = (session(), tiny().await);
    register(&context, &embedder).unwrap();
    let mut bodies: Vec<Option<String>> = all(40).collect();
    bodies[0] = None;
    bodies[17] = None;
    bodies[18] = Some(String::new());
    docs(&context, bodies.clone());
    for (function, prompt) in [
        ("embed", isovec::Prompt::Default),
        ("embed_query", isovec::Prompt::Query),
        ("embed_passage", isovec::Prompt::Passage),
    ] {
        let sql = format!("SELECT id, {function}(body) AS v FROM docs ORDER BY id");
        let found = vectors(&rows(&context, &sql).await.unwrap(), "v");
        let options = isovec::EmbedOptions::default().with_prompt(prompt);
        let expected = embedder.embed_with(bodies.iter().flatten(), options);
        let mut expected = expected.await.unwrap().into_vecs().into_iter();
        for (body, found) in bodies.iter().zip(found) {
            let expected = body.as_ref().map(|_| expected.next().unwrap());
            assert_eq!(found, expected, "{function} {body:?}");
        }
    }
}

#[tokio::test]
async fn every_form_of_texts_gives_the_same() {
    let (context, embedder) = (session(), tiny().await);
    register(&context, &embedder).unwrap();
    let texts = texts(12);
    let bodies = || texts.iter().map(|text| Some(text.as_str()));
    let strings = StringArray::from_iter(bodies());
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let forms: [ArrayRef; 3] = [
        Arc::new(LargeStringArray::from_iter(bodies())),
        Arc::new(StringViewArray::from_iter(bodies())),
        cast(&strings, &dictionary).unwrap(),
    ];
    let expected = embedder.embed(&texts).await.unwrap().into_vecs();
    for form in forms {
        context.deregister_table("docs").unwrap();
        register_docs(&context, &form);
        let sql = "SELECT embed(body) AS v FROM docs ORDER BY id";
        let found = vectors(&rows(&context, sql).await.unwrap(), "v");
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, expected, "{}", form.data_type());
    }
}

#[tokio::test]
async fn literals_nulls_and_no_rows_have_vectors_too() {
    let (context, embedder) = with_docs(3).await;
    let one = rows(&context, "SELECT embed('rain') AS v, embed(NULL) AS n").await;
    let one = one.unwrap();
    let expected = embedder.embed_one("rain").await.unwrap();
    assert_eq!(vectors(&one, "v"), [Some(expected)]);
    assert_eq!(vectors(&one, "n"), [None]);
    let none = rows(&context, "SELECT embed(body) AS v FROM docs WHERE id > 100").await;
    assert_eq!(none.unwrap().num_rows(), 0);
}

#[tokio::test]
async fn the_metadata_says_which_model_made_the_vectors() {
    let (context, embedder) = with_docs(3).await;
    let found = rows(&context, "SELECT embed(body) AS v FROM docs")
        .await
        .unwrap();
    let schema = found.schema();
    let field = schema.field_with_name("v").unwrap();
    let item = Arc::new(datafusion::arrow::datatypes::Field::new(
        "item",
        DataType::Float32,
        false,
    ));
    let dim = i32::try_from(embedder.dimension()).unwrap();
    assert_eq!(field.data_type(), &DataType::FixedSizeList(item, dim));
    let metadata = field.metadata();
    let fingerprint: isovec::fingerprint::Fingerprint =
        serde_json::from_str(&metadata[FINGERPRINT]).unwrap();
    assert_eq!(&fingerprint, embedder.fingerprint());
    assert_eq!(metadata[METRIC], "cosine");
    assert_eq!(metadata[MODEL], embedder.model_name());
}

/// Two models whose vectors have the same width and another meaning.
async fn two_models() -> (SessionContext, Embedder, Embedder) {
    let context = session();
    let mean = tiny().await;
    let first = tiny_with(config().with_pooling(Pooling::Cls)).await;
    let models = Models::new()
        .with_embedder("mean", &mean)
        .with_embedder("first", &first)
        .with_reranker("cross", &reranker().await);
    register(&context, models).unwrap();
    docs(&context, all(10));
    (context, mean, first)
}

#[tokio::test]
async fn a_query_chooses_among_models_by_their_names() {
    let (context, mean, first) = two_models().await;
    for (name, model) in [("", &mean), (", 'mean'", &mean), (", 'first'", &first)] {
        let sql = format!("SELECT embed(body{name}) AS v FROM docs ORDER BY id");
        let found = vectors(&rows(&context, &sql).await.unwrap(), "v");
        let expected = model.embed(texts(10)).await.unwrap().into_vecs();
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, expected, "{name}");
    }
    let message = refused(&context, "SELECT embed(body, 'third') FROM docs").await;
    assert!(
        message.contains("\"third\"") && message.contains("mean, first"),
        "{message}"
    );
    let message = refused(&context, "SELECT embed(body, body) FROM docs").await;
    assert!(
        message.contains("argument 2 is no text that the query itself has"),
        "{message}"
    );
    let message = refused(&context, "SELECT embed(body, NULL) FROM docs").await;
    assert!(message.contains("argument 2"), "{message}");
}

#[tokio::test]
async fn what_is_no_text_is_refused_while_planning() {
    let (context, _, _) = two_models().await;
    for sql in [
        "SELECT embed(id) FROM docs",
        "SELECT embed_query(1.5)",
        "SELECT rerank('a', id) FROM docs",
        "SELECT rerank(id, body) FROM docs",
        "SELECT chunk(id) FROM docs",
    ] {
        let message = refused(&context, sql).await;
        assert!(message.contains("a text (Utf8"), "{sql}: {message}");
    }
    for sql in [
        "SELECT similarity(body, body) FROM docs",
        "SELECT similarity(1, 2)",
    ] {
        let message = refused(&context, sql).await;
        assert!(
            message.contains("a list of Float32 is wanted"),
            "{sql}: {message}"
        );
    }
    for sql in [
        "SELECT embed()",
        "SELECT rerank('a')",
        "SELECT similarity([1.0])",
    ] {
        assert!(context.sql(sql).await.is_err(), "{sql}");
    }
    for sql in [
        "SELECT chunk(body, 0) FROM docs",
        "SELECT chunk(body, 'x') FROM docs",
    ] {
        let message = refused(&context, sql).await;
        assert!(message.contains("argument 2"), "{sql}: {message}");
    }
}

#[tokio::test]
async fn names_are_checked_when_models_are_registered() {
    let (context, embedder) = (session(), tiny().await);
    let twice = Models::new()
        .with_embedder("a", &embedder)
        .with_embedder("a", &embedder);
    assert!(matches!(register(&context, twice), Err(Error::SameName { name, .. }) if name == "a"));
    assert!(matches!(
        register(&context, Models::new()),
        Err(Error::NoModels)
    ));
}

#[tokio::test]
async fn similarity_is_that_of_rust() {
    let (context, embedder) = with_docs(20).await;
    let sql = "SELECT similarity(embed(body), embed_query('rain')) AS s FROM docs ORDER BY id";
    let found = scores(&rows(&context, sql).await.unwrap(), "s");
    let query = embedder.embed_query("rain").await.unwrap();
    let bodies = embedder.embed(texts(20)).await.unwrap();
    let expected = bodies.similarity(&query).unwrap();
    let expected: Vec<_> = expected.iter().copied().map(Some).collect();
    assert_eq!(found, expected);
    for (name, metric) in [
        ("cosine", Similarity::Cosine),
        ("dot", Similarity::Dot),
        ("euclidean", Similarity::Euclidean),
        ("manhattan", Similarity::Manhattan),
    ] {
        // Of literals, which are computed while planning, and of columns.
        let expected = Some(metric.score(&[1.0, 2.0], &[3.0, -1.5]));
        let sql = format!("SELECT similarity([1.0, 2.0], [3.0, -1.5], '{name}') AS s");
        assert_eq!(
            scores(&rows(&context, &sql).await.unwrap(), "s"),
            [expected]
        );
        let sql = format!(
            "SELECT similarity(a, [3.0, -1.5], '{name}') AS s FROM (VALUES ([1.0, 2.0]), (NULL)) t(a)"
        );
        let found = scores(&rows(&context, &sql).await.unwrap(), "s");
        assert_eq!(found, [expected, None]);
    }
    // The metric is written into the plan, for whoever computes it without the metadata.
    let plan = context
        .sql("SELECT similarity(embed(body), [1.0]) FROM docs")
        .await;
    let plan = plan.unwrap().into_optimized_plan().unwrap();
    assert!(plan.to_string().contains("Utf8(\"cosine\")"), "{plan}");
    let message = refused(&context, "SELECT similarity([1.0], [1.0], 'sine')").await;
    assert!(message.contains("no metric \"sine\""), "{message}");
}

#[tokio::test]
async fn vectors_of_two_models_are_not_compared() {
    let (context, _, _) = two_models().await;
    let message = refused(
        &context,
        "SELECT similarity(embed(body), embed_query('rain', 'first')) FROM docs",
    )
    .await;
    assert!(
        message.contains("pooling: mean here, cls there"),
        "{message}"
    );
    assert!(message.contains("\"mean\" and of \"first\""), "{message}");
    // Through subqueries, tables and joins.
    let sql = "CREATE TABLE kept AS SELECT id, embed(body) AS v FROM docs";
    context.sql(sql).await.unwrap().collect().await.unwrap();
    for sql in [
        "SELECT similarity(v, embed_query('rain', 'first')) FROM kept",
        "SELECT similarity(a.v, b.v) FROM kept a, (SELECT embed(body, 'first') AS v FROM docs) b",
        "SELECT id FROM kept WHERE similarity(v, embed_query('rain', 'first')) > 0",
    ] {
        let message = refused(&context, sql).await;
        assert!(message.contains("cannot be compared"), "{sql}: {message}");
    }
    let same = "SELECT similarity(v, embed_query('rain', 'mean')) AS s FROM kept";
    assert_eq!(rows(&context, same).await.unwrap().num_rows(), 10);
}

#[tokio::test]
async fn a_row_with_vectors_that_cannot_be_compared_is_named() {
    let (context, _) = with_docs(1).await;
    let sql = "SELECT similarity(a, [1.0, 2.0]) FROM (VALUES ([1.0, 2.0]), ([1.0, 2.0, 3.0])) t(a)";
    let error = rows(&context, sql).await.unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("row 1 (from 0) of a batch of 2"),
        "{message}"
    );
    assert!(message.contains("3 and 2 components"), "{message}");
    let sql = "SELECT similarity(a, [1.0, 2.0]) FROM (VALUES ([1.0, NULL])) t(a)";
    let message = rows(&context, sql).await.unwrap_err().to_string();
    assert!(
        message.contains("component 1 of a vector is null"),
        "{message}"
    );
    let (context, _, _) = two_models().await;
    let message = refused(
        &context,
        "SELECT similarity(embed('a'), arrow_cast([1.0], 'FixedSizeList(1, Float32)'))",
    )
    .await;
    assert!(message.contains("32 and 1 components"), "{message}");
}

#[tokio::test]
async fn a_row_that_fails_is_named() {
    let (context, _) = with_docs(20).await;
    // Two special tokens leave no room.
    let error = rows(&context, "SELECT chunk(body, 2) FROM docs WHERE id = 3").await;
    let error = error.unwrap_err();
    let DataFusionError::External(inner) = error.find_root() else {
        panic!("{error}");
    };
    let Some(Error::Row {
        function,
        row,
        rows,
        text,
        ..
    }) = inner.downcast_ref::<Error>()
    else {
        panic!("{inner}");
    };
    assert_eq!((*function, *row, *rows), ("chunk", 0, 1));
    assert_eq!(*text, format!("{:?}", texts(4)[3]));
}

#[tokio::test]
async fn the_best_rows_come_first_however_the_query_says_it() {
    let (context, embedder) = with_docs(40).await;
    let bodies = embedder.embed(texts(40)).await.unwrap();
    let query = embedder.embed_query("old hills").await.unwrap();
    let hits = bodies.search_one(&query, 5).unwrap();
    let expected: Vec<i64> = hits.iter().map(|hit| hit.index as i64).collect();
    for sql in [
        "SELECT id, similarity(embed(body), embed_query('old hills')) AS s FROM docs ORDER BY s DESC LIMIT 5",
        "SELECT id FROM docs ORDER BY similarity(embed(body), embed_query('old hills')) DESC LIMIT 5",
        "SELECT id FROM (SELECT id, embed(body) AS v FROM docs) ORDER BY similarity(v, embed_query('old hills')) DESC LIMIT 5",
        "SELECT d.id FROM docs d, (SELECT embed_query('old hills') AS q) ORDER BY similarity(embed(d.body), q) DESC LIMIT 5",
    ] {
        assert_eq!(ids(&rows(&context, sql).await.unwrap()), expected, "{sql}");
    }
}

#[tokio::test]
async fn a_text_is_computed_once_and_only_where_it_is_needed() {
    let (context, embedder) = with_docs(40).await;
    for (sql, texts) in [
        // A condition on the result, outside of the subquery.
        (
            "SELECT * FROM (SELECT id, similarity(embed(body), [1.0]) AS s FROM docs WHERE id < 0) WHERE s > 2",
            0,
        ),
        (
            "SELECT v FROM (SELECT id, embed(body) AS v FROM docs) WHERE v IS NOT NULL",
            40,
        ),
        // Twice in one list, and twice in one condition.
        ("SELECT embed(body) AS a, embed(body) AS b FROM docs", 40),
        (
            "SELECT id FROM docs WHERE embed(body) IS NULL OR embed(body) IS NOT NULL",
            40,
        ),
        // Cheap conditions first, in whatever order they are written.
        (
            "SELECT id FROM docs WHERE embed(body) IS NOT NULL AND id < 8",
            8,
        ),
        (
            "SELECT id FROM docs WHERE id < 8 AND embed(body) IS NOT NULL",
            8,
        ),
        (
            "SELECT id FROM (SELECT id, embed(body) AS v FROM docs) WHERE v IS NOT NULL AND id < 8",
            8,
        ),
        ("SELECT embed(body) FROM docs LIMIT 4", 4),
        // A text that many rows have, once a batch of 8.
        ("SELECT embed('rain') FROM docs WHERE id < 8", 1),
    ] {
        let before = computed(&embedder);
        rows(&context, sql).await.unwrap();
        let after = computed(&embedder) - before;
        let plan = rows(&context, &format!("EXPLAIN {sql}")).await.unwrap();
        let shown = datafusion::arrow::util::pretty::pretty_format_batches(&[plan]).unwrap();
        // A literal is a call for each batch that there is.
        let fits = after == texts || (sql.contains("'rain'") && after <= 4);
        assert!(fits, "{sql}: {after} and not {texts}\n{shown}");
    }
}

#[tokio::test]
async fn aggregates_take_calls_and_other_places_say_that_they_do_not() {
    let (context, embedder) = with_docs(20).await;
    let sql = "SELECT max(similarity(embed(body), embed_query('rain'))) AS s FROM docs";
    let found = scores(&rows(&context, sql).await.unwrap(), "s");
    let query = embedder.embed_query("rain").await.unwrap();
    let all = embedder
        .embed(texts(20))
        .await
        .unwrap()
        .similarity(&query)
        .unwrap();
    let best = all.iter().copied().fold(f32::MIN, f32::max);
    assert_eq!(found, [Some(best)]);
    for (sql, place) in [
        (
            "SELECT a.id FROM docs a JOIN docs b ON similarity(embed(a.body), embed(b.body)) > 0.5",
            "JOIN",
        ),
        ("SELECT count(*) FROM docs GROUP BY embed(body)", "GROUP BY"),
        (
            "SELECT rank() OVER (ORDER BY similarity(embed(body), embed('rain'))) FROM docs",
            "window",
        ),
        ("VALUES (1, embed('rain'))", "VALUES"),
        ("SELECT DISTINCT ON (embed(body)) id FROM docs", "GROUP BY"),
    ] {
        let message = refused(&context, sql).await;
        assert!(
            message.contains(place) && message.contains("subquery"),
            "{sql}: {message}"
        );
    }
    let sql = "SELECT a.id FROM (SELECT id, embed(body) AS v FROM docs) a
               JOIN (SELECT id, embed(body) AS v FROM docs) b ON similarity(a.v, b.v) > 0.99 AND a.id < b.id";
    rows(&context, sql).await.unwrap();
}

#[tokio::test]
async fn a_text_may_be_a_parameter() {
    let (context, embedder) = with_docs(10).await;
    let sql = "SELECT similarity(embed(body), embed_query($1)) AS s FROM docs ORDER BY id";
    let frame = context.sql(sql).await.unwrap();
    let bound = frame.with_param_values(vec![ScalarValue::from("it's raining")]);
    let batches = bound.unwrap().collect().await.unwrap();
    let found: Vec<_> = batches
        .iter()
        .flat_map(|batch| scores(batch, "s"))
        .collect();
    let query = embedder.embed_query("it's raining").await.unwrap();
    let bodies = embedder.embed(texts(10)).await.unwrap();
    let expected = bodies.similarity(&query).unwrap();
    assert_eq!(
        found,
        expected.iter().copied().map(Some).collect::<Vec<_>>()
    );
    let message = refused(&context, "SELECT embed(body, $1) FROM docs").await;
    assert!(
        message.contains("argument 2 is no text that the query itself has"),
        "{message}"
    );
}

#[tokio::test]
async fn rows_are_inserted_with_their_vectors() {
    let (context, embedder) = with_docs(3).await;
    for sql in [
        "CREATE TABLE kept AS SELECT id, embed(body) AS v FROM docs WHERE id < 2",
        "INSERT INTO kept SELECT 7, embed('rain')",
    ] {
        context.sql(sql).await.unwrap().collect().await.unwrap();
    }
    let found = rows(&context, "SELECT id, v FROM kept ORDER BY id")
        .await
        .unwrap();
    let expected = embedder
        .embed([&*texts(2)[0], &*texts(2)[1], "rain"])
        .await
        .unwrap();
    let found: Vec<_> = vectors(&found, "v").into_iter().flatten().collect();
    assert_eq!(found, expected.into_vecs());
}

#[tokio::test]
async fn rerank_is_that_of_rust() {
    let (context, _, _) = two_models().await;
    let sql = "SELECT rerank('old rain', body) AS s, rerank(NULL, body) AS n FROM docs ORDER BY id";
    let found = rows(&context, sql).await.unwrap();
    let pairs = texts(10).into_iter().map(|text| ("old rain", text));
    let expected = reranker().await.score(pairs).await.unwrap().scores;
    let expected: Vec<_> = expected.into_iter().map(Some).collect();
    assert_eq!(scores(&found, "s"), expected);
    assert_eq!(scores(&found, "n"), [None; 10]);
    let message = refused(&context, "SELECT rerank('a', body, 'mean') FROM docs").await;
    assert!(message.contains("no reranker named \"mean\""), "{message}");
}

#[tokio::test]
async fn chunks_are_those_of_rust_and_are_embedded() {
    let (context, embedder) = (session(), tiny().await);
    register(&context, &embedder).unwrap();
    let long = "rain falls on old hills again. ".repeat(40);
    docs(&context, [Some(long.clone()), None, Some(String::new())]);
    let options = isovec::ChunkOptions::default().with_max_tokens(32);
    let expected = embedder.chunk(&long, &options).unwrap();
    let expected: Vec<&str> = expected
        .iter()
        .map(|part| &long[part.range.clone()])
        .collect();
    assert!(expected.len() > 3);
    let found = rows(
        &context,
        "SELECT chunk(body, 32) AS c FROM docs ORDER BY id",
    )
    .await
    .unwrap();
    let lists = found.column(0).as_list::<i32>();
    let first = lists.value(0);
    let first: Vec<&str> = first.as_string::<i32>().iter().flatten().collect();
    assert_eq!(first, expected);
    assert!(lists.is_null(1) && lists.is_valid(2) && lists.value(2).is_empty());
    let sql = "SELECT embed(part) AS v FROM (SELECT unnest(chunk(body, 32)) AS part FROM docs)";
    let found = vectors(&rows(&context, sql).await.unwrap(), "v");
    let vectors = embedder.embed(&expected).await.unwrap().into_vecs();
    assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), vectors);
}

#[tokio::test]
async fn a_query_waits_for_a_full_queue() {
    let context = session();
    let embedder = tiny_with(config().with_max_queue(2)).await;
    register(&context, &embedder).unwrap();
    docs(&context, all(60));
    let expected = embedder.embed(texts(60)).await.unwrap().into_vecs();
    let sql = "SELECT embed(body) AS v FROM docs ORDER BY id";
    let queries = (0..4).map(|_| rows(&context, sql));
    for found in futures_util::future::join_all(queries).await {
        let found = vectors(&found.unwrap(), "v");
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_query_cancels_its_work() {
    let (context, embedder) = (SessionContext::new(), tiny().await);
    register(&context, &embedder).unwrap();
    docs(&context, all(8000));
    let query = context.sql("SELECT embed(body) FROM docs").await.unwrap();
    let query = tokio::spawn(query.collect());
    while embedder.stats().calls.batches == 0 {
        tokio::task::yield_now().await;
    }
    query.abort();
    assert!(query.await.unwrap_err().is_cancelled());
    // The calls end when their batches notice it.
    while embedder.stats().calls.cancelled == 0 {
        tokio::task::yield_now().await;
    }
    assert!(computed(&embedder) < 8000);
    // The model goes on for others.
    let one = rows(&context, "SELECT embed('rain') AS v").await.unwrap();
    assert_eq!(vectors(&one, "v").len(), 1);
}

#[tokio::test]
async fn a_table_of_numbers_stays_what_it_is() {
    let (context, _) = with_docs(3).await;
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    context.deregister_table("docs").unwrap();
    register_docs(&context, &numbers);
    let found = rows(&context, "SELECT id FROM docs ORDER BY body DESC")
        .await
        .unwrap();
    assert_eq!(ids(&found), [1, 0]);
}
