//! Many results as one output, printed as they come where the format allows it.

use serde_json::Value;

use crate::{
    failure::Failure,
    output::{Format, Printer, Table},
};

/// A list under way. Names, JSON and YAML are printed at once; a table when its columns are known, at the end.
pub(crate) struct Items {
    table: Table,
    printed: usize,
}

// === impl Items ===

impl Items {
    /// An empty list; `table` has the columns.
    pub(crate) fn new(table: Table) -> Self {
        Self { table, printed: 0 }
    }

    /// Adds an item: what is not needed in the chosen format is not computed.
    pub(crate) fn add(
        &mut self,
        printer: &mut Printer,
        name: impl FnOnce() -> String,
        row: impl FnOnce(&mut Table),
        json: impl FnOnce() -> Value,
    ) -> Result<(), Failure> {
        match printer.format() {
            Format::Table | Format::Wide => row(&mut self.table),
            Format::Name => printer.line(&name())?,
            Format::Yaml => printer.yaml(&json())?,
            Format::Json => {
                printer.raw(if self.printed == 0 { "{\n  \"items\": [\n" } else { ",\n" })?;
                printer.raw(&indented(&format!("{:#}", json())))?;
            }
        }
        self.printed += 1;
        Ok(())
    }

    /// Forgets all, if nothing has been printed yet.
    pub(crate) fn restart(&mut self, printer: &Printer) -> bool {
        let possible = self.printed == 0 || matches!(printer.format(), Format::Table | Format::Wide);
        if possible {
            self.table.clear();
            self.printed = 0;
        }
        possible
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.printed
    }

    /// Prints what is left.
    pub(crate) fn finish(self, printer: &mut Printer) -> Result<(), Failure> {
        match printer.format() {
            Format::Table | Format::Wide if self.printed > 0 => printer.table(&self.table)?,
            Format::Json if self.printed == 0 => printer.raw("{\n  \"items\": []\n}\n")?,
            Format::Json => printer.raw("\n  ]\n}\n")?,
            _ => {}
        }
        printer.flush()
    }
}

/// Two levels in. Lines of JSON begin where lines of text do: within strings, line breaks are escaped.
fn indented(json: &str) -> String {
    let lines: Vec<String> = json.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
