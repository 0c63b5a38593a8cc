//! Kept vectors around an engine that only counts.
