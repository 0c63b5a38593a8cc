//! A route, and what the document of the routes says of it.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, get, post};
use serde_json::Value;

use crate::app::App;
use crate::schema::or_null;

/// A path with the one method that it has.
pub(crate) struct Route {
    /// As axum writes it.
    pub(crate) path: &'static str,
    pub(crate) method: Method,
    handler: MethodRouter<Arc<App>>,
    pub(crate) summary: &'static str,
    /// The schema of the request's body, and a request that is answered with 200.
    pub(crate) takes: Option<(Value, Value)>,
    /// The schema of the answer; an answer that is no JSON has none.
    pub(crate) gives: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
}

impl Route {
    pub(crate) fn get<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self {
        Self::new(path, Method::Get, get(handler), summary)
    }

    pub(crate) fn post<H: Handler<T, Arc<App>>, T: 'static>(
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self {
        Self::new(path, Method::Post, post(handler), summary)
    }

    fn new(
        path: &'static str,
        method: Method,
        handler: MethodRouter<Arc<App>>,
        summary: &'static str,
    ) -> Self {
        Self {
            path,
            method,
            handler,
            summary,
            takes: None,
            gives: None,
        }
    }

    /// The schema of the request's body, with an example. What may be left out may be null as well.
    pub(crate) fn takes(mut self, schema: Value, example: Value) -> Self {
        self.takes = Some((or_null(schema), example));
        self
    }

    /// The schema of the answer.
    pub(crate) fn gives(mut self, schema: Value) -> Self {
        self.gives = Some(schema);
        self
    }
}

/// Answers on these routes.
pub(crate) fn router(routes: Vec<Route>) -> Router<Arc<App>> {
    routes.into_iter().fold(Router::new(), |router, route| {
        router.route(route.path, route.handler)
    })
}
