//! Small graphs on the processor.

isovec_test_operators::operators!(isovec_test_operators::nowhere);
