//! Extracts the message of a panic.

use std::any::Any;

/// The message of a panic that was caught.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_and_other_values_named() {
        let said = |panic: fn()| message(&*std::panic::catch_unwind(panic).unwrap_err());
        assert_eq!(said(|| panic!("as it is")), "as it is");
        assert_eq!(said(|| panic!("put {}", "together")), "put together");
        let odd = said(|| std::panic::panic_any(7));
        assert_eq!(odd, "a panic without a message");
    }
}
