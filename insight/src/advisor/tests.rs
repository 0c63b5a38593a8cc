use super::*;

struct Panics;

impl Rule for Panics {
    fn id(&self) -> &str {
        "panics"
    }

    fn check(&self, _: &AnalysisContext) -> Vec<Suggestion> {
        panic!("a rule of somebody else's")
    }
}

struct Always;

impl Rule for Always {
    fn id(&self) -> &str {
        "always"
    }

    fn check(&self, _: &AnalysisContext) -> Vec<Suggestion> {
        vec![
            Suggestion::new("always", Category::Other, "Do something")
                .with_impact(Impact::High)
                .with_patch(Patch::of([("session.pool_size", 3)])),
        ]
    }
}

#[test]
fn a_context_with_nothing_in_it_says_what_is_missing() {
    let report = Advisor::new().analyze(&AnalysisContext::default());
    assert!(report.suggestions.is_empty());
    assert_eq!(report.judged, 0);
    assert_eq!(report.not_judged.len(), rules::ALL.len());
    let missing = report.missing();
    assert_eq!(missing.len(), 9, "{missing:?}");
    let page = report.to_markdown();
    for part in missing {
        let line = format!("no `{}` ({})", part.name(), part.hint());
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
}

#[test]
fn a_rule_that_panics_is_named_and_the_others_go_on() {
    let advisor = Advisor::new().with_rule(Panics).with_rule(Always);
    let report = advisor.analyze(&AnalysisContext::default());
    assert_eq!(report.failed.len(), 1);
    assert_eq!(report.failed[0].rule, "panics");
    assert_eq!(report.failed[0].message, "a rule of somebody else's");
    assert_eq!(report.judged, 1);
    let found = report.suggestion("always").unwrap();
    let config = isovec::EmbeddingConfig::default();
    assert_eq!(found.apply(&config).unwrap(), config.with_pool_size(3));
    assert_eq!(report.high_impact_suggestions().count(), 1);
    assert_eq!(report.suggestions_by_category(Category::Other).count(), 1);
    assert_eq!(report.suggestions_by_category(Category::Memory).count(), 0);
    assert_eq!(report.easy_suggestions().count(), 1);
    let names = advisor.rules();
    assert_eq!(names.len(), rules::ALL.len() + 2);
}

#[test]
fn a_change_for_memory_is_not_rejected_for_its_speed() {
    let suggestion = |category| {
        let trial = Trial::default();
        let turns = (vec![1.0; 6], vec![1.0; 6]);
        let report = trial.report(turns, 1, (&[1.0], &[1.0]), true).unwrap();
        let mut suggestion = Suggestion::new("one", category, "One")
            .expecting("90 MB less memory", "pages are shared")
            .with_impact(Impact::High);
        suggestion.verified = Some(report);
        suggestion
    };
    let other = Suggestion::new("other", Category::Other, "Other");
    for (category, first) in [(Category::Memory, "one"), (Category::Threads, "other")] {
        let mut report = OptimizationReport::default();
        report.add([suggestion(category), other.clone()]);
        assert_eq!(report.suggestions[0].id, first);
        let page = report.to_markdown();
        let of_memory = category == Category::Memory;
        assert_eq!(page.contains("rejected"), !of_memory, "{page}");
        assert_eq!(page.contains("90 MB less memory"), of_memory, "{page}");
        assert!(page.contains("1.00 times as fast"), "{page}");
    }
}

/// A suggestion of another model, which took so many seconds where the original took one.
fn remade(seconds: f64) -> Suggestion {
    let trial = Trial::default();
    let turns = (vec![1.0; 12], vec![seconds; 12]);
    let report = trial.report(turns, 1, (&[1.0], &[0.5]), false).unwrap();
    assert_eq!(report.verdict, Verdict::OtherVectors);
    let mut suggestion = Suggestion::new("remade", Category::Precision, "Make another")
        .expecting_speedup(2.0, "bytes are multiplied faster")
        .changing(VectorChange::Identity)
        .with_recipe(Recipe::int8(Scales::Static));
    suggestion.verified = Some(report);
    suggestion.quality = serde_json::from_str(
        r#"{"texts": 64, "cosine_mean": 0.99812, "cosine_worst": 0.99421, "recall_at_10": 0.97}"#,
    )
    .unwrap();
    suggestion.sizes = serde_json::from_str(r#"{"before": 91600000, "after": 26050000}"#).unwrap();
    suggestion
}

#[test]
fn another_model_is_judged_by_its_speed_and_says_what_it_costs() {
    let other = Suggestion::new("other", Category::Other, "Other");
    for (seconds, verdict, first) in [
        (0.5, "**Measured:** faster: 2.00 times as fast", "remade"),
        (2.0, "**Measured:** rejected: 0.50 times as fast", "other"),
        (
            1.0,
            "**Measured:** rejected, no difference can be shown: 1.00 times as fast",
            "other",
        ),
    ] {
        let mut report = OptimizationReport::default();
        report.add([other.clone(), remade(seconds)]);
        assert_eq!(report.suggestions[0].id, first, "{seconds}");
        let page = report.to_markdown();
        for said in [
            verdict,
            "Vectors before and after: cosine of 0.9942 for the worst text and 0.9981 on average, recall@10 of 0.9700, on 64 texts.",
            "26.1 MB instead of 91.6 MB",
            "embed all earlier texts again",
        ] {
            assert!(page.contains(said), "{said} is not in\n{page}");
        }
        let json = serde_json::to_value(&report).unwrap();
        let place = report.suggestions.iter().position(|one| one.id == "remade");
        let found = &json["suggestions"][place.unwrap()];
        assert_eq!(found["recipe"], serde_json::json!({"int8": "static"}));
        assert_eq!(found["quality"]["cosine_worst"], 0.99421);
        assert_eq!(
            serde_json::from_value::<OptimizationReport>(json).unwrap(),
            report
        );
    }
    // By the name that JavaScript makes of its own.
    let back = r#"{"texts": 64, "cosine_mean": 0.9, "cosine_worst": 0.8, "recall_at10": 0.7}"#;
    let back: VectorQuality = serde_json::from_str(back).unwrap();
    assert_eq!(back.recall_at_10, Some(0.7));
    let mut few = remade(0.5);
    few.quality = serde_json::from_str(
        r#"{"texts": 2, "cosine_mean": null, "cosine_worst": null, "recall_at_10": null}"#,
    )
    .unwrap();
    let mut report = OptimizationReport::default();
    report.add([few]);
    let page = report.to_markdown();
    assert!(
        page.contains("vectors that have no cosine with those before, on 2 texts."),
        "{page}"
    );
}

#[test]
fn names_of_rules_are_their_own() {
    let mut names = Advisor::new().rules();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_context_and_a_report_survive_json() {
    let context = AnalysisContext {
        config: Some(isovec::EmbeddingConfig::high_throughput()),
        stats: Some(isovec::stats::Stats::default()),
        ..AnalysisContext::default()
    };
    let json = serde_json::to_string(&context).unwrap();
    assert_eq!(
        serde_json::from_str::<AnalysisContext>(&json).unwrap(),
        context
    );
    let report = Advisor::new().with_rule(Always).analyze(&context);
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(
        serde_json::from_str::<OptimizationReport>(&json).unwrap(),
        report
    );
}
