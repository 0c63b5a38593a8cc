//! Forecasts of small jobs whose times can be reckoned by hand.

use super::events::HOUR;
use super::*;

/// Ten units of 4096 rows, each of which is computed in 4.096 seconds.
const TEXTS: u64 = 40_960;

fn planned(workers: u32, seed: u64, spec: &str, costs: &str) -> Result<Forecast> {
    let spec = format!("input = 'in/*.jsonl'\noutput = 'out'\n{spec}");
    let given = "texts_per_second = 1000\ninput_row_bytes = 1024";
    let costs = Costs::read(None, &[given, costs])?;
    forecast(&Spec::parse(&spec)?, &costs, TEXTS, workers, seed)
}

fn sum(shares: &Shares) -> f64 {
    shares.computing + shares.again + shares.starting + shares.waiting + shares.in_store()
}

#[test]
fn one_worker_takes_the_sum_of_its_times() {
    let one = planned(1, 1, "", "").unwrap();
    // 5 s of loading. A listing, the settings, two listings more; ten units with a look, a read, a file and an entry.
    let requests = 0.1 * (4.0 + 10.0 * 4.0);
    // All units but the first read the byte before them.
    let bytes = (TEXTS * 1024 + 9 + TEXTS * 1600) as f64 / 85e6;
    let expected = 5.0 + requests + bytes + TEXTS as f64 / 1000.0;
    assert!((one.hours * HOUR - expected).abs() < 1e-6, "{one:?}");
    assert_eq!(one.worker_hours, one.hours);
    assert_eq!((one.units, one.rows, one.rows_again), (10, TEXTS, 0));
    assert_eq!(one.objects, 1 + 10 + 10);
    assert!((sum(&one.shares) - 1.0).abs() < 1e-9, "{one:?}");
    let computing = TEXTS as f64 / 1000.0 / expected;
    assert!((one.shares.computing - computing).abs() < 1e-9, "{one:?}");
}

#[test]
fn threads_of_a_worker_share_its_model() {
    let two = planned(1, 1, "workers = 2", "").unwrap();
    let one = planned(1, 1, "", "").unwrap();
    // Reading and writing are beside computing, which takes as long as before.
    assert!(
        two.hours < one.hours && two.hours * HOUR > 5.0 + 40.96,
        "{two:?}"
    );
    assert!(two.shares.waiting > 0.0, "{two:?}");
    assert_eq!((two.rows_again, &two.requests), (0, &one.requests));
}

#[test]
fn more_workers_are_faster_until_they_do_the_same_units() {
    let forecasts: Vec<_> = [1, 2, 10, 40]
        .map(|workers| planned(workers, 3, "", "load_seconds = 0").unwrap())
        .into();
    for pair in forecasts.windows(2) {
        assert!(pair[1].worker_hours > pair[0].worker_hours, "{pair:?}");
        assert!(pair[1].shares.again > pair[0].shares.again, "{pair:?}");
    }
    assert!(forecasts[1].hours < forecasts[0].hours);
    for forecast in &forecasts {
        assert_eq!((forecast.rows, forecast.objects), (TEXTS, 21));
        assert_eq!(forecast.rows_again, forecast.lost * 4096);
        assert!((sum(&forecast.shares) - 1.0).abs() < 1e-9, "{forecast:?}");
    }
    let limits = Limits::of(&forecasts);
    assert!(matches!(limits.again, Some(2 | 10)), "{limits:?}");
    assert_eq!(limits.store_used, None);
    let again = planned(10, 3, "", "load_seconds = 0").unwrap();
    assert_eq!(again, forecasts[2]);
    assert_ne!(again, planned(10, 4, "", "load_seconds = 0").unwrap());
}

