//! Descriptors from the bus, so that specs are readable.

mod canonical;
mod fields;
mod packed;
mod reader;
mod secrets;
mod unknown;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;

use nimbus_wire::v1;
use prost::Message as _;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use prost_types::{Any, FileDescriptorProto};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

pub(crate) use crate::schemas::{
    canonical::encode,
    packed::{Content, kind_of},
    reader::{Reader, TYPE_PREFIX, decode_base64},
    secrets::{Kept, OTHER_SECRET, SECRET, Secrets, redact_both},
};
use crate::{client::Client, failure::Failure};

/// The descriptors that were fetched so far. What the bus does not know stays unknown, and is asked for once.
#[derive(Debug, Clone)]
pub(crate) struct Schemas {
    pool: DescriptorPool,
    asked: BTreeSet<String>,
}

// === impl Schemas ===

impl Schemas {
    /// Nothing but the messages of nimbus itself.
    pub(crate) fn new() -> Self {
        let pool = DescriptorPool::decode(v1::FILE_DESCRIPTOR_SET).expect("our own descriptors are well-formed");
        Self { pool, asked: BTreeSet::new() }
    }

    /// The messages of nimbus, and those of an encoded `FileDescriptorSet`.
    ///
    /// # Panics
    /// If it is not one.
    pub(crate) fn with(descriptor_set: &[u8]) -> Self {
        let mut schemas = Self::new();
        schemas.pool.decode_file_descriptor_set(descriptor_set).expect("a descriptor set");
        schemas
    }

    /// The descriptor of a message, if it was loaded.
    pub(crate) fn message(&self, name: &str) -> Option<MessageDescriptor> {
        self.pool.get_message_by_name(name)
    }

    /// Fetches what it takes to read these objects: their specs, statuses, and whatever is packed in those.
    pub(crate) async fn load_for(&mut self, client: &Client, objects: &[v1::Object]) -> Result<(), Failure> {
        loop {
            let packed = objects.iter().flat_map(|object| object.spec.iter().chain(&object.status));
            let mut missing = BTreeSet::new();
            packed.for_each(|any| packed::missing_types(any, &self.pool, &mut missing));
            let missing: Vec<String> = missing.difference(&self.asked).cloned().collect();
            if missing.is_empty() {
                return Ok(());
            }
            self.load(client, &missing).await?;
        }
    }

    /// Fetches messages by name.
    pub(crate) async fn load(&mut self, client: &Client, names: &[String]) -> Result<(), Failure> {
        self.asked.extend(names.iter().cloned());
        let symbols = names.iter().filter(|name| self.message(name).is_none());
        let mut questions: Vec<MessageRequest> = symbols.cloned().map(MessageRequest::FileContainingSymbol).collect();
        let mut files: Vec<FileDescriptorProto> = Vec::new();
        let mut raw: Vec<Vec<u8>> = Vec::new();
        while !questions.is_empty() {
            for bytes in ask(client, questions).await? {
                let file = FileDescriptorProto::decode(&*bytes).map_err(|error| {
                    Failure::from(format!("the bus sent a descriptor that cannot be read: {error}"))
                })?;
                if self.pool.get_file_by_name(file.name()).is_none()
                    && !files.iter().any(|other| other.name() == file.name())
                {
                    files.push(file);
                    raw.push(bytes);
                }
            }
            // Large answers come without imports that the bus had no room for.
            let known =
                |name: &str| self.pool.get_file_by_name(name).is_some() || files.iter().any(|file| file.name() == name);
            let imports: BTreeSet<&String> = files.iter().flat_map(|file| &file.dependency).collect();
            let missing = imports.into_iter().filter(|import| !known(import) && !self.asked.contains(*import));
            let missing: Vec<String> = missing.cloned().collect();
            self.asked.extend(missing.iter().cloned());
            questions = missing.into_iter().map(MessageRequest::FileByFilename).collect();
        }
        self.add(&raw)
    }

    /// Adds files as their compilers wrote them: decoding and encoding again would lose options.
    fn add(&mut self, files: &[Vec<u8>]) -> Result<(), Failure> {
        /// Tag of `FileDescriptorSet.file`.
        const FILE: u8 = 0x0a;

        let mut set = Vec::new();
        for file in files {
            set.push(FILE);
            prost::encode_length_delimiter(file.len(), &mut set).expect("a vector grows");
            set.extend_from_slice(file);
        }
        self.pool
            .decode_file_descriptor_set(&*set)
            .map_err(|error| Failure::from(format!("the descriptors of the bus do not fit together: {error}")))
    }

    /// The numbers of fields in `any` that its schema does not know, with the way to them. The JSON form lacks them.
    pub(crate) fn unknown_fields(&self, any: &Any) -> Vec<String> {
        unknown::unknown_fields(any, &self.pool)
    }

    /// What is packed in `any`, as JSON if its type is known.
    pub(crate) fn read(&self, any: &Any, secrets: Secrets) -> Content {
        packed::read(any, &self.pool, secrets)
    }
}

/// The files that answer the questions. What the bus does not know is left out.
async fn ask(client: &Client, questions: Vec<MessageRequest>) -> Result<Vec<Vec<u8>>, Failure> {
    let requests = questions
        .into_iter()
        .map(|question| ServerReflectionRequest { host: String::new(), message_request: Some(question) });
    let requests: Vec<_> = requests.collect();
    let mut reflection = client.reflection();
    let call = reflection.server_reflection_info(tokio_stream::iter(requests));
    let mut answers = client.call(call).await?;
    let mut files = Vec::new();
    while let Some(answer) = answers.message().await.map_err(|status| client.failure(status))? {
        if let Some(MessageResponse::FileDescriptorResponse(found)) = answer.message_response {
            files.extend(found.file_descriptor_proto);
        }
    }
    Ok(files)
}
