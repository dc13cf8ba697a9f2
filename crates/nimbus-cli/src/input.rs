//! The files that a command is given.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    rc::Rc,
};

use clap::Args;

use crate::{
    document::{self, Complaint, Content, Node, Position},
    problems::Problems,
};

/// Which files. To be flattened into the arguments of commands that read manifests.
#[derive(Debug, Clone, Args)]
pub(crate) struct InputArguments {
    /// A file with manifests in YAML or JSON; or a directory, of which all .yaml, .yml and .json files are read, also those in
    /// directories below, but nothing whose name begins with a dot; or `-` for standard input. May be given several times.
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// A manifest that was found.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) file: Rc<str>,
    pub(crate) node: Rc<Node>,
}

/// A file of a hundred thousand manifests is smaller, and somebody who names a disk by mistake is told before the memory is full.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Directories in directories; beyond that, somebody has made a loop.
const MAX_DIRECTORIES: usize = 32;

// === impl InputArguments ===

impl InputArguments {
    /// Everything that is in the files, in the order in which they are named; within a directory, in that of their names.
    pub(crate) fn read(&self, problems: &mut Problems) -> Vec<Item> {
        let mut items = Vec::new();
        let mut stdin_is_read = false;
        for path in &self.files {
            if path.as_os_str() == "-" {
                let file = Rc::from("stdin");
                if stdin_is_read {
                    problems.file(&file, "standard input can be read only once");
                } else {
                    read_from(&file, io::stdin().lock(), problems, &mut items);
                }
                stdin_is_read = true;
            } else if path.is_dir() {
                let mut found = Vec::new();
                walk(path, 0, problems, &mut found);
                if found.is_empty() && problems.is_empty() {
                    problems.file(&name(path), "there are no .yaml, .yml or .json files in this directory");
                }
                found.iter().for_each(|path| read_file(path, problems, &mut items));
            } else {
                read_file(path, problems, &mut items);
            }
        }
        items
    }
}

fn name(path: &Path) -> Rc<str> {
    Rc::from(path.display().to_string())
}

fn walk(directory: &Path, depth: usize, problems: &mut Problems, found: &mut Vec<PathBuf>) {
    if depth > MAX_DIRECTORIES {
        problems.file(&name(directory), format!("more than {MAX_DIRECTORIES} directories are nested in one another"));
        return;
    }
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return problems.file(&name(directory), plain(&error)),
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            walk(&path, depth + 1, problems, found);
        } else if path
            .extension()
            .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
        {
            found.push(path);
        }
    }
}

fn read_file(path: &Path, problems: &mut Problems, items: &mut Vec<Item>) {
    match File::open(path) {
        Ok(file) => read_from(&name(path), file, problems, items),
        Err(error) => problems.file(&name(path), plain(&error)),
    }
}

/// Reads everything from a source that goes by this name.
pub(crate) fn read_from(file: &Rc<str>, source: impl Read, problems: &mut Problems, items: &mut Vec<Item>) {
    let mut bytes = Vec::new();
    if let Err(error) = source.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes) {
        return problems.file(file, plain(&error));
    }
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = format!("it is larger than {} MiB (hint: split it)", MAX_FILE_BYTES >> 20);
        return problems.file(file, message);
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            let line = good.matches('\n').count() + 1;
            let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            return problems.complaint(file, Complaint::new(Position { line, column }, "this is no UTF-8"));
        }
    };
    let found = items.len();
    let documents = document::read(&text);
    let complained = !documents.complaints.is_empty();
    documents.complaints.into_iter().for_each(|complaint| problems.complaint(file, complaint));
    for document in documents.documents {
        flatten(file, document, problems, items);
    }
    if items.len() == found && !complained {
        problems.file(file, "there is nothing in it");
    }
}

/// Several objects may be in one document: `items: [...]`.
fn flatten(file: &Rc<str>, node: Rc<Node>, problems: &mut Problems, items: &mut Vec<Item>) {
    let list = node.get("items").filter(|_| node.get("kind").is_none());
    match list.map(|entry| &entry.value.content) {
        None => items.push(Item { file: file.clone(), node }),
        Some(Content::List(nodes)) => {
            items.extend(nodes.iter().map(|node| Item { file: file.clone(), node: node.clone() }));
        }
        Some(_) => problems.complaint(file, Complaint::new(node.at, "`items` must be a list of objects")),
    }
}

/// The words of the standard library without the number of the system.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read (hint: check its permissions)".to_owned(),
        kind => format!("it cannot be read: {kind}"),
    }
}
