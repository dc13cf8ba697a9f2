//! What reflection answers, whatever the version of the protocol.

use std::{collections::HashSet, sync::Arc};

use prost_reflect::{DescriptorPool, FileDescriptor};
use tonic::Code;

use crate::schemas::{File, Schemas, Snapshot, closure};

/// Clients refuse answers above 4 MiB by default. They ask by name for the imports that are left out.
const MAX_ANSWER_BYTES: usize = 2 << 20;

/// Where the files of our contract lie.
const OURS: &str = "nimbus/v1/";

/// What controllers write: statuses of objects, and objects of their own.
const CONTROL: &str = "nimbus/v1/control.proto";

/// What a client asks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Query<'a> {
    File { name: &'a str },
    Symbol { symbol: &'a str },
    Extension { message: &'a str, number: i32 },
    Extensions { message: &'a str },
    Services,
}

/// What it is told.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// A file and its imports, as their compilers wrote them.
    Files(Vec<Vec<u8>>),
    Extensions {
        message: String,
        numbers: Vec<i32>,
    },
    Services(Vec<String>),
    Error {
        code: Code,
        message: String,
    },
}

/// The conversation with one client.
#[derive(Debug)]
pub(super) struct Lookup {
    schemas: Schemas,
    /// Version of the schemas that `sent` speaks of.
    version: u64,
    /// Imports that the client has already, and need not be sent again.
    sent: HashSet<Arc<str>>,
}

// === impl Lookup ===

impl Lookup {
    pub(super) fn new(schemas: Schemas) -> Self {
        Self { schemas, version: 0, sent: HashSet::new() }
    }

    /// Answers from what is registered now.
    pub(super) fn answer(&mut self, query: Option<Query<'_>>) -> Answer {
        let snapshot = self.schemas.snapshot();
        match query {
            Some(Query::File { name }) => self.files(&snapshot, Some(name), name),
            Some(Query::Symbol { symbol }) => {
                let file = file_of_symbol(&snapshot.pool, symbol.trim_start_matches('.'));
                self.files(&snapshot, file.as_ref().map(FileDescriptor::name), symbol)
            }
            Some(Query::Extension { message, number }) => {
                let extendee = snapshot.pool.get_message_by_name(message);
                let extension = extendee.and_then(|message| message.get_extension(number.try_into().ok()?));
                let file = extension.map(|extension| extension.parent_file());
                self.files(&snapshot, file.as_ref().map(FileDescriptor::name), &format!("{message} extension {number}"))
            }
            Some(Query::Extensions { message }) => extensions(&snapshot, message),
            Some(Query::Services) => Answer::Services(services(&snapshot)),
            None => Answer::Error { code: Code::InvalidArgument, message: "the request asks nothing".to_owned() },
        }
    }

    /// The file, and those of its imports that this client was not sent yet.
    fn files(&mut self, snapshot: &Snapshot, name: Option<&str>, wanted: &str) -> Answer {
        let Some(file) = name.and_then(|name| snapshot.files.get(name)) else { return not_found(wanted) };
        if self.version != snapshot.version {
            // What was sent may have been replaced.
            self.version = snapshot.version;
            self.sent.clear();
        }
        let mut files = Vec::new();
        let mut bytes = 0;
        // Our messages carry specs of the users' kinds, statuses that controllers write, and details of errors. Not every
        // tool asks for what it finds packed in an `Any`, so all of them are told what they may find.
        let may_carry = file.name.starts_with(OURS);
        let carried = snapshot.files.values().filter(|other| may_carry && (!other.built_in || is_packed(other)));
        let carried = carried.flat_map(|other| closure(&snapshot.files, other));
        for next in closure(&snapshot.files, file).into_iter().chain(carried) {
            let first = files.is_empty();
            let fits = bytes + next.bytes.len() <= MAX_ANSWER_BYTES;
            if first || (fits && !self.sent.contains(&next.name)) {
                bytes += next.bytes.len();
                files.push(next.bytes.to_vec());
                self.sent.insert(Arc::clone(&next.name));
            }
        }
        Answer::Files(files)
    }
}

/// Whether messages of a built-in file are found packed in others.
fn is_packed(file: &File) -> bool {
    file.name.starts_with("google/rpc/") || &*file.name == CONTROL
}

fn extensions(snapshot: &Snapshot, message: &str) -> Answer {
    let Some(extendee) = snapshot.pool.get_message_by_name(message) else { return not_found(message) };
    let mut numbers: Vec<i32> = extendee.extensions().filter_map(|ext| ext.number().try_into().ok()).collect();
    numbers.sort_unstable();
    Answer::Extensions { message: message.to_owned(), numbers }
}

/// The services that the bus itself serves. Those in users' files are served by somebody else.
fn services(snapshot: &Snapshot) -> Vec<String> {
    let built_in = |file: &FileDescriptor| snapshot.files.get(file.name()).is_some_and(|file| file.built_in);
    let services = snapshot.pool.services().filter(|service| built_in(&service.parent_file()));
    let mut names: Vec<String> = services.map(|service| service.full_name().to_owned()).collect();
    names.sort_unstable();
    names
}

/// The file that defines a message, enum, service or extension, or a member of one.
fn file_of_symbol(pool: &DescriptorPool, symbol: &str) -> Option<FileDescriptor> {
    let member = || symbol.rsplit_once('.').and_then(|(parent, name)| member(pool, parent, name));
    definition(pool, symbol).or_else(member).or_else(|| enum_value(pool, symbol))
}

fn definition(pool: &DescriptorPool, symbol: &str) -> Option<FileDescriptor> {
    let message = || pool.get_message_by_name(symbol).map(|message| message.parent_file());
    let enumeration = || pool.get_enum_by_name(symbol).map(|enumeration| enumeration.parent_file());
    let service = || pool.get_service_by_name(symbol).map(|service| service.parent_file());
    let extension = || pool.get_extension_by_name(symbol).map(|extension| extension.parent_file());
    message().or_else(enumeration).or_else(service).or_else(extension)
}

fn member(pool: &DescriptorPool, parent: &str, name: &str) -> Option<FileDescriptor> {
    let message = pool.get_message_by_name(parent).filter(|message| {
        message.get_field_by_name(name).is_some() || message.oneofs().any(|oneof| oneof.name() == name)
    });
    let enumeration = || pool.get_enum_by_name(parent).filter(|found| found.get_value_by_name(name).is_some());
    let service = || pool.get_service_by_name(parent).filter(|found| found.methods().any(|m| m.name() == name));
    message
        .map(|message| message.parent_file())
        .or_else(|| enumeration().map(|enumeration| enumeration.parent_file()))
        .or_else(|| service().map(|service| service.parent_file()))
}

/// The full name of an enum value is that of a sibling of its enum.
fn enum_value(pool: &DescriptorPool, symbol: &str) -> Option<FileDescriptor> {
    let (scope, name) = symbol.rsplit_once('.').unwrap_or(("", symbol));
    let is_sibling = |enumeration: &str| enumeration.rsplit_once('.').map_or("", |(scope, _)| scope) == scope;
    let mut enums = pool.all_enums().filter(|found| is_sibling(found.full_name()));
    enums
        .find(|found| found.get_value_by_name(name).is_some())
        .map(|found| found.parent_file())
}

fn not_found(wanted: &str) -> Answer {
    Answer::Error { code: Code::NotFound, message: format!("not found: {wanted}") }
}
