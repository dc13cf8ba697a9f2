//! A terminal that is drawn on, and put right afterwards, whatever happens.

use std::{
    io::{self, Write as _},
    panic,
    sync::Once,
    thread,
    time::Duration,
};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    queue,
    style::ResetColor,
    terminal::{self, Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen},
};
use tokio::sync::mpsc;

/// A terminal that belongs to us until this value is dropped.
pub(crate) struct Screen(());

/// What somebody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Quit,
    /// Ctrl-C, which is no signal while we have the terminal.
    Interrupt,
    Sort,
    Up,
    Down,
    PageUp,
    PageDown,
    /// The window has another size.
    Resized,
}

/// Keys come one by one; somebody who leans on one is not remembered for long.
const KEYS: usize = 16;

/// How soon the thread that reads keys notices that nobody wants them any more.
const LOOK: Duration = Duration::from_millis(100);

// === impl Screen ===

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                // So that the message can be read.
                restore();
                before(info);
            }));
        });
        terminal::enable_raw_mode()?;
        let screen = Self(());
        let mut out = io::stdout();
        queue!(out, EnterAlternateScreen, Hide, DisableLineWrap)?;
        out.flush()?;
        Ok(screen)
    }

    /// How many lines there are.
    pub(crate) fn height(&self) -> usize {
        terminal::size().map_or(24, |(_, rows)| usize::from(rows))
    }

    /// Shows these lines, and nothing else. What is too long for a line is cut off by the terminal.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut frame = Vec::new();
        queue!(frame, MoveTo(0, 0))?;
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                frame.extend_from_slice(b"\r\n");
            }
            frame.extend_from_slice(line.as_bytes());
            queue!(frame, ResetColor, Clear(ClearType::UntilNewLine))?;
        }
        queue!(frame, Clear(ClearType::FromCursorDown))?;
        let mut out = io::stdout();
        out.write_all(&frame)?;
        out.flush()
    }

    /// What somebody wants, as it comes. Ends when the terminal is gone.
    pub(crate) fn inputs(&self) -> mpsc::Receiver<Input> {
        let (sender, receiver) = mpsc::channel(KEYS);
        thread::spawn(move || {
            while !sender.is_closed() {
                match event::poll(LOOK).and_then(|ready| if ready { event::read().map(Some) } else { Ok(None) }) {
                    Ok(None) => {}
                    Ok(Some(event)) => {
                        if let Some(input) = input(&event)
                            && sender.blocking_send(input).is_err()
                        {
                            break;
                        }
                    }
                    Err(_) => break,
                }
            }
        });
        receiver
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal right. There is nobody to tell if that fails.
fn restore() {
    let mut out = io::stdout();
    drop(queue!(out, ResetColor, EnableLineWrap, Show, LeaveAlternateScreen));
    drop(out.flush());
    drop(terminal::disable_raw_mode());
}

fn input(event: &Event) -> Option<Input> {
    let key = match event {
        Event::Resize(..) => return Some(Input::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Input::Interrupt),
        KeyCode::Char('q') | KeyCode::Esc => Some(Input::Quit),
        KeyCode::Char('s') => Some(Input::Sort),
        KeyCode::Up | KeyCode::Char('k') => Some(Input::Up),
        KeyCode::Down | KeyCode::Char('j') => Some(Input::Down),
        KeyCode::PageUp => Some(Input::PageUp),
        KeyCode::PageDown => Some(Input::PageDown),
        _ => None,
    }
}
