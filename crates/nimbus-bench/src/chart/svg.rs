//! Bars in groups, on a logarithmic scale.

use std::fmt;

/// A chart.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) groups: Vec<Group>,
}

/// Bars that may be compared.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) system: String,
    pub(crate) value: f64,
}

const WIDTH: f64 = 760.0;
/// Room for names on the left, and for figures on the right.
const LEFT: f64 = 130.0;
const RIGHT: f64 = 80.0;
const BAR: f64 = 18.0;
const HEADING: f64 = 30.0;
const MARGIN: f64 = 14.0;

// === impl Chart ===

impl Chart {
    /// The powers of ten between which everything lies.
    fn scale(&self) -> (f64, f64) {
        let values = || self.groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value).filter(|v| *v > 0.0);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        if high == 0.0 {
            return (0.0, 1.0);
        }
        let low = low.log10().floor();
        (low, high.log10().ceil().max(low + 1.0))
    }

    fn height(&self) -> f64 {
        let rows: usize = self.groups.iter().map(|group| group.bars.len()).sum();
        2.0 * MARGIN + HEADING + HEADING * self.groups.len() as f64 + BAR * rows as f64 + HEADING
    }
}

impl fmt::Display for Chart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (height, (low, high)) = (self.height(), self.scale());
        let x = |value: f64| {
            let part = (value.max(f64::MIN_POSITIVE).log10() - low) / (high - low);
            LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
        };
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(f, r#"<rect width="{WIDTH}" height="{height}" fill="white"/>"#)?;
        writeln!(
            f,
            r#"<text x="{MARGIN}" y="{}" font-size="15" font-weight="bold">{}</text>"#,
            MARGIN + 12.0,
            escaped(self.title)
        )?;
        let bottom = height - HEADING;
        for power in low as i32..=high as i32 {
            let at = x(10_f64.powi(power));
            writeln!(
                f,
                r##"<line x1="{at:.1}" y1="{}" x2="{at:.1}" y2="{bottom}" stroke="#ddd"/>"##,
                MARGIN + HEADING
            )?;
            let label = figure(10_f64.powi(power));
            writeln!(
                f,
                r##"<text x="{at:.1}" y="{}" text-anchor="middle" fill="#777">{label}</text>"##,
                bottom + 16.0
            )?;
        }
        let mut y = MARGIN + HEADING;
        for group in &self.groups {
            writeln!(f, r#"<text x="{MARGIN}" y="{}" font-weight="bold">{}</text>"#, y + 20.0, escaped(&group.name))?;
            y += HEADING;
            for Bar { system, value } in &group.bars {
                let (end, text) = (x(*value), y + 13.0);
                writeln!(f, r#"<text x="{}" y="{text}" text-anchor="end">{}</text>"#, LEFT - 8.0, escaped(system))?;
                let (width, thick) = ((end - LEFT).max(1.0), BAR - 4.0);
                writeln!(
                    f,
                    r#"<rect x="{LEFT}" y="{}" width="{width:.1}" height="{thick}" fill="{}"/>"#,
                    y + 2.0,
                    colour(system)
                )?;
                writeln!(f, r#"<text x="{:.1}" y="{text}">{}</text>"#, LEFT + width + 6.0, figure(*value))?;
                y += BAR;
            }
        }
        writeln!(f, "</svg>")
    }
}

/// Ours stands out, the floor is grey.
fn colour(system: &str) -> &'static str {
    match system {
        "nimbus" | "ctkit" => "#1f6feb",
        "nimbus-foreign" => "#79b0f7",
        "tcp" => "#999",
        _ => "#e09f3e",
    }
}

/// Three digits.
fn figure(value: f64) -> String {
    match value {
        v if v >= 1_000_000.0 => format!("{:.3} M", v / 1e6).replace(".000", ""),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}").replace(".0", ""),
        v if v >= 1.0 => format!("{v:.2}").replace(".00", ""),
        v => format!("{v:.3}").trim_end_matches('0').to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
