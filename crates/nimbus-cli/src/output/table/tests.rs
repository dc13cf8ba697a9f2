//! What tables look like.

use crate::output::{Cell, Column, Table, Tone};

fn table(rows: &[[&str; 4]]) -> Table {
    let mut table =
        Table::new([Column::optional("SPACE"), Column::new("NAME"), Column::wide("LABELS"), Column::new("STATE")]);
    for row in rows {
        table.row(row.map(Cell::from));
    }
    table
}

#[test]
fn columns_are_aligned_and_those_without_content_left_out() {
    let rows = [["", "a", "x=y", "Ready"], ["", "longer", "", ""]];
    assert_eq!(table(&rows).render(false, true, false), "NAME     STATE\na        Ready\nlonger   -\n");
    assert_eq!(
        table(&rows).render(true, true, false),
        "NAME     LABELS   STATE\na        x=y      Ready\nlonger   -        -\n"
    );
    let rows = [["s", "a", "", "x"], ["", "b", "", "y"]];
    assert_eq!(table(&rows).render(false, true, false), "SPACE   NAME   STATE\ns       a      x\n-       b      y\n");
    assert_eq!(table(&rows).render(false, false, false), "s   a   x\n-   b   y\n");
}

#[test]
fn widths_are_those_on_a_screen() {
    let rows = [["", "網", "", "x"], ["", "ä", "", "y"]];
    assert_eq!(table(&rows).render(false, false, false), "網   x\nä    y\n");
}

#[test]
fn colours_do_not_move_columns() {
    let mut table = Table::new([Column::new("A"), Column::new("B")]);
    table.row([Cell::from("bad").tone(Tone::Bad), Cell::from("x")]);
    assert_eq!(
        table.render(false, true, true),
        "\u{1b}[1mA\u{1b}[0m     \u{1b}[1mB\u{1b}[0m\n\u{1b}[31mbad\u{1b}[0m   x\n"
    );
    assert_eq!(table.render(false, true, false), "A     B\nbad   x\n");
}

#[test]
fn what_others_have_written_does_not_control_the_terminal() {
    let rows = [["", "\u{1b}[2Jboo\nnext", "", ""]];
    assert_eq!(table(&rows).render(false, false, false), "\\u{1b}[2Jboo\\nnext   -\n");
}
