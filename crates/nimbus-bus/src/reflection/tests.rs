//! Reflection over a real server on loopback, with the clients that tonic generates.

use std::{future::Future, net::SocketAddr};

use prost::Message as _;
use prost_types::FileDescriptorProto;
use tokio::{net::TcpListener, sync::oneshot};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Code,
    transport::{Channel, Endpoint, Server},
};
use tonic_reflection::pb::{v1, v1alpha};

use crate::{
    reflection::{
        lookup::{Answer, Lookup, Query},
        services,
    },
    schemas::{
        Schemas,
        tests::{COMMON, POLICY, bytes_of, compile},
    },
};

const EXTENDED: (&str, &str) = (
    "demo/v1/extended.proto",
    r#"syntax = "proto2";
    package demo.v1;
    import "google/protobuf/descriptor.proto";
    extend google.protobuf.FieldOptions { optional string unit = 50001; }
    message Open { optional int32 rate = 1 [(unit) = "1/s"]; extensions 100 to 200; }
    message Scope { extend Open { optional string note = 150; } oneof either { int32 a = 1; int32 b = 2; } }
    extend Open { optional string remark = 120; }
    service Elsewhere { rpc Call(Open) returns (Open); }"#,
);

/// Names of the files in an answer.
#[track_caller]
fn names(answer: &Answer) -> Vec<String> {
    let Answer::Files(files) = answer else { panic!("not files: {answer:?}") };
    files
        .iter()
        .map(|file| FileDescriptorProto::decode(file.as_slice()).unwrap().name().to_owned())
        .collect()
}

#[track_caller]
fn first_name(schemas: &Schemas, query: Query<'_>) -> String {
    names(&Lookup::new(schemas.clone()).answer(Some(query))).swap_remove(0)
}

fn registered() -> Schemas {
    let schemas = Schemas::default();
    schemas.register(&compile(&[POLICY, COMMON, EXTENDED]), &[]).unwrap();
    schemas
}

#[test]
fn every_sort_of_symbol_is_found() {
    let schemas = registered();
    for (symbol, file) in [
        ("nimbus.v1.Bus", "nimbus/v1/bus.proto"),
        ("nimbus.v1.Bus.Subscribe", "nimbus/v1/bus.proto"),
        ("nimbus.v1.Publisher", "nimbus/v1/publisher.proto"),
        ("nimbus.v1.Fleet.Explain", "nimbus/v1/fleet.proto"),
        ("nimbus.v1.Object", "nimbus/v1/object.proto"),
        ("grpc.health.v1.Health", "grpc/health/v1/health.proto"),
        ("grpc.reflection.v1.ServerReflection", "grpc/reflection/v1/reflection.proto"),
        ("grpc.reflection.v1alpha.ServerReflection", "grpc/reflection/v1alpha/reflection.proto"),
        ("google.rpc.BadRequest.FieldViolation", "google/rpc/error_details.proto"),
        ("google.protobuf.Any", "google/protobuf/any.proto"),
        ("demo.v1.NetworkPolicy", "demo/v1/policy.proto"),
        (".demo.v1.NetworkPolicy", "demo/v1/policy.proto"),
        ("demo.v1.NetworkPolicy.Rule", "demo/v1/policy.proto"),
        ("demo.v1.NetworkPolicy.zone", "demo/v1/policy.proto"),
        ("demo.v1.NetworkPolicy.Rule.port", "demo/v1/policy.proto"),
        ("demo.v1.Tier", "demo/v1/common.proto"),
        ("demo.v1.TIER_WEB", "demo/v1/common.proto"),
        ("demo.v1.Tier.TIER_WEB", "demo/v1/common.proto"),
        ("demo.v1.unit", "demo/v1/extended.proto"),
        ("demo.v1.Scope.note", "demo/v1/extended.proto"),
        ("demo.v1.Scope.either", "demo/v1/extended.proto"),
        ("demo.v1.Elsewhere.Call", "demo/v1/extended.proto"),
    ] {
        assert_eq!(first_name(&schemas, Query::Symbol { symbol }), file, "{symbol}");
    }
    for symbol in ["", ".", "demo", "demo.v1", "demo.v1.Nothing", "demo.v1.NetworkPolicy.nothing", "zone", "TIER_WEB"] {
        let answer = Lookup::new(schemas.clone()).answer(Some(Query::Symbol { symbol }));
        assert!(matches!(answer, Answer::Error { code: Code::NotFound, .. }), "{symbol}: {answer:?}");
    }
}

