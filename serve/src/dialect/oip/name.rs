//! Names of models in paths: those of the hub have a slash.

use axum::http::{Request, Uri};

/// What names follow, and what may follow them.
const NAMED: [(&str, &[&str]); 2] = [
    ("/v2/models/", &["ready", "infer"]),
    ("/v2/repository/models/", &["load", "unload"]),
];

/// A request whose path has a model's name as one part: clients of this protocol write the slash in it as it is.
pub(crate) fn fold<B>(mut request: Request<B>) -> Request<B> {
    if let Some(uri) = folded(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn folded(uri: &Uri) -> Option<Uri> {
    let named = |(before, verbs)| Some((before, verbs, uri.path().strip_prefix(before)?));
    let (before, verbs, rest) = NAMED.into_iter().find_map(named)?;
    let parts: Vec<&str> = rest.split('/').collect();
    let mut name = parts.len();
    if verbs.contains(&parts[name - 1]) {
        name -= 1;
    }
    if name > 2 && parts[name - 2] == "versions" {
        name -= 2;
    }
    if name < 2 {
        return None;
    }
    let (name, rest) = parts.split_at(name);
    let mut path = format!("{before}{}", name.join("%2F"));
    for part in rest {
        path.push('/');
        path.push_str(part);
    }
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut whole = uri.clone().into_parts();
    whole.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_in_a_name_is_a_part_of_it() {
        for (path, wanted) in [
            ("/v2/models/a/b", "/v2/models/a%2Fb"),
            ("/v2/models/a/b/infer", "/v2/models/a%2Fb/infer"),
            ("/v2/models/a/b/ready?x=1", "/v2/models/a%2Fb/ready?x=1"),
            (
                "http://host:1/v2/models/a/b/versions/1/infer",
                "http://host:1/v2/models/a%2Fb/versions/1/infer",
            ),
            ("/v2/models/a/b/versions/1", "/v2/models/a%2Fb/versions/1"),
            ("/v2/models/a", "/v2/models/a"),
            ("/v2/models/a/infer", "/v2/models/a/infer"),
            ("/v2/models/a/versions/1", "/v2/models/a/versions/1"),
            ("/v2/models/a%2Fb/ready", "/v2/models/a%2Fb/ready"),
            ("/v2/models/ready", "/v2/models/ready"),
            ("/v2/models/", "/v2/models/"),
            (
                "/v2/repository/models/a/b/load",
                "/v2/repository/models/a%2Fb/load",
            ),
            (
                "/v2/repository/models/a/unload",
                "/v2/repository/models/a/unload",
            ),
            ("/v2/repository/index", "/v2/repository/index"),
            ("/v1/models/a/b", "/v1/models/a/b"),
        ] {
            let request = Request::builder().uri(path).body(());
            let folded = fold(request.expect("a path"));
            assert_eq!(folded.uri().to_string(), wanted);
        }
    }
}
