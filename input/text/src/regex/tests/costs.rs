//! Tests the cost of patterns, in steps and nodes, without a clock.

use super::*;

/// The matches, and how many steps they took.
fn counted(pattern: &str, text: &str) -> (Result<usize, TooHard>, u64) {
    let regex = Regex::new(pattern).unwrap();
    let mut runner = run::Runner::new(&regex, text).unwrap();
    let mut found = 0;
    let ended = Regex::each_match_of(&mut runner, text, |_| found += 1);
    (ended.map(|()| found), runner.taken())
}

/// Row 1: a repeat of nothing pushes no step, so that no bound on steps applies to it.
#[test]
fn repeats_of_nothing_are_compiled_in_a_few_visits() {
    for nothing in ["", "(?:|)", "(?:a{0})", "(?#a)", "(?:)(?:)"] {
        let mut pattern = nothing.to_owned();
        for _ in 0..5 {
            pattern = format!("(?:{pattern}){{0,1000}}");
        }
        match Regex::new(&pattern) {
            Ok(regex) => assert!(regex.visits < 100, "{pattern}: {}", regex.visits),
            Err(fault) => assert!(matches!(fault, Fault::Unsupported(_)), "{fault:?}"),
        }
    }
    let hostile = "(?:(?:(?:(?:(?:(?:){1000}){1000}){1000}){1000}){1000})";
    assert!(matches!(Regex::new(hostile), Err(Fault::Unsupported(_))));
    // The compiler has a bound of its own, whatever the parser lets through.
    let mut tree = node::Node::Empty;
    for _ in 0..5 {
        tree = node::Node::Repeat {
            node: Box::new(tree),
            least: 1000,
            most: 1000,
            greedy: true,
        };
    }
    let regex = compile::compile(&tree).unwrap();
    assert!(regex.visits < 10, "{}", regex.visits);
}

#[test]
fn what_is_written_out_has_a_bound() {
    for pattern in [
        "(?:a(?:b(?:c){1000}){1000}){1000}",
        "(?:a|b){100000}",
        "(?:ab){0,100000}",
    ] {
        assert!(
            matches!(Regex::new(pattern), Err(Fault::Unsupported(_))),
            "{pattern}"
        );
    }
}

/// Row 12: members are gathered and sorted once. Sorting for every member would not come back.
#[test]
fn a_class_of_very_many_characters_is_built_at_once() {
    let every_third: String = ('\u{100}'..).step_by(3).take(300_000).collect();
    let regex = Regex::new(&format!("[{every_third}]")).unwrap();
    let text: String = ('\u{100}'..='\u{105}').collect();
    let mut found = Vec::new();
    regex
        .each_match(&text, |range| found.push(range.start))
        .unwrap();
    assert_eq!(found, [0, 6]);
    // Short names of large sets count as what they hold.
    let large = r"\p{L}".repeat(500_000);
    assert!(matches!(
        Regex::new(&format!("[{large}]")),
        Err(Fault::Unsupported(_))
    ));
    let nested = format!("[{}a{}]", r"[\p{L}".repeat(50), "]".repeat(50));
    assert!(Regex::new(&nested).is_ok());
}

/// Row 6: valid texts of published patterns are never refused, and cost what is proportional to
/// their length.
#[test]
fn long_runs_cost_as_many_steps_as_they_have_characters() {
    let spaces = " ".repeat(100_000);
    let texts = [
        spaces.clone(),
        format!("{spaces}a"),
        format!("a{spaces}\n"),
        "a".repeat(100_000),
        "é".repeat(50_000),
        "1".repeat(100_000),
        "\u{3000}".repeat(30_000),
        "\n".repeat(100_000),
        " \n".repeat(50_000),
        "! ".repeat(50_000),
        "a'b ".repeat(25_000),
        "野".repeat(30_000),
    ];
    for pattern in PUBLISHED {
        for text in &texts {
            let (found, steps) = counted(pattern, text);
            let start: String = text.chars().take(3).collect();
            assert!(found.is_ok(), "{pattern} on {start:?}");
            let most = 100 * text.len() as u64;
            assert!(steps < most, "{pattern} on {start:?}: {steps} steps");
        }
    }
    assert_eq!(counted(r" +\n", &spaces).0, Ok(0));
    assert_eq!(counted(r"\s*[\r\n]+", &spaces).0, Ok(0));
    assert_eq!(
        ours(r"\s+(?!\S)|\s+", &texts[1]),
        Ok(vec![0..99_999, 99_999..100_000])
    );
    for pattern in [
        "a{1000}b",
        "a{1,1000}b",
        "a{5,}b",
        "a*?b",
        "(?:x|a+)b",
        r"[\p{L}\p{M}]+-",
    ] {
        let (found, steps) = counted(pattern, &texts[3]);
        assert_eq!(found, Ok(0), "{pattern}");
        assert!(steps < 5_000_000, "{pattern}: {steps} steps");
    }
}

/// What makes a pattern's matches as many as it likes ends after steps and ways that the text's
/// length bounds.
#[test]
fn a_pattern_that_explodes_is_stopped() {
    let text = "a".repeat(1 << 16);
    for pattern in [
        "(?:a|a)*(?:a|a)*b",
        "(?:(?:a{1000}){15}){1,3}b",
        "(?:a+)+b",
        "(?:a*)*b",
        "(?:a?|b)*c",
        "(?=(?:a+)+b)a",
        "(?>(?:a|aa)+)+b",
        "(?=.*b)a",
        "(?:(?=a*)a)+b",
        "(?<=aaaaaaaaaaaaaaaaaaaa)b",
        "(?:(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|)(?:|))b",
        "(?:(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a)(?:|a))+b",
    ] {
        let regex = Regex::new(pattern).unwrap();
        let mut runner = run::Runner::new(&regex, &text).unwrap();
        let _ = Regex::each_match_of(&mut runner, &text, |_| {});
        assert!(
            runner.taken() <= 40_000_000,
            "{pattern}: {}",
            runner.taken()
        );
        assert!(
            runner.held() <= 48 << 20,
            "{pattern}: {} bytes",
            runner.held()
        );
    }
}