#[test]
fn extensions_are_found_by_number() {
    let schemas = registered();
    let ask = |query| Lookup::new(schemas.clone()).answer(Some(query));
    let message = "demo.v1.Open";
    for number in [120, 150] {
        assert_eq!(first_name(&schemas, Query::Extension { message, number }), "demo/v1/extended.proto");
    }
    let message_of_options = "google.protobuf.FieldOptions";
    let unit = Query::Extension { message: message_of_options, number: 50001 };
    assert_eq!(first_name(&schemas, unit), "demo/v1/extended.proto");
    assert_eq!(
        ask(Query::Extensions { message }),
        Answer::Extensions { message: message.into(), numbers: vec![120, 150] }
    );
    let none = Answer::Extensions { message: "nimbus.v1.Object".into(), numbers: vec![] };
    assert_eq!(ask(Query::Extensions { message: "nimbus.v1.Object" }), none);
    for query in [
        Query::Extension { message, number: 121 },
        Query::Extension { message, number: -1 },
        Query::Extension { message: "demo.v1.Nothing", number: 1 },
        Query::Extensions { message: "demo.v1.Nothing" },
    ] {
        let answer = ask(query);
        assert!(matches!(answer, Answer::Error { code: Code::NotFound, .. }), "{answer:?}");
    }
}

#[test]
fn our_files_bring_along_what_their_messages_may_carry() {
    // Tools such as grpcurl-rs ask for a method once, and then must be able to read any spec and error in the answers.
    let mut lookup = Lookup::new(registered());
    let answer = lookup.answer(Some(Query::Symbol { symbol: "nimbus.v1.Bus" }));
    let names = names(&answer);
    // An object with a status that the controller kit had written could not be shown.
    let statuses = "nimbus/v1/control.proto";
    for carried in ["demo/v1/policy.proto", "demo/v1/common.proto", "google/rpc/error_details.proto", statuses] {
        assert!(names.iter().any(|name| name == carried), "{carried} is not in {names:?}");
    }
    let policy = Lookup::new(registered()).answer(Some(Query::Symbol { symbol: "demo.v1.NetworkPolicy" }));
    assert!(self::names(&policy).iter().all(|name| !name.starts_with("google/rpc/")));
}

#[test]
fn imports_come_along_once_per_conversation() {
    let schemas = registered();
    let mut lookup = Lookup::new(schemas.clone());
    let policy = Some(Query::Symbol { symbol: "demo.v1.NetworkPolicy" });
    let all = ["demo/v1/policy.proto", "demo/v1/common.proto", "google/protobuf/duration.proto"];
    assert_eq!(names(&lookup.answer(policy)), all);
    // What is asked for is always sent, what comes along is not sent again.
    assert_eq!(names(&lookup.answer(policy)), all[..1]);
    assert_eq!(names(&lookup.answer(Some(Query::File { name: all[1] }))), all[1..2]);

    // After a registration the client may hold an older version of anything.
    let next = COMMON.1.replace("TIER_WEB = 1;", "TIER_WEB = 1; TIER_API = 2;");
    let next = compile(&[(COMMON.0, &next)]);
    schemas.register(&next, &[]).unwrap();
    let answer = lookup.answer(policy);
    assert_eq!(names(&answer), all);
    let Answer::Files(files) = answer else { unreachable!() };
    assert_eq!(files[1], bytes_of(&next, COMMON.0));
}

#[test]
fn an_answer_stays_below_the_limits_of_clients() {
    // Four imports of 700 KB each: two come along, and the client asks for the others.
    let import = |n: usize| {
        format!(
            "syntax = \"proto3\"; package p{n}; message M {{ string x = 1 [json_name = \"{}\"]; }}",
            "x".repeat(700_000)
        )
    };
    let imports: Vec<_> = (0..4).map(|n| (format!("{n}.proto"), import(n))).collect();
    let root = "syntax = \"proto3\"; package root;
        import \"0.proto\"; import \"1.proto\"; import \"2.proto\"; import \"3.proto\";
        message Root { p0.M a = 1; p1.M b = 2; p2.M c = 3; p3.M d = 4; }";
    let mut files = vec![("root.proto", root)];
    files.extend(imports.iter().map(|(name, source)| (name.as_str(), source.as_str())));
    let schemas = Schemas::default();
    schemas.register(&compile(&files), &[]).unwrap();

    let mut lookup = Lookup::new(schemas);
    assert_eq!(names(&lookup.answer(Some(Query::File { name: "root.proto" }))), ["root.proto", "0.proto", "1.proto"]);
    assert_eq!(names(&lookup.answer(Some(Query::File { name: "2.proto" }))), ["2.proto"]);
}

/// Runs `test` against a server that serves nothing but reflection.
async fn serve<F: Future<Output = ()>>(schemas: Schemas, test: impl FnOnce(SocketAddr) -> F) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (new, old) = services(schemas);
    let server = Server::builder().add_service(new).add_service(old);
    let server = server.serve_with_incoming_shutdown(TcpListenerStream::new(listener), async { drop(stopped.await) });
    let server = tokio::spawn(server);
    test(address).await;
    drop(stop);
    server.await.unwrap().unwrap();
}

