//! Server reflection, v1 and v1alpha, over whatever kinds are registered at the moment.
//!
//! Tonic's own service answers from a fixed set of files. This one asks [`Schemas`] each time, so that generic tools
//! print the users' specs as soon as their kinds are registered.

mod lookup;

#[cfg(test)]
mod tests;

use std::pin::Pin;

use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::pb::{
    v1::{self, server_reflection_server::ServerReflectionServer as ServerV1},
    v1alpha::{self, server_reflection_server::ServerReflectionServer as ServerV1Alpha},
};

use crate::{
    reflection::lookup::{Answer, Lookup, Query},
    schemas::Schemas,
};

/// A request is a name, and is sent back with the answer: no need for tonic's default of 4 MiB.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// The service behind both versions of the protocol, which differ in the names of their messages only.
#[derive(Debug, Clone)]
pub(crate) struct Reflection {
    schemas: Schemas,
}

/// The service for servers, in both versions of the protocol: some clients know only the older one.
pub(crate) fn services(schemas: Schemas) -> (ServerV1<Reflection>, ServerV1Alpha<Reflection>) {
    let reflection = Reflection { schemas };
    (
        ServerV1::new(reflection.clone()).max_decoding_message_size(MAX_REQUEST_BYTES),
        ServerV1Alpha::new(reflection).max_decoding_message_size(MAX_REQUEST_BYTES),
    )
}

/// Implements the service for one version of the protocol.
macro_rules! serve {
    ($version:ident) => {
        #[tonic::async_trait]
        impl $version::server_reflection_server::ServerReflection for Reflection {
            type ServerReflectionInfoStream =
                Pin<Box<dyn Stream<Item = Result<$version::ServerReflectionResponse, Status>> + Send>>;

            async fn server_reflection_info(
                &self,
                requests: Request<Streaming<$version::ServerReflectionRequest>>,
            ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                let mut lookup = Lookup::new(self.schemas.clone());
                // A request is read when the answer before it was taken, so nothing can pile up here.
                let answers = requests.into_inner().map(move |request| {
                    let request = request?;
                    let answer = lookup.answer(request.message_request.as_ref().map(Query::from));
                    Ok($version::ServerReflectionResponse {
                        valid_host: request.host.clone(),
                        original_request: Some(request),
                        message_response: Some(answer.into()),
                    })
                });
                Ok(Response::new(Box::pin(answers)))
            }
        }

        impl<'a> From<&'a $version::server_reflection_request::MessageRequest> for Query<'a> {
            fn from(request: &'a $version::server_reflection_request::MessageRequest) -> Self {
                use $version::server_reflection_request::MessageRequest;
                match request {
                    MessageRequest::FileByFilename(name) => Self::File { name },
                    MessageRequest::FileContainingSymbol(symbol) => Self::Symbol { symbol },
                    MessageRequest::FileContainingExtension(extension) => {
                        Self::Extension { message: &extension.containing_type, number: extension.extension_number }
                    }
                    MessageRequest::AllExtensionNumbersOfType(message) => Self::Extensions { message },
                    MessageRequest::ListServices(_) => Self::Services,
                }
            }
        }

        impl From<Answer> for $version::server_reflection_response::MessageResponse {
            fn from(answer: Answer) -> Self {
                match answer {
                    Answer::Files(file_descriptor_proto) => {
                        Self::FileDescriptorResponse($version::FileDescriptorResponse { file_descriptor_proto })
                    }
                    Answer::Extensions { message, numbers } => {
                        Self::AllExtensionNumbersResponse($version::ExtensionNumberResponse {
                            base_type_name: message,
                            extension_number: numbers,
                        })
                    }
                    Answer::Services(names) => Self::ListServicesResponse($version::ListServiceResponse {
                        service: names.into_iter().map(|name| $version::ServiceResponse { name }).collect(),
                    }),
                    Answer::Error { code, message } => {
                        Self::ErrorResponse($version::ErrorResponse { error_code: code.into(), error_message: message })
                    }
                }
            }
        }
    };
}

serve!(v1);
serve!(v1alpha);
