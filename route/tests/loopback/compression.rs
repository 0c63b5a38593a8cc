//! Bodies that are compressed between router and replica.

use isovec_route::{Coding, Compression};
use serde_json::json;

use crate::puppet::{Puppet, says};
use crate::running::{MODEL, Routing, Served, options, post};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_compressed_on_the_way_and_plain_at_its_ends() {
    let served = Served::start().await;
    for coding in [Coding::Zstd, Coding::Gzip] {
        let mut options = options();
        options.compression = Some(Compression { coding, level: 3 });
        let answer = coding
            .encode("[0.5,0.25]".repeat(1000).as_bytes(), 3)
            .unwrap();
        let puppet = Puppet::that(says(
            200,
            &format!("content-encoding: {coding}\r\n"),
            &answer,
        ))
        .await;
        let router = Routing::before(&[puppet.address], options.clone()).await;
        let body = json!({"model": MODEL, "input": vec!["the same text again"; 200]});
        let answer = post(router.address, "/v1/embeddings", "", &body).await;
        assert_eq!(answer.text(), "[0.5,0.25]".repeat(1000));
        assert_eq!(answer.header("content-encoding"), None);
        let came = &puppet.came()[0];
        assert_eq!(came.header("content-encoding"), Some(coding.name()));
        assert_eq!(came.header("accept-encoding"), Some(coding.name()));
        assert_eq!(came.header("x-isovec-compress"), Some("3"));
        assert!(came.body.len() * 10 < body.to_string().len());
        assert_eq!(
            coding.decode(&came.body, 1 << 20).unwrap(),
            body.to_string()
        );
        // What is small goes as it is.
        let small = json!({"input": "a"});
        post(router.address, "/v1/embeddings", "", &small).await;
        let came = puppet.came().pop().unwrap();
        assert_eq!(
            (came.header("content-encoding"), &came.body),
            (None, &small.to_string().into_bytes())
        );

        // The server reads it, and answers so.
        let router = Routing::before(&[served.address], options).await;
        let (direct, routed) = (
            post(served.address, "/v1/embeddings", "", &body).await,
            post(router.address, "/v1/embeddings", "", &body).await,
        );
        assert_eq!((routed.status, &routed.body), (200, &direct.body));
        let head = format!("accept-encoding: {coding}\r\nx-isovec-compress: 1\r\n");
        let small = post(served.address, "/v1/embeddings", &head, &body).await;
        assert_eq!(small.header("content-encoding"), Some(coding.name()));
        assert!(small.body.len() * 2 < direct.body.len());
        assert_eq!(
            coding.decode(&small.body, direct.body.len()).unwrap(),
            direct.body
        );
        // A client that only accepts a coding has not asked for it.
        let plain = post(
            served.address,
            "/v1/embeddings",
            &format!("accept-encoding: {coding}\r\n"),
            &body,
        )
        .await;
        assert_eq!(
            (plain.header("content-encoding"), &plain.body),
            (None, &direct.body)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_reads_no_compressed_body_past_its_limit() {
    let served = Served::start().await;
    let bomb = Coding::Gzip.encode(&vec![b' '; 64 << 20], 9).unwrap();
    let request = crate::client::post("/v1/embeddings", "content-encoding: gzip\r\n", &bomb);
    assert_eq!(
        crate::client::send(served.address, &request).await.status,
        413
    );
    for (coding, status) in [("zstd", 400), ("br", 415)] {
        let head = format!("content-encoding: {coding}\r\n");
        assert_eq!(
            post(
                served.address,
                "/v1/embeddings",
                &head,
                &json!({"input": "a"})
            )
            .await
            .status,
            status
        );
    }
}