#[test]
fn workers_that_die_cost_rows_and_lose_none() {
    let calm = planned(3, 1, "", "load_seconds = 1").unwrap();
    let costs = "failures_per_hour = 120\nload_seconds = 1\nrestart_seconds = 2";
    let stormy = planned(3, 1, "", costs).unwrap();
    assert!(stormy.restarts > 0, "{stormy:?}");
    // Of one seed it may be chance that others take other units.
    let hours = |costs: &str| -> f64 {
        let seeds = 0..10;
        seeds
            .map(|seed| planned(3, seed, "", costs).unwrap().hours)
            .sum()
    };
    assert!(hours(costs) > 1.1 * hours("load_seconds = 1"));
    assert_eq!((stormy.rows, stormy.objects), (calm.rows, calm.objects));
    assert!(stormy.rows_again > stormy.lost * 4096, "{stormy:?}");
    assert!((sum(&stormy.shares) - 1.0).abs() < 1e-9, "{stormy:?}");
    // Every start lists the input, the manifest and the failures.
    assert!(stormy.requests.lists > 3 * 3, "{stormy:?}");

    let error = planned(3, 1, "", "failures_per_hour = 100000").unwrap_err();
    assert!(error.to_string().contains("no end"), "{error}");
}

#[test]
fn nothing_is_written_faster_than_the_store_can() {
    let free = planned(10, 1, "", "").unwrap();
    let bound = planned(10, 1, "", "store_writes_per_second = 0.2").unwrap();
    let least = (bound.requests.writes - 1) as f64 / 0.2;
    let ended = bound.worker_hours * HOUR / 10.0;
    assert!(
        bound.hours * HOUR > free.hours * HOUR && ended * 10.0 > least,
        "{bound:?}"
    );
    assert!((0.9..=1.0).contains(&bound.store_used), "{bound:?}");
    assert!(
        bound.shares.store > 0.5 && free.store_used < 0.1,
        "{free:?}"
    );
    assert_eq!(Limits::of(&[free, bound]).store_used, Some(10));
    let bytes = planned(10, 1, "", "store_bytes_per_second = 1000000").unwrap();
    let least = (bytes.bytes_read + bytes.bytes_written) as f64 / 1e6;
    assert!(bytes.worker_hours * HOUR > least, "{bytes:?}");
}

#[test]
fn units_that_fail_are_tried_by_every_worker() {
    let costs = "refused_per_million = 100\nload_seconds = 0";
    let failing = planned(4, 5, "", costs).unwrap();
    let failed = failing.units - failing.rows / 4096;
    assert!((1..10).contains(&failed), "{failing:?}");
    assert_eq!(failing.failures, 4 * failed);
    assert_eq!(failing.objects, 1 + 2 * (10 - failed) + failed);
    // Where they are left out, their units have a side file and cost a try more.
    let skipped = planned(1, 5, "poisoned = 'skip'", costs).unwrap();
    assert_eq!((skipped.rows, skipped.failures), (TEXTS, 0));
    assert_eq!(skipped.objects, 21 + failed);
    let plain = planned(1, 5, "", "load_seconds = 0").unwrap();
    assert!(
        skipped.hours * HOUR > plain.hours * HOUR + failed as f64 * 4.0,
        "{skipped:?}"
    );
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    for (texts, costs, said) in [
        (u64::MAX, "file_rows = 9000000000000000000", "too many"),
        (1 << 40, "file_rows = 1099511627776", "too many"),
        (1, "texts_per_second = 1e-300", "300 years"),
        (1, "load_seconds = 1e300", "300 years"),
    ] {
        let spec = Spec::parse("input = 'in/*.parquet'\noutput = 'out'").unwrap();
        let costs = Costs::read(None, &["texts_per_second = 1", costs]).unwrap();
        let error = forecast(&spec, &costs, texts, 1, 0).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    for (texts, workers, said) in [
        (0, 1, "0 texts"),
        (1, 0, "0 texts"),
        (1, 1_000_000, "100000"),
        (u64::MAX, 1, "too many"),
        (7_000_000_000, 90_000, "looks"),
    ] {
        let spec = Spec::parse("input = 'in/*.jsonl'\noutput = 'out'").unwrap();
        let costs = Costs::read(None, &["texts_per_second = 1"]).unwrap();
        let error = forecast(&spec, &costs, texts, workers, 0).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.is_usage());
    }
    let spec = Spec::parse("input = 'in/*'\noutput = 'out'").unwrap();
    let costs = Costs::read(None, &["texts_per_second = 1"]).unwrap();
    let error = forecast(&spec, &costs, 1, 1, 0).unwrap_err();
    assert!(error.to_string().contains(".parquet"), "{error}");
}
