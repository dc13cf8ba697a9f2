//! Random histories against a naive model: a matrix of agents and objects, filled in cell by cell.

mod naive;

use nimbus_core::Audience;
use nimbus_wire::v1::Phase;
use proptest::prelude::*;

use self::naive::Naive;
use super::*;

/// Something that happens.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Put {
        object: usize,
        fresh: bool,
        audience: usize,
    },
    Delete(usize),
    Connect {
        agent: usize,
        wish: (usize, usize),
        resumes: bool,
    },
    Cut {
        agent: usize,
        leaving: bool,
    },
    Report {
        agent: usize,
        received: f64,
        applied: f64,
        included: usize,
        full: bool,
        exceptions: Vec<Cell>,
        cleared: usize,
    },
    Rescope {
        agent: usize,
        wish: (usize, usize),
    },
    /// The stream takes the scope that was asked for.
    Take(usize),
    /// The stream tells the agent that its scope has changed.
    Switch(usize),
    Pass(u64),
}

/// What an agent says of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) object: usize,
    pub(super) phase: usize,
    pub(super) retryable: bool,
    /// Of the newest generation, rather than of the first.
    pub(super) newest: bool,
}

pub(super) const AGENTS: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const OBJECTS: [&str; 4] = ["x", "y", "Beta/x", "Beta/y"];
pub(super) const PHASES: [Phase; 3] = [Phase::Pending, Phase::Failed, Phase::Degraded];
pub(super) const ZONES: [&str; 3] = ["z0", "z1", "z2"];
pub(super) const KINDS: [&[&str]; 3] = [&[], &["Alpha"], &["Beta"]];

pub(super) fn audience(at: usize) -> Audience {
    match at {
        0 => Audience::Everyone,
        1 => selector("zone=z0"),
        2 => selector("zone in (z0,z1)"),
        3 => named(&[]),
        4 => named(&["a"]),
        5 => named(&["a", "b", "never"]),
        _ => named(&["b", "c", "d"]),
    }
}

fn event() -> impl Strategy<Value = Event> {
    let object = 0..OBJECTS.len();
    // Much happens to one agent: two changes of scope that overlap take five steps in a row, all of them its own.
    let agent = prop_oneof![3 => Just(0), 2 => 0..AGENTS.len()];
    let wish = (0..ZONES.len(), 0..KINDS.len());
    let cell = (object.clone(), 0..3_usize, any::<bool>(), any::<bool>())
        .prop_map(|(object, phase, retryable, newest)| Cell { object, phase, retryable, newest });
    let share = || prop_oneof![Just(1.0), 0.0..1.0_f64];
    prop_oneof![
        5 => (object.clone(), any::<bool>(), 0..7_usize)
            .prop_map(|(object, fresh, audience)| Event::Put { object, fresh, audience }),
        1 => object.prop_map(Event::Delete),
        3 => (agent.clone(), wish.clone(), any::<bool>())
            .prop_map(|(agent, wish, resumes)| Event::Connect { agent, wish, resumes }),
        1 => (agent.clone(), prop::bool::weighted(0.2)).prop_map(|(agent, leaving)| Event::Cut { agent, leaving }),
        8 => (agent.clone(), share(), share(), 0..2_usize, prop::bool::weighted(0.2), prop::collection::vec(cell, 0..3), 0..8_usize)
            .prop_map(|(agent, received, applied, included, full, exceptions, cleared)| {
                Event::Report { agent, received, applied, included, full, exceptions, cleared }
            }),
        4 => (agent.clone(), wish).prop_map(|(agent, wish)| Event::Rescope { agent, wish }),
        3 => agent.clone().prop_map(Event::Take),
        3 => agent.prop_map(Event::Switch),
        1 => (1..40_u64).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens, every count of every object, end and transaction is that of the matrix, and so is who is in sync.
    #[test]
    fn propagation_is_that_of_the_matrix(events in prop::collection::vec(event(), 1..60)) {
        let mut land = Land::new();
        let mut naive = Naive::default();
        for event in &events {
            naive.happen(event, &mut land);
            naive.compare(&land);
        }
    }
}
