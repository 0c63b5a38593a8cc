//! Parquet as an input: row groups, kept columns, and texts that are not UTF-8.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use isovec_jobs::{Spec, run, status};

use crate::engine::{Counting, Notes};
use crate::folder::{Folder, expected};

/// A file of rows with the ids from `first` on, in row groups of these sizes.
pub(crate) fn write(
    folder: &Folder,
    name: &str,
    first: usize,
    groups: &[usize],
    compression: Compression,
) {
    let ids = |from: usize, count: usize| (from..from + count).map(|id| format!("{id:06}"));
    let batch = |from: usize, count: usize| {
        let id: StringArray = ids(from, count).map(Some).collect();
        let text = (from..from + count).map(|id| Some(format!("text number {id}")));
        let text: StringArray = text.collect();
        let number: Int64Array = (from..from + count).map(|id| Some(id as i64)).collect();
        let mut list = ListBuilder::new(Int32Builder::new());
        (from..from + count).for_each(|id| list.append_value((0..id as i32 % 3).map(Some)));
        let columns: [(&str, ArrayRef); 4] = [
            ("number", Arc::new(number)),
            ("text", Arc::new(text)),
            ("list", Arc::new(list.finish())),
            ("id", Arc::new(id)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let file = File::create(folder.path("in").join(name)).unwrap();
    let properties = WriterProperties::builder().set_compression(compression);
    let schema = batch(0, 0).schema();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties.build())).unwrap();
    let mut from = first;
    for &rows in groups {
        writer.write(&batch(from, rows)).unwrap();
        writer.flush().unwrap();
        from += rows;
    }
    writer.close().unwrap();
}

fn spec(folder: &Folder, out: &str, more: &str) -> Spec {
    let toml = folder.toml(out, "**/*.parquet", more);
    Spec::parse(&toml).unwrap()
}

#[test]
fn every_row_of_every_row_group_is_in_the_output_once() {
    let folder = Folder::new();
    let zstd = Compression::ZSTD(ZstdLevel::default());
    write(&folder, "a.parquet", 0, &[4, 5, 40, 1], zstd);
    write(&folder, "b.parquet", 50, &[10], Compression::LZ4_RAW);
    write(
        &folder,
        "c.parquet",
        60,
        &[10],
        Compression::GZIP(Default::default()),
    );
    write(&folder, "d.parquet", 70, &[10], Compression::SNAPPY);
    let spec = spec(&folder, "out", "unit_rows = 10");
    let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!(folder.rows("out"), expected(0, 80));
    // 4 and 5 rows together, 40 alone, 1 alone, and the other files.
    assert_eq!((report.units, report.rows), (6, 80));
    // 40 rows are four files of ten.
    assert_eq!(folder.output("out").len(), 9);
}

#[test]
fn a_resume_reads_nothing_that_is_done_and_no_footer_twice() {
    let folder = Folder::new();
    write(&folder, "a.parquet", 0, &[10; 6], Compression::SNAPPY);
    let spec = spec(&folder, "out", "unit_rows = 10");
    let notes = Arc::new(Notes::default());
    notes.most.store(3, Relaxed);
    run(&spec, &Counting::default(), notes).unwrap_err();
    let done = status(&spec).unwrap().done;
    let engine = Counting::default();
    let report = run(&spec, &engine, Arc::new(())).unwrap();
    assert_eq!((report.before, report.finished), (done, 6 - done));
    assert_eq!(engine.texts.load(Relaxed), 10 * (6 - done));
    assert_eq!(folder.rows("out"), expected(0, 60));
    let report = run(&spec, &engine, Arc::new(())).unwrap();
    assert_eq!((report.before, report.bytes_read), (6, 0));
}

#[test]
fn kept_columns_have_their_types_and_the_schema_names_the_model() {
    let folder = Folder::new();
    write(&folder, "a.parquet", 0, &[7], Compression::SNAPPY);
    let toml = folder.toml("out", "a.parquet", "poisoned = 'null'");
    let toml = toml.replace("['id']", "['list', 'text', 'number', 'id']");
    run(
        &Spec::parse(&toml).unwrap(),
        &Counting::default(),
        Arc::new(()),
    )
    .unwrap();
    let bytes = folder.output("out").into_values().next().unwrap();
    let reader = ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        bytes::Bytes::from(bytes),
    );
    let reader = reader.unwrap();
    let schema = Arc::clone(reader.schema());
    let names: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| &**field.name())
        .collect();
    assert_eq!(
        names,
        ["list", "text", "number", "id", "embedding", "error"]
    );
    assert!(matches!(schema.field(0).data_type(), DataType::List(_)));
    assert_eq!(schema.field(2).data_type(), &DataType::Int64);
    let vectors = schema.field(4).data_type();
    assert!(
        matches!(vectors, DataType::FixedSizeList(item, 4) if *item.data_type() == DataType::Float32)
    );
    assert_eq!(schema.metadata()["model"], "0");
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    let texts = batch
        .column(1)
        .as_any()
        .downcast_ref::<StringArray>()
        .unwrap();
    assert_eq!(texts.value(6), "text number 6");
    let numbers = batch
        .column(2)
        .as_any()
        .downcast_ref::<Int64Array>()
        .unwrap();
    assert_eq!(numbers.value(6), 6);
    assert_eq!(batch.column(5).null_count(), 7);
}