async fn connect(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// Answers of a real server to these requests, in one conversation with the client of one version.
macro_rules! converse {
    ($version:ident, $address:expr, $requests:expr) => {{
        use $version::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_response::MessageResponse,
        };
        let requests: Vec<_> = $requests
            .into_iter()
            .map(|request| ServerReflectionRequest { host: "h".into(), message_request: request })
            .collect();
        let mut client = ServerReflectionClient::new(connect($address).await);
        let mut stream = client
            .server_reflection_info(tokio_stream::iter(requests.clone()))
            .await
            .unwrap()
            .into_inner();
        let mut answers = Vec::new();
        while let Some(response) = stream.message().await.unwrap() {
            assert_eq!(response.valid_host, "h");
            assert_eq!(response.original_request.as_ref(), requests.get(answers.len()));
            answers.push(match response.message_response.unwrap() {
                MessageResponse::FileDescriptorResponse(files) => Answer::Files(files.file_descriptor_proto),
                MessageResponse::AllExtensionNumbersResponse(all) => {
                    Answer::Extensions { message: all.base_type_name, numbers: all.extension_number }
                }
                MessageResponse::ListServicesResponse(list) => {
                    Answer::Services(list.service.into_iter().map(|service| service.name).collect())
                }
                MessageResponse::ErrorResponse(error) => {
                    Answer::Error { code: error.error_code.into(), message: error.error_message }
                }
            });
        }
        assert_eq!(answers.len(), requests.len());
        answers
    }};
}

macro_rules! a_whole_conversation {
    ($version:ident) => {{
        use $version::{ExtensionRequest, server_reflection_request::MessageRequest};
        let schemas = Schemas::default();
        let set = compile(&[POLICY, COMMON, EXTENDED]);
        serve(schemas.clone(), |address| async move {
            let policy = || Some(MessageRequest::FileContainingSymbol("demo.v1.NetworkPolicy".into()));
            let not_found =
                |wanted: &str| Answer::Error { code: Code::NotFound, message: format!("not found: {wanted}") };
            let answers = converse!($version, address, [policy()]);
            assert_eq!(answers, [not_found("demo.v1.NetworkPolicy")]);

            // Registered while the server runs.
            schemas.register(&set, &[]).unwrap();
            let answers = converse!(
                $version,
                address,
                [
                    policy(),
                    Some(MessageRequest::ListServices(String::new())),
                    Some(MessageRequest::FileByFilename("demo/v1/extended.proto".into())),
                    Some(MessageRequest::FileByFilename("demo/v1/nothing.proto".into())),
                    Some(MessageRequest::FileContainingExtension(ExtensionRequest {
                        containing_type: "demo.v1.Open".into(),
                        extension_number: 120,
                    })),
                    Some(MessageRequest::AllExtensionNumbersOfType("demo.v1.Open".into())),
                    None,
                    Some(MessageRequest::FileContainingSymbol("nimbus.v1.Bus".into())),
                ]
            );
            let bytes = |name| bytes_of(&set, name);
            let duration = schemas.snapshot().files["google/protobuf/duration.proto"].bytes.to_vec();
            assert_eq!(answers[0], Answer::Files(vec![bytes(POLICY.0), bytes(COMMON.0), duration]));
            let services = [
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
                "nimbus.v1.Bus",
                "nimbus.v1.Fleet",
                "nimbus.v1.Leases",
                "nimbus.v1.Publisher",
            ];
            let Answer::Services(listed) = &answers[1] else { panic!("{:?}", answers[1]) };
            for service in services {
                assert!(listed.iter().any(|name| name == service), "{service} is not in {listed:?}");
            }
            assert!(listed.iter().all(|name| !name.starts_with("demo.")), "others serve these: {listed:?}");
            assert_eq!(names(&answers[2]), ["demo/v1/extended.proto", "google/protobuf/descriptor.proto"]);
            assert_eq!(answers[3], not_found("demo/v1/nothing.proto"));
            assert_eq!(answers[4], Answer::Files(vec![bytes(EXTENDED.0)]), "with its custom options");
            assert_eq!(answers[5], Answer::Extensions { message: "demo.v1.Open".into(), numbers: vec![120, 150] });
            assert!(matches!(answers[6], Answer::Error { code: Code::InvalidArgument, .. }));
            let bus = ["nimbus/v1/bus.proto", "google/protobuf/any.proto", "nimbus/v1/object.proto"];
            assert_eq!(names(&answers[7])[..3], bus);
        })
        .await;
    }};
}

#[tokio::test]
async fn the_v1_service_answers_from_what_is_registered() {
    a_whole_conversation!(v1);
}

#[tokio::test]
async fn the_v1alpha_service_answers_from_what_is_registered() {
    a_whole_conversation!(v1alpha);
}

#[tokio::test]
async fn a_long_request_is_refused() {
    serve(Schemas::default(), |address| async move {
        let mut client = v1::server_reflection_client::ServerReflectionClient::new(connect(address).await);
        let request = v1::server_reflection_request::MessageRequest::FileContainingSymbol("x".repeat(1 << 20));
        let request = v1::ServerReflectionRequest { host: String::new(), message_request: Some(request) };
        let status = match client.server_reflection_info(tokio_stream::once(request)).await {
            Ok(answers) => answers.into_inner().message().await.unwrap_err(),
            Err(status) => status,
        };
        assert_eq!(status.code(), Code::OutOfRange);
    })
    .await;
}
