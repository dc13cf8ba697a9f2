//! The bus loses its memory while agents hold state (scenario 15).

use std::{collections::BTreeMap, sync::Arc};

use ctkit::{Action, Context, Controller, Failure, Manager, ManagerBuilder, Object, Reactor, Store};

use crate::{
    kinds::{Policy, Rules},
    life::Life,
    lives::machines::{Machine, Machines},
    net::Daemon,
    world::{delete, put, quiet, rules, texts},
};

/// Publishes a text to each zone of a policy, and counts in what it publishes what others refer to.
struct Zones {
    remembers: bool,
}

impl Reactor<Policy> for Zones {
    async fn on_apply(&self, cx: &Context, policy: Arc<Object<Policy>>) -> Result<Action, Failure> {
        // The text may come from somewhere else: then it changes though this object does not.
        let text = match policy.spec.text.strip_prefix("as ") {
            Some(other) => cx
                .get::<Policy>(&crate::world::key::<Policy>(other))
                .await?
                .map(|other| other.spec.text.clone()),
            None => Some(policy.spec.text.clone()),
        };
        for zone in &policy.spec.zones {
            let rules = Rules { zone: format!("{}@{zone}", policy.name()), text: text.clone().unwrap_or_default() };
            cx.publish(Object::derived(&policy, zone, rules).for_label("zone", zone)).await?;
        }
        Ok(Action::done())
    }

    fn remembers(&self) -> bool {
        self.remembers
    }
}

fn manager(source: &Store, daemon: &Daemon, remembers: bool) -> ManagerBuilder<Store> {
    Manager::between(source.clone(), daemon.remote())
        .controller(Controller::new(Zones { remembers }).named("policies").publishes::<Rules>())
        .seed(7)
}

/// A few dozen agents in three zones.
fn fleet(machines: &Machines, daemon: &Daemon) -> Vec<Machine> {
    let agent = |n: usize| machines.run(&daemon.net, &format!("m{n}"), ["a", "b", "c"][n % 3]);
    (0..36).map(agent).collect()
}

/// Generations, by name.
fn generations(store: &Store) -> BTreeMap<String, u64> {
    rules(store)
        .into_iter()
        .map(|rules| (rules.name().to_owned(), rules.meta.generation.0))
        .collect()
}

/// Agents of a bus that was restarted and was still being filled removed what it did not have yet, and put it back a moment
/// later; and then all of them were sent everything again (B01, B11, H24).
#[tokio::test(start_paused = true)]
async fn a_restarted_bus_makes_no_agent_do_anything() {
    for (remembers, controller_restarts) in [(true, false), (true, true), (false, false)] {
        let case = format!("remembers: {remembers}, controller restarts: {controller_restarts}");
        let (source, mut daemon, machines) = (Store::in_memory(), Daemon::start(|_| {}), Machines::default());
        for name in ["web", "db", "dns"] {
            put(&source, name, &["a", "b"], "one").await;
        }
        // Some have changed a few times, so that generations are not all the same.
        put(&source, "like", &["c"], "as web").await;
        let mut life = Life::begin(manager(&source, &daemon, remembers)).await;
        let agents = fleet(&machines, &daemon);
        quiet().await;
        for text in ["two", "three"] {
            put(&source, "web", &["a", "b"], text).await;
            quiet().await;
        }
        assert_eq!(machines.has("m0"), texts(&[("web@a", "three"), ("db@a", "one"), ("dns@a", "one")]), "{case}");
        assert_eq!(machines.has("m2"), texts(&[("like@c", "three")]), "{case}");
        let before = generations(&daemon.store);
        machines.take();

        for _ in 0..2 {
            daemon.kill();
            if controller_restarts {
                life.crash().await;
                quiet().await;
                daemon.begin();
                quiet().await;
                assert!(machines.take().is_empty(), "{case}: an empty bus removes nothing");
                life = Life::begin(manager(&source, &daemon, remembers)).await;
            } else {
                quiet().await;
                daemon.begin();
            }
            quiet().await;
            quiet().await;
            assert_eq!(machines.take(), Vec::<String>::new(), "{case}");
            assert_eq!(generations(&daemon.store), before, "{case}");
        }

        // What has changed meanwhile is all that travels.
        daemon.kill();
        put(&source, "db", &["a"], "two").await;
        delete(&source, "dns").await;
        daemon.begin();
        quiet().await;
        quiet().await;
        let calls = machines.take();
        let expected = |n: usize| match n % 3 {
            0 => vec![format!("m{n}: apply db@a=two"), format!("m{n}: remove dns@a")],
            1 => vec![format!("m{n}: remove db@b"), format!("m{n}: remove dns@b")],
            _ => Vec::new(),
        };
        let mut expected: Vec<String> = (0..36).flat_map(expected).collect();
        expected.sort_unstable();
        assert_eq!(calls, expected, "{case}");
        life.stop().await;
        for agent in agents {
            agent.stop().await;
        }
    }
}

/// A bus that is away while objects change, and comes back without a memory (H11): everything that has changed is
/// published when it is back, once.
#[tokio::test(start_paused = true)]
async fn what_changes_while_the_bus_is_away_is_published_when_it_is_back() {
    let (source, mut daemon, machines) = (Store::in_memory(), Daemon::start(|_| {}), Machines::default());
    put(&source, "web", &["a"], "0").await;
    let life = Life::begin(manager(&source, &daemon, true)).await;
    let agent = machines.run(&daemon.net, "m0", "a");
    quiet().await;
    for round in 1..=5 {
        machines.take();
        daemon.kill();
        put(&source, "web", &["a"], &format!("{round} unseen")).await;
        quiet().await;
        put(&source, "web", &["a"], &round.to_string()).await;
        quiet().await;
        daemon.begin();
        quiet().await;
        quiet().await;
        assert_eq!(machines.take(), [format!("m0: apply web@a={round}")]);
    }
    life.stop().await;
    agent.stop().await;
}
