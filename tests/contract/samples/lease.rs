//! Samples of `lease.proto`.

use nimbus_wire::v1::{
    AcquireRequest, AcquireResponse, Lease, LeaseToken, ListLeasesRequest, ListLeasesResponse, ReleaseRequest,
    ReleaseResponse, RenewRequest, RenewResponse,
};

use crate::{golden::Case, samples::strings};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::whole(lease_token()),
        Case::whole(AcquireRequest { name: "policies.leader".into(), holder: "policies-7".into(), ttl_ms: 15_000 }),
        Case::whole(AcquireResponse { granted: true, lease: Some(lease()) }),
        Case::whole(lease()),
        Case::whole(RenewRequest { leases: vec![lease_token()] }),
        Case::whole(RenewResponse { lost: strings(["policies.shard-3"]) }),
        Case::whole(ReleaseRequest { leases: vec![lease_token()] }),
        Case::whole(ReleaseResponse {}),
        Case::whole(ListLeasesRequest { prefix: "policies.".into() }),
        Case::whole(ListLeasesResponse { leases: vec![lease()] }),
    ]
}

pub(super) fn lease_token() -> LeaseToken {
    LeaseToken { name: "policies.leader".into(), token: 300 }
}

fn lease() -> Lease {
    Lease { name: "policies.leader".into(), holder: "policies-7".into(), token: 300, expires_in_ms: 14_500 }
}
