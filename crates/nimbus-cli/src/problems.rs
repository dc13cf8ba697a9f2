//! What is wrong with the input: all of it, each at its place.

use std::{collections::HashMap, rc::Rc};

use crate::{
    document::{Complaint, Position},
    failure::{Exit, Failure},
    output::thousands,
};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    file: Rc<str>,
    at: Option<Position>,
    message: String,
}

/// What is wrong with the files, in the order in which it was found.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

/// More than anybody reads before they begin to repair.
const SHOWN: usize = 20;

// === impl Problems ===

impl Problems {
    /// Something about a file as a whole.
    pub(crate) fn file(&mut self, file: &Rc<str>, message: impl Into<String>) {
        self.0.push(Problem { file: file.clone(), at: None, message: message.into() });
    }

    /// Something at a place of a file.
    pub(crate) fn complaint(&mut self, file: &Rc<str>, Complaint { at, message }: Complaint) {
        self.0.push(Problem { file: file.clone(), at: Some(at), message });
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them: where, if it is about a place in its file, and what.
    pub(crate) fn into_all(self) -> impl Iterator<Item = (Option<(usize, usize)>, String)> {
        let place = |at: Position| (at.line, at.column);
        self.0.into_iter().map(move |problem| (problem.at.map(place), problem.message))
    }

    /// The same, where there is only one file.
    pub(crate) fn into_complaints(self) -> impl Iterator<Item = Complaint> {
        self.0
            .into_iter()
            .filter_map(|problem| Some(Complaint::new(problem.at?, problem.message)))
    }

    /// One a line.
    fn lines(&self) -> Vec<String> {
        let line = |problem: &Problem| match problem.at {
            Some(at) => format!("{}:{at}: {}", problem.file, problem.message),
            None => format!("{}: {}", problem.file, problem.message),
        };
        self.0.iter().map(line).collect()
    }

    /// An object that the bus refused.
    pub(crate) fn refusal(&mut self, file: &Rc<str>, at: Position, name: &str, failure: &Failure) {
        let said = failure.to_string();
        let message = if said.starts_with(name) { said } else { format!("{name}: {said}") };
        self.complaint(file, Complaint::new(at, message));
    }

    /// Says the first of them on standard error, in the order of the files.
    pub(crate) fn tell(&mut self) {
        // In a file, the reader of documents complains before the reader of what is in them.
        let files: Vec<Rc<str>> = self.0.iter().map(|problem| problem.file.clone()).collect();
        let place: HashMap<Rc<str>, usize> = files.into_iter().enumerate().rev().map(|(at, file)| (file, at)).collect();
        self.0.sort_by_key(|problem| (place.get(&problem.file).copied(), problem.at));
        let lines = self.lines();
        #[allow(clippy::print_stderr, reason = "the place where problems are told")]
        {
            lines.iter().take(SHOWN).for_each(|line| eprintln!("{line}"));
            if lines.len() > SHOWN {
                eprintln!("and {} more", thousands(lines.len() - SHOWN));
            }
        }
    }

    /// Says them, and what becomes of the command: nothing was done.
    pub(crate) fn into_failure(mut self) -> Failure {
        self.tell();
        let count =
            if self.0.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", thousands(self.0.len())) };
        Failure::new(Exit::Invalid, format!("{count}, nothing was sent"))
    }
}
