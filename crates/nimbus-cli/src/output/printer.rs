//! The way to standard output.

use std::io::{BufWriter, Write};

use serde_json::Value;

use crate::{
    failure::Failure,
    output::{Format, Table, yaml},
};

/// Writes results to standard output, in the format that the user chose, and remarks to standard error.
///
/// Output is buffered: call [`Printer::flush`] at the end, and wherever somebody waits for a line.
pub(crate) struct Printer {
    out: BufWriter<Box<dyn Write>>,
    format: Format,
    colored: bool,
    headers: bool,
    documents: usize,
}

// === impl Printer ===

impl Printer {
    pub(super) fn new(out: Box<dyn Write>, format: Format, colored: bool, headers: bool) -> Self {
        Self { out: BufWriter::new(out), format, colored, headers, documents: 0 }
    }

    /// Plain lines on standard output.
    pub(crate) fn lines() -> Self {
        Self::new(Box::new(std::io::stdout().lock()), Format::Table, false, false)
    }

    /// Text and tables on standard output, in colours if they are welcome.
    pub(super) fn page(colored: bool) -> Self {
        Self::new(Box::new(std::io::stdout().lock()), Format::Table, colored, true)
    }

    /// The format that the user chose.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// One line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// A table; of the wide columns, only if the user wants them.
    pub(crate) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        let text = table.render(self.format == Format::Wide, self.headers, self.colored);
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// A JSON document.
    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        self.raw(&format!("{value:#}\n"))
    }

    /// A YAML document; the second and all after it are set apart.
    pub(crate) fn yaml(&mut self, value: &Value) -> Result<(), Failure> {
        if self.documents > 0 {
            self.raw("---\n")?;
        }
        self.documents += 1;
        self.raw(&yaml::document(value))
    }

    /// YAML as a part of a page: indented, and no document of its own.
    pub(crate) fn yaml_part(&mut self, value: &Value) -> Result<(), Failure> {
        yaml::document(value).lines().try_for_each(|line| self.line(&format!("  {line}")))
    }

    /// Text as it is.
    pub(crate) fn raw(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// A remark, which is no result, and so does not get into a pipe.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Failure> {
        self.flush()?;
        #[allow(clippy::print_stderr, reason = "the place for remarks")]
        {
            eprintln!("nimbus: {text}");
        }
        Ok(())
    }

    /// Hands over what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}
