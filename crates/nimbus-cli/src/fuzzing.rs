//! The reader of manifests, for those who feed it with anything. No promise is made of what is here.

use std::rc::Rc;

use nimbus_wire::v1;

use crate::{
    input,
    intake::Intake,
    kinds::Kinds,
    manifest::Manifest,
    output,
    problems::Problems,
    schemas::{Schemas, Secrets},
};

/// What it takes to read and print manifests of some kinds.
#[derive(Debug)]
pub struct Manifests(Intake);

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Line and column, unless it is about the file as a whole; both count from one.
    pub at: Option<(usize, usize)>,
    /// What it is.
    pub message: String,
}

/// The two languages that manifests are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// As `nimbus get -o json` prints it.
    Json,
    /// As `nimbus get -o yaml` prints it.
    Yaml,
}

// === impl Manifests ===

impl Manifests {
    /// With the messages of an encoded `FileDescriptorSet`, all of which could be kinds.
    ///
    /// # Panics
    /// If it is not one.
    pub fn new(descriptor_set: &[u8], kinds: &[&str]) -> Self {
        let info = |kind: &&str| v1::KindInfo { kind: (*kind).to_owned(), ..v1::KindInfo::default() };
        let kinds = Kinds::new(kinds.iter().map(info).collect());
        Self(Intake { kinds, schemas: Schemas::with(descriptor_set) })
    }

    /// The objects in a file, or all that is wrong with it.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(&self, bytes: &[u8]) -> Result<Vec<v1::Object>, Vec<Complaint>> {
        let (mut problems, mut items) = (Problems::default(), Vec::new());
        input::read_from(&Rc::from("file"), bytes, &mut problems, &mut items);
        let drafts = self.0.drafts(&items, None, &mut problems);
        if problems.is_empty() {
            return Ok(drafts.into_iter().map(|draft| draft.object).collect());
        }
        Err(problems.into_all().map(|(at, message)| Complaint { at, message }).collect())
    }

    /// An object as people read it, with its secrets and without what only the bus says of it.
    pub fn print(&self, object: &v1::Object, language: Language) -> String {
        let json = Manifest::new(object, &self.0.schemas, Secrets::Shown).of_publisher().to_json();
        match language {
            Language::Json => format!("{json:#}"),
            Language::Yaml => output::yaml_document(&json),
        }
    }
}
