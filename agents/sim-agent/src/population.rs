//! The agents: started one after the other, and started again when they crash.

use std::{future::Future, sync::Arc, time::Duration};

use nimbus_agent::{Agent, AgentBuilder, Handle, Link};
use nimbus_client::allow_open_files;
use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::{behaviour::Behaviour, options::Options, tally::Tally};

/// All agents of this process.
#[derive(Debug)]
pub(crate) struct Population {
    options: Options,
    tally: Arc<Tally>,
}

/// Beside those of the agents.
const OTHER_FILES: u64 = 50;

/// How a life of an agent ended.
enum End {
    Stopped,
    Crashed,
}

// === impl Population ===

impl Population {
    pub(crate) fn new(options: Options) -> Result<Self, String> {
        if !(options.ramp > 0.0 && options.ramp.is_finite()) {
            return Err("--ramp must be above 0".to_owned());
        }
        // A connection each, and a cache.
        let files = options.agents as u64 * (1 + u64::from(options.cache.is_some())) + OTHER_FILES;
        if let Some(allowed) = allow_open_files().filter(|allowed| *allowed < files) {
            let agents = options.agents;
            return Err(format!(
                "{agents} agents need {files} open files, and {allowed} are allowed here (hint: ulimit -n {files}, or fewer \
                 --agents)"
            ));
        }
        if let Some(folder) = &options.cache {
            std::fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        let population = Self { options, tally: Arc::default() };
        // What is wrong with one is wrong with all of them.
        population.builder(0, 0).build().map_err(|error| error.to_string())?;
        Ok(population)
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// Runs all agents until `stop`.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) -> Result<(), String> {
        let (stopping, stopped) = watch::channel(false);
        let population = Arc::new(self);
        let mut agents = JoinSet::new();
        let begin = Instant::now();
        let starting = async {
            for number in 0..population.options.agents {
                let due = begin + Duration::from_secs_f64(number as f64 / population.options.ramp);
                tokio::time::sleep_until(due).await;
                agents.spawn(population.clone().live(number, stopped.clone()));
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = stop => {}
            () = starting => {}
        }
        stopping.send_replace(true);
        while let Some(ended) = agents.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        Ok(())
    }

    /// All lives of one agent.
    async fn live(self: Arc<Self>, number: usize, stopped: watch::Receiver<bool>) -> Result<(), String> {
        let mut chance = SmallRng::seed_from_u64(self.options.seed ^ (number as u64).rotate_left(32));
        for life in 0.. {
            let agent = self.builder(number, life).build().map_err(|error| error.to_string())?;
            let handle = agent.handle();
            let mut ending = stopped.clone();
            let stop = async move { drop(ending.wait_for(|stopping| *stopping).await) };
            let crash = async {
                match self.options.restart_every {
                    // From half to one and a half of it, so that they do not all go at once.
                    Some(every) => tokio::time::sleep(every.mul_f64(chance.random_range(0.5..1.5))).await,
                    None => std::future::pending().await,
                }
            };
            self.tally.started.add(1);
            let end = tokio::select! {
                result = agent.run_until(stop) => result.map(|()| End::Stopped).map_err(|error| error.to_string()),
                () = crash => Ok(End::Crashed),
                () = self.count(handle) => unreachable!("it counts for as long as the agent runs"),
            };
            self.tally.started.take(1);
            match end? {
                End::Stopped => break,
                End::Crashed => self.tally.restarts.add(1),
            }
        }
        Ok(())
    }

    /// Counts the agent among those in sync while it is.
    async fn count(&self, mut handle: Handle) {
        struct InSync<'a>(&'a Tally);

        impl Drop for InSync<'_> {
            fn drop(&mut self) {
                self.0.in_sync.take(1);
            }
        }

        let mut mismatches = 0;
        loop {
            let settled = handle.wait_until(|status| status.link == Link::InSync && status.unfinished == 0).await;
            let Ok(status) = settled else { break };
            self.tally.mismatches.add(status.mismatches - mismatches);
            mismatches = status.mismatches;
            self.tally.in_sync.add(1);
            let _in_sync = InSync(&self.tally);
            if handle
                .wait_until(|status| status.link != Link::InSync || status.unfinished > 0)
                .await
                .is_err()
            {
                break;
            }
        }
        std::future::pending::<()>().await;
    }

    fn builder(&self, number: usize, life: u64) -> AgentBuilder {
        let options = &self.options;
        let id = format!("{}{number}", options.prefix);
        let seed = options.seed ^ (number as u64) ^ (life << 40);
        let mut builder = Agent::builder(&id, &options.bus[0])
            .seed(seed)
            .software(concat!("sim-agent/", env!("CARGO_PKG_VERSION")));
        for bus in &options.bus[1..] {
            builder = builder.endpoint(bus);
        }
        for (key, values) in &options.label {
            builder = builder.label(key, &values[number % values.len()]);
        }
        for kind in &options.kind {
            builder = builder.handle_packed(kind.clone(), Behaviour::new(options, &self.tally));
        }
        if let Some(folder) = &options.cache {
            builder = builder.cache(folder.join(format!("{id}.redb")));
        }
        builder
    }
}
