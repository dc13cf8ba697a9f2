//! A report on its way.

use std::time::Duration;

use nimbus_client::Channel;
use nimbus_wire::v1::{self, bus_client::BusClient};
use tokio::time::timeout;
use tonic::Status;

use crate::kinds::BoxFuture;

/// A report on its way, or none. There is one at a time: what happens meanwhile goes into the next.
#[derive(Default)]
pub(crate) struct Call(Option<BoxFuture<Result<v1::ReportResponse, Status>>>);

/// A report that takes longer is given up.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

// === impl Call ===

impl Call {
    /// Sends a report.
    pub(crate) fn begin(&mut self, mut client: BusClient<Channel>, report: v1::ReportRequest) {
        self.0 = Some(Box::pin(async move {
            match timeout(REPORT_TIMEOUT, client.report_once(report)).await {
                Ok(answer) => answer.map(tonic::Response::into_inner),
                Err(_) => Err(Status::deadline_exceeded("the report was not answered")),
            }
        }));
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// Forgets the report under way; nobody knows whether it arrives.
    pub(crate) fn give_up(&mut self) {
        self.0 = None;
    }

    /// The answer to the report under way; never, if there is none.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped.
    pub(crate) async fn answer(&mut self) -> Result<v1::ReportResponse, Status> {
        let Some(call) = &mut self.0 else { return std::future::pending().await };
        let answer = call.await;
        self.0 = None;
        answer
    }
}
