//! The status page, which `serve/tests/clients/status.test.mjs` runs.

use crate::running::Running;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_loads_what_this_server_has_and_nothing_else() {
    let server = Running::start().await;
    let (page, script) = (server.get("/status").await, server.get("/status.js").await);
    for (answer, kind) in [(&page, "text/html"), (&script, "text/javascript")] {
        assert_eq!(answer.status, 200);
        let said = answer.header("content-type").unwrap();
        assert!(said.starts_with(kind), "{said}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("http"),
            "{policy}"
        );
        for word in ["https:", "http:", "//cdn", "@import", "url("] {
            assert!(!answer.text().contains(word), "{word}");
        }
    }
    assert_eq!(page.text().matches("src=").count(), 1);
    assert!(page.text().contains("src=\"/status.js\""));
}
