//! Text to token ids.