/// A row's id and the bytes of its text.
type Bytes<'a> = (&'a str, Option<&'a [u8]>);

/// A file of two row groups, as a program writes it that does not look at its texts.
fn careless(folder: &Folder) {
    let message = "message m { required binary id (UTF8); optional binary text (UTF8); }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = File::create(folder.path("in/a.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let groups: [[Bytes<'_>; 3]; 2] = [
        [
            ("000000", Some(b"text number 0")),
            ("a", None),
            ("b", Some(b"not \xff UTF-8")),
        ],
        [
            (
                "c",
                Some(b"a text that is longer than forty bytes of UTF-8"),
            ),
            ("d", Some(b"bad")),
            ("000001", Some(b"text number 1")),
        ],
    ];
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let ids: Vec<ByteArray> = rows.iter().map(|(id, _)| ByteArray::from(*id)).collect();
        let levels: Vec<i16> = rows
            .iter()
            .map(|(_, text)| i16::from(text.is_some()))
            .collect();
        let texts = rows
            .iter()
            .filter_map(|(_, text)| text.map(|text| ByteArray::from(text.to_vec())));
        let texts: Vec<ByteArray> = texts.collect();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&ids, None, None)
            .unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&texts, Some(&levels), None)
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn poisoned_rows_do_not_lose_their_row_group() {
    let folder = Folder::new();
    careless(&folder);
    let null = spec(&folder, "null", "poisoned = 'null'\nmax_text_bytes = 40");
    let report = run(&null, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!((report.rows, report.poisoned), (6, 4));
    let rows = folder.rows("null");
    assert_eq!(rows[..2], expected(0, 2));
    for (row, (id, reason)) in rows[2..].iter().zip([
        ("a", "null"),
        ("b", "not UTF-8 from its byte 4"),
        ("c", "47 bytes"),
        ("d", "it is bad"),
    ]) {
        assert_eq!((&*row.0, &row.1), (id, &None));
        assert!(row.2.as_ref().unwrap().contains(reason), "{row:?}");
    }
    let skip = spec(&folder, "skip", "poisoned = 'skip'\nmax_text_bytes = 40");
    run(&skip, &Counting::default(), Arc::new(())).unwrap();
    assert_eq!(folder.rows("skip"), expected(0, 2));
    let side = folder
        .output("skip")
        .into_iter()
        .find(|(name, _)| name.starts_with("skipped/"));
    let side = String::from_utf8(side.unwrap().1).unwrap();
    let at = side.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["row"].as_u64().unwrap()
    });
    assert_eq!(at.collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn files_that_are_wrong_say_how() {
    for (keep, text, said) in [
        (
            "['id', 'page']",
            "text",
            "has no column \"page\" but [\"number\"",
        ),
        ("['id']", "body", "has no column \"body\" but"),
        ("['id']", "number", "has no texts"),
        ("['id']", "list", "has no column \"list\""),
    ] {
        let folder = Folder::new();
        write(&folder, "a.parquet", 0, &[7], Compression::SNAPPY);
        let toml = folder.toml("out", "a.parquet", &format!("text = '{text}'"));
        let spec = Spec::parse(&toml.replace("['id']", keep)).unwrap();
        let report = run(&spec, &Counting::default(), Arc::new(())).unwrap();
        assert!(
            report.failed[0].reason.contains(said),
            "{:?}",
            report.failed
        );
    }
    for content in [
        &b"PAR1"[..],
        b"no parquet at all",
        b"PAR1\xff\xff\xff\x7fPAR1",
    ] {
        let folder = Folder::new();
        folder.write("a.parquet", content);
        let spec = spec(&folder, "out", "");
        let error = run(&spec, &Counting::default(), Arc::new(())).unwrap_err();
        assert!(error.to_string().contains("a.parquet"), "{error}");
    }
}
