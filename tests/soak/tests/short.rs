//! Two rounds with one seed, and no clock.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use isovec_soak::Soak;

#[test]
fn some_hundred_actions_lose_nothing() {
    let soak = Soak::new(17, 3, None).unwrap();
    for _ in 0..2 {
        soak.round();
    }
    let (counts, faults) = (soak.counts(), soak.faults());
    println!("{counts:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(counts.actions, 800);
    assert!(
        counts.vectors > 1000 && counts.given_up > 10 && counts.loads > 10,
        "{counts:?}"
    );
}
