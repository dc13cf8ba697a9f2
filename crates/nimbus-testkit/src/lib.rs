//! Controllers and agents in one test: real code, a network of memory, a clock that waits for nobody.
//!
//! A [`World`] has an API that users write into, a bus, and whatever controllers and agents are added to it. A controller
//! is tested by what it publishes, and by what it says of its objects:
//!
//! ```
//! # use std::sync::Arc;
//! # use ctkit::{Action, Context, Controller, Draft, Failure, Object, Reactor};
//! # use nimbus_testkit::World;
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Policy { #[prost(string, repeated, tag = "1")] zones: Vec<String> }
//! # impl prost::Name for Policy { const NAME: &'static str = "Policy"; const PACKAGE: &'static str = "demo.v1"; }
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Rules { #[prost(string, tag = "1")] zone: String }
//! # impl prost::Name for Rules { const NAME: &'static str = "Rules"; const PACKAGE: &'static str = "demo.v1"; }
//! struct Policies;
//!
//! impl Reactor<Policy> for Policies {
//!     async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
//!         for zone in &policy.spec.zones {
//!             cx.publish(Object::derived(&policy, zone, Rules { zone: zone.clone() }).for_label("zone", zone)).await?;
//!         }
//!         Ok(Action::done())
//!     }
//! }
//!
//! # /*
//! #[tokio::test]
//! async fn a_policy_becomes_rules_for_each_of_its_zones() {
//! # */
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//!     let mut world = World::new();
//!     world.controller(|| Controller::new(Policies).publishes::<Rules>());
//!     let web = world.apply(Draft::new("web", Policy { zones: vec!["a".into(), "b".into()] })).await;
//!     world.settled().await;
//!     let zones: Vec<_> = world.published::<Rules>().into_iter().map(|rules| rules.spec.zone).collect();
//!     assert_eq!(zones, ["a", "b"]);
//!     assert!(world.ready(&web).unwrap().is_ready);
//! }
//! ```
//!
//! The handlers of an agent are tested by what they make of it. Agents that answer as they are told stand for the rest of
//! the fleet:
//!
//! ```
//! # use std::sync::Arc;
//! # use ctkit::{functions, Action, Controller, Draft};
//! # use nimbus_agent::{Context, Failure, Handler, Object, Status};
//! # use nimbus_testkit::World;
//! # use parking_lot::Mutex;
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Policy { #[prost(string, tag = "1")] text: String }
//! # impl prost::Name for Policy { const NAME: &'static str = "Policy"; const PACKAGE: &'static str = "demo.v1"; }
//! # #[derive(Clone, PartialEq, prost::Message)]
//! # struct Rules { #[prost(string, tag = "1")] text: String }
//! # impl prost::Name for Rules { const NAME: &'static str = "Rules"; const PACKAGE: &'static str = "demo.v1"; }
//! #[derive(Default)]
//! struct Switch(Mutex<Vec<String>>);
//!
//! impl Handler<Rules> for Switch {
//!     async fn apply(&self, _: &Context, rules: Arc<Object<Rules>>) -> Result<Status, Failure> {
//!         self.0.lock().push(rules.spec.text.clone());
//!         Ok(Status::applied())
//!     }
//!
//!     async fn remove(&self, _: &Context, rules: Arc<Object<Rules>>) -> Result<(), Failure> {
//!         self.0.lock().retain(|text| *text != rules.spec.text);
//!         Ok(())
//!     }
//! }
//!
//! # fn policies() -> Controller {
//! #     Controller::new(functions::<Policy>().on_apply(async |cx, policy| {
//! #         cx.publish(Object::derived(&policy, "rules", Rules { text: policy.spec.text.clone() })).await?;
//! #         Ok(Action::done())
//! #     })).publishes::<Rules>()
//! # }
//! # /*
//! #[tokio::test]
//! async fn a_policy_reaches_every_switch_that_works() {
//! # */
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//!     let mut world = World::new();
//!     world.controller(policies);
//!     let switch = Arc::new(Switch::default());
//!     world.agent("switch-1").handle(switch.clone()).start();
//!     let broken = world.scripted("switch-2").takes::<Rules>().start();
//!     broken.fails_everything(Failure::new("no room left").with_code("FULL"));
//!
//!     let web = world.apply(Draft::new("web", Policy { text: "allow 443".into() })).await;
//!     world.settled().await;
//!     assert_eq!(*switch.0.lock(), ["allow 443"]);
//!     let failures = world.propagation(&web).await.failures;
//!     assert_eq!((&*failures[0].agent, &*failures[0].code), ("switch-2", "FULL"));
//!
//!     broken.applies_everything();
//!     world.restart_bus();
//!     world.until_applied(&web).await;
//! }
//! ```
//!
//! What may happen, and how a test makes it happen:
//!
//! | | |
//! |---|---|
//! | a user writes | [`World::apply`], [`World::delete`] |
//! | time passes | [`World::advance`], [`World::settled`], [`World::until`], [`World::until_applied`] |
//! | a process is restarted, or killed | [`World::restart_controllers`], [`World::crash_controllers`], [`World::restart_bus`], [`Agent::stop`], [`Agent::crash`], [`Agent::start`] |
//! | the network fails | [`Link::cut`], [`Link::freeze`], [`Link::heal`] of [`World::link`] and [`Agent::link`] |
//! | the API or the bus refuses, is slow, or loses an answer | [`Faults`] of [`World::source`] and [`World::target`] |
//! | a machine fails | [`Scripted`] |
//!
//! A test that has a seed replays everything that a world decides, such as the jitter of backoffs. In which order tasks run
//! that could all run is up to the runtime, and mostly the same.

mod agent;
mod clock;
mod faulty;
mod link;
mod proxy;
mod scripted;
mod world;

pub use agent::{Agent, AgentSetup};
pub use faulty::{Faults, Faulty};
pub use link::Link;
pub use proxy::{Cut, Line, Proxy, Toward, Traffic};
pub use scripted::{Scripted, ScriptedSetup};
pub use world::{Ready, World, key};
