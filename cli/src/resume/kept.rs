//! A sink whose output is kept.

use isovec::Embedded;

use super::Keeper;
use crate::error::Result;
use crate::input::Row;
use crate::output::Sink;

/// Tells the keeper of every row and window that a sink is given.
pub(crate) struct Kept<'a> {
    pub(crate) sink: Box<dyn Sink<Embedded>>,
    pub(crate) keeper: &'a mut Keeper,
}

impl Sink<Embedded> for Kept<'_> {
    fn write(&mut self, row: Row, embedded: Embedded) -> Result<()> {
        self.keeper.row(&row);
        self.sink.write(row, embedded)
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.flush()?;
        self.keeper.window()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.sink.finish()
    }
}
