//! Reactors made of closures.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use nimbus_core::{Failure, Object};

use crate::{action::Action, context::Context, reactor::Reactor, report::AgentReport};

/// A reactor made of closures; see [`functions`].
pub struct Functions<K> {
    apply: Option<OnObject<K>>,
    create: Option<OnObject<K>>,
    update: Option<OnUpdate<K>>,
    delete: Option<OnObject<K>>,
    agent_status: Option<OnReport<K>>,
}

type Reaction = Pin<Box<dyn Future<Output = Result<Action, Failure>> + Send>>;
type OnObject<K> = Box<dyn Fn(Context, Arc<Object<K>>) -> Reaction + Send + Sync>;
type OnUpdate<K> = Box<dyn Fn(Context, Arc<Object<K>>, Arc<Object<K>>) -> Reaction + Send + Sync>;
type OnReport<K> = Box<dyn Fn(Context, AgentReport<K>) -> Reaction + Send + Sync>;

/// Makes a reactor of closures, those that are needed.
///
/// ```
/// # use ctkit::{functions, Action, Reactor};
/// # #[derive(Clone, PartialEq, prost::Message)]
/// # struct Policy { #[prost(string, tag = "1")] text: String }
/// # impl prost::Name for Policy { const NAME: &'static str = "Policy"; const PACKAGE: &'static str = "demo.v1"; }
/// # fn check(_: impl Reactor<Policy>) {}
/// # check(
/// functions::<Policy>()
///     .on_apply(|_, policy| async move { println!("{}", policy.spec.text); Ok(Action::done()) })
///     .on_delete(|_, last| async move { println!("{} is gone", last.name()); Ok(Action::done()) })
/// # );
/// ```
pub fn functions<K>() -> Functions<K> {
    Functions { apply: None, create: None, update: None, delete: None, agent_status: None }
}

// === impl Functions ===

impl<K> Functions<K> {
    /// As [`Reactor::on_apply`].
    #[must_use]
    pub fn on_apply<F, R>(self, function: F) -> Self
    where
        F: Fn(Context, Arc<Object<K>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Failure>> + Send + 'static,
    {
        Self { apply: Some(Box::new(move |cx, object| Box::pin(function(cx, object)))), ..self }
    }

    /// As [`Reactor::on_create`].
    #[must_use]
    pub fn on_create<F, R>(self, function: F) -> Self
    where
        F: Fn(Context, Arc<Object<K>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Failure>> + Send + 'static,
    {
        Self { create: Some(Box::new(move |cx, object| Box::pin(function(cx, object)))), ..self }
    }

    /// As [`Reactor::on_update`].
    #[must_use]
    pub fn on_update<F, R>(self, function: F) -> Self
    where
        F: Fn(Context, Arc<Object<K>>, Arc<Object<K>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Failure>> + Send + 'static,
    {
        Self { update: Some(Box::new(move |cx, old, new| Box::pin(function(cx, old, new)))), ..self }
    }

    /// As [`Reactor::on_delete`].
    #[must_use]
    pub fn on_delete<F, R>(self, function: F) -> Self
    where
        F: Fn(Context, Arc<Object<K>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Failure>> + Send + 'static,
    {
        Self { delete: Some(Box::new(move |cx, last| Box::pin(function(cx, last)))), ..self }
    }

    /// As [`Reactor::on_agent_status`].
    #[must_use]
    pub fn on_agent_status<F, R>(self, function: F) -> Self
    where
        F: Fn(Context, AgentReport<K>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, Failure>> + Send + 'static,
    {
        Self { agent_status: Some(Box::new(move |cx, report| Box::pin(function(cx, report)))), ..self }
    }
}

impl<K: Send + Sync + 'static> Reactor<K> for Functions<K> {
    async fn on_apply(&self, cx: &Context, object: Arc<Object<K>>) -> Result<Action, Failure> {
        match &self.apply {
            Some(function) => function(cx.clone(), object).await,
            None => Ok(Action::ignored()),
        }
    }

    async fn on_create(&self, cx: &Context, object: Arc<Object<K>>) -> Result<Action, Failure> {
        match &self.create {
            Some(function) => function(cx.clone(), object).await,
            None => self.on_apply(cx, object).await,
        }
    }

    async fn on_update(&self, cx: &Context, old: Arc<Object<K>>, new: Arc<Object<K>>) -> Result<Action, Failure> {
        match &self.update {
            Some(function) => function(cx.clone(), old, new).await,
            None => self.on_apply(cx, new).await,
        }
    }

    async fn on_delete(&self, cx: &Context, last: Arc<Object<K>>) -> Result<Action, Failure> {
        match &self.delete {
            Some(function) => function(cx.clone(), last).await,
            None => Ok(Action::done()),
        }
    }

    async fn on_agent_status(&self, cx: &Context, report: AgentReport<K>) -> Result<Action, Failure> {
        match &self.agent_status {
            Some(function) => function(cx.clone(), report).await,
            None => Ok(Action::ignored()),
        }
    }

    /// Only closures that are told of older versions need to be told after a restart.
    fn remembers(&self) -> bool {
        self.create.is_some() || self.update.is_some() || self.delete.is_some()
    }
}

impl<K> fmt::Debug for Functions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}
