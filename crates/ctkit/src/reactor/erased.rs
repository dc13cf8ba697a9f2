//! Reactors as the engine sees them: without the type of their specs.

use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context as Poller, Poll},
};

use nimbus_core::{Failure, Kind, Object, Spec};
use nimbus_store::Record;

use crate::{
    action::Action,
    context::Context,
    reactor::Reactor,
    report::{AgentReport, Heard},
    typed::typed,
};

/// What a reactor is called with.
#[derive(Debug)]
pub(crate) enum Call {
    /// No version of it has been dealt with yet.
    Create(Arc<Record>),
    /// The version that was last dealt with, and the newest.
    Update(Arc<Record>, Arc<Record>),
    /// It is gone; the version that was last dealt with.
    Delete(Arc<Record>),
    /// Agents have said something about what was published for it.
    Status(Arc<Record>, Box<Heard>),
}

/// A call under way.
pub(crate) type Reaction = Pin<Box<dyn Future<Output = Result<Action, Failure>> + Send>>;

/// A reactor of whatever kind.
pub(crate) trait ErasedReactor: Send + Sync {
    /// The kind that it reacts to.
    fn kind(&self) -> Kind;

    /// Whether `old` and `last` must survive a restart.
    fn remembers(&self) -> bool;

    /// Begins a call.
    fn call(self: Arc<Self>, cx: Context, call: Call) -> Reaction;

    /// For calls one after the other.
    fn caller(self: Arc<Self>) -> Box<dyn Caller>;
}

/// Makes calls one after the other. Those that end at once take turns in one place; one that does not is taken out of it.
pub(crate) trait Caller: Send {
    /// Begins a call. What is left of the one before is dropped.
    fn begin(&mut self, cx: Context, call: Call);

    /// Goes on with the call.
    fn poll(&mut self, cx: &mut Poller<'_>) -> Poll<Result<Action, Failure>>;

    /// Takes the call out: somebody else goes on with it.
    fn take(&mut self) -> Reaction;
}

/// The place of a call, and how it begins.
struct Place<B, F> {
    begin: B,
    call: Option<Pin<Box<F>>>,
}

/// A reactor without the type of its specs.
pub(crate) struct Erased<K, R> {
    reactor: R,
    kind: PhantomData<fn(K)>,
}

// === impl Erased ===

impl<K: Spec, R: Reactor<K>> Erased<K, R> {
    pub(crate) fn new(reactor: R) -> Self {
        Self { reactor, kind: PhantomData }
    }

    async fn run(&self, cx: &Context, call: Call) -> Result<Action, Failure> {
        match call {
            Call::Create(object) => self.reactor.on_create(cx, read(&object)?).await,
            Call::Update(old, new) => {
                let new = read(&new)?;
                // A version that could be read once can be read again, unless the program is another one by now.
                match read(&old) {
                    Ok(old) => self.reactor.on_update(cx, old, new).await,
                    Err(_) => self.reactor.on_create(cx, new).await,
                }
            }
            Call::Delete(last) => self.reactor.on_delete(cx, read(&last)?).await,
            Call::Status(object, heard) => {
                let report = AgentReport::new(read(&object)?, *heard);
                self.reactor.on_agent_status(cx, report).await
            }
        }
    }
}

impl<K: Spec, R: Reactor<K>> ErasedReactor for Erased<K, R> {
    fn kind(&self) -> Kind {
        K::kind()
    }

    fn remembers(&self) -> bool {
        self.reactor.remembers()
    }

    fn call(self: Arc<Self>, cx: Context, call: Call) -> Reaction {
        Box::pin(async move { self.run(&cx, call).await })
    }

    fn caller(self: Arc<Self>) -> Box<dyn Caller> {
        let begin = move |cx: Context, call: Call| {
            let reactor = self.clone();
            async move { reactor.run(&cx, call).await }
        };
        Box::new(Place { begin, call: None })
    }
}

// === impl Place ===

impl<B, F> Caller for Place<B, F>
where
    B: Fn(Context, Call) -> F + Send,
    F: Future<Output = Result<Action, Failure>> + Send + 'static,
{
    fn begin(&mut self, cx: Context, call: Call) {
        let next = (self.begin)(cx, call);
        match &mut self.call {
            Some(call) => call.set(next),
            None => self.call = Some(Box::pin(next)),
        }
    }

    fn poll(&mut self, cx: &mut Poller<'_>) -> Poll<Result<Action, Failure>> {
        self.call.as_mut().expect("a call has begun").as_mut().poll(cx)
    }

    fn take(&mut self) -> Reaction {
        self.call.take().expect("a call has begun")
    }
}

/// Only an edit can cure an object that is not what its kind says.
fn read<K: Spec>(record: &Record) -> Result<Arc<Object<K>>, Failure> {
    typed(record)
        .map(Arc::new)
        .map_err(|error| Failure::from(error).with_code("UNREADABLE").permanent())
}
