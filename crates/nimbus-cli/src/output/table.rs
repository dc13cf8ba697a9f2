//! Columns of text, aligned.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

/// Rows and columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column, by its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    title: &'static str,
    wide: bool,
    optional: bool,
}

/// What stands in one place; nothing is shown as `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

/// How a cell is meant, for eyes that see colours. Never the only way in which something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Warning,
    Bad,
}

/// Between columns.
const GAP: &str = "   ";

// === impl Table ===

impl Table {
    /// An empty table.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; it has one cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "a row has one cell for each column");
        self.rows.push(cells);
    }

    /// The table as text, for those who draw it themselves.
    pub(crate) fn text(&self, colored: bool) -> String {
        self.render(false, true, colored)
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// The table as text, with a line break at the end of each row.
    pub(super) fn render(&self, wide: bool, headers: bool, colored: bool) -> String {
        let filled = |at: usize| self.rows.iter().any(|row| !row[at].text.is_empty());
        let shown = |(at, column): &(usize, &Column)| (wide || !column.wide) && (!column.optional || filled(*at));
        let shown: Vec<usize> = self.columns.iter().enumerate().filter(shown).map(|(at, _)| at).collect();
        let header: Vec<Cell> = self.columns.iter().map(|column| Cell::from(column.title)).collect();
        let lines = headers.then_some(&header).into_iter().chain(&self.rows);
        let width = |at: usize| lines.clone().map(|row| row[at].shown().width()).max().unwrap_or_default();
        let widths: Vec<usize> = shown.iter().map(|&at| width(at)).collect();

        let mut text = String::new();
        for (number, row) in lines.clone().enumerate() {
            for (&at, &width) in shown.iter().zip(&widths) {
                let style = if headers && number == 0 { Style::new().bold() } else { row[at].tone.style() };
                let style = if colored { style } else { Style::new() };
                let cell = row[at].shown();
                let last = Some(&at) == shown.last();
                let padding = if last { 0 } else { width - cell.width() };
                let gap = if last { "" } else { GAP };
                let written = write!(text, "{style}{cell}{style:#}{:padding$}{gap}", "");
                written.expect("a string takes everything");
            }
            text.push('\n');
        }
        text
    }
}

// === impl Column ===

impl Column {
    /// A column that is always there.
    pub(crate) const fn new(title: &'static str) -> Self {
        Self { title, wide: false, optional: false }
    }

    /// A column for those who want to know more.
    pub(crate) const fn wide(title: &'static str) -> Self {
        Self { title, wide: true, optional: false }
    }

    /// A column that is left out if it has nothing to say.
    pub(crate) const fn optional(title: &'static str) -> Self {
        Self { title, wide: false, optional: true }
    }
}

// === impl Cell ===

impl Cell {
    /// The same in another tone.
    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    fn shown(&self) -> &str {
        if self.text.is_empty() { "-" } else { &self.text }
    }
}

/// Control characters are escaped: what others have written must not move the cursor.
impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        let text = text.to_string();
        let text = match text.chars().any(char::is_control) {
            true => text
                .chars()
                .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
                .collect(),
            false => text,
        };
        Self { text, tone: Tone::Plain }
    }
}

// === impl Tone ===

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
        }
    }
}
