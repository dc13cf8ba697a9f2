//! Leases, at a server that says what a test wants to be said.

use std::{sync::Arc, time::Duration};

use ctkit::{Acquired, CommitError, Guard, Held, Leases as _, Remote};
use nimbus_wire::v1::{
    self,
    leases_server::{Leases, LeasesServer},
};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tonic::{Request, Response, Status, transport::Server};

use crate::world::Net;

/// Gives every lease to its first holder, and remembers what it was asked.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Vec<v1::Lease>>>);

#[tonic::async_trait]
impl Leases for Scripted {
    async fn acquire(&self, request: Request<v1::AcquireRequest>) -> Result<Response<v1::AcquireResponse>, Status> {
        let v1::AcquireRequest { name, holder, ttl_ms } = request.into_inner();
        let mut held = self.0.lock();
        if let Some(lease) = held.iter().find(|lease| lease.name == name) {
            let granted = lease.holder == holder;
            return Ok(Response::new(v1::AcquireResponse { granted, lease: Some(lease.clone()) }));
        }
        let lease = v1::Lease { name, holder, token: held.len() as u64 + 1, expires_in_ms: ttl_ms.into() };
        held.push(lease.clone());
        Ok(Response::new(v1::AcquireResponse { granted: true, lease: Some(lease) }))
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Result<Response<v1::RenewResponse>, Status> {
        let held = self.0.lock();
        let is_lost =
            |token: &v1::LeaseToken| !held.iter().any(|lease| lease.name == token.name && lease.token == token.token);
        let lost = request.into_inner().leases.into_iter().filter(is_lost).map(|token| token.name);
        Ok(Response::new(v1::RenewResponse { lost: lost.collect() }))
    }

    async fn release(&self, request: Request<v1::ReleaseRequest>) -> Result<Response<v1::ReleaseResponse>, Status> {
        let tokens = request.into_inner().leases;
        let gone = |lease: &v1::Lease| tokens.iter().any(|t| t.name == lease.name && t.token == lease.token);
        self.0.lock().retain(|lease| !gone(lease));
        Ok(Response::new(v1::ReleaseResponse {}))
    }

    async fn list_leases(
        &self,
        request: Request<v1::ListLeasesRequest>,
    ) -> Result<Response<v1::ListLeasesResponse>, Status> {
        let prefix = request.into_inner().prefix;
        let leases = self.0.lock().iter().filter(|lease| lease.name.starts_with(&prefix)).cloned().collect();
        Ok(Response::new(v1::ListLeasesResponse { leases }))
    }
}

fn serve() -> (Remote, Net, JoinHandle<()>) {
    let net = Net::default();
    let incoming = net.listen();
    let service = LeasesServer::new(Scripted::default());
    let serving = async move { Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap() };
    let remote = Remote::builder("http://bus").connector(net.clone()).build().unwrap();
    (remote, net, tokio::spawn(serving))
}

#[tokio::test(start_paused = true)]
async fn leases_are_taken_held_on_to_and_given_back() {
    let (remote, _net, serving) = serve();
    let ttl = Duration::from_secs(15);
    let lease = Held { name: "shard/1".into(), holder: "a".into(), token: 1, expires_in: ttl };
    assert_eq!(remote.acquire("shard/1", "a", ttl).await, Ok(Acquired { granted: true, lease: lease.clone() }));
    assert_eq!(remote.acquire("shard/1", "b", ttl).await, Ok(Acquired { granted: false, lease: lease.clone() }));
    remote.acquire("leader", "b", ttl).await.unwrap();
    assert_eq!(remote.list("shard/").await, Ok(vec![lease]));

    let guard = |name: &str, token| Guard { lease: name.into(), token };
    let held = [guard("shard/1", 1), guard("leader", 1)];
    assert_eq!(remote.renew(&held).await, Ok(vec!["leader".into()]));
    remote.release(&held).await.unwrap();
    assert_eq!(remote.list("").await.unwrap().len(), 1, "only what is the caller's own is given back");
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn whoever_cannot_reach_the_daemon_knows_nothing_of_its_leases() {
    let (remote, net, serving) = serve();
    serving.abort();
    net.close();
    net.cut();
    let guard = Guard { lease: "leader".into(), token: 1 };
    assert!(matches!(remote.renew(&[guard]).await, Err(CommitError::Unavailable(_))));
}
