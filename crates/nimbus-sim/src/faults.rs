//! What goes wrong, and when.

use std::{fmt, time::Duration};

use rand::{RngExt as _, rngs::SmallRng};

use crate::{
    model::ZONES,
    setup::{API, BUS, Setup, pick},
    world::millis,
};

/// Something that goes wrong for a while.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// A process dies, and is started again.
    Crash(String),
    /// The bus is stopped as an operator would, and started again.
    Stop,
    /// Nothing gets through between a host and the bus.
    Partition(String),
    /// Nothing gets through from the first to the second.
    OneWay(String, String),
    /// Everything between a host and the bus waits, and then comes all at once.
    Hold(String),
    /// Everything between a host and the bus takes this long.
    Delay(String, Duration),
    /// All connections of a host break.
    Reset(String),
    /// An agent gets another label.
    Relabel(String, &'static str),
    /// The clock of a host jumps ahead, as that of a machine that was suspended.
    Jump(String, Duration),
    /// A reader does not read.
    Stall(String),
}

/// A fault, when it begins, and for how long it lasts.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// Its place in the schedule of its seed.
    pub(crate) number: usize,
    pub(crate) at: Duration,
    pub(crate) lasts: Duration,
    pub(crate) fault: Fault,
}

/// Everything that goes wrong, in order.
pub(crate) fn schedule(setup: &Setup, rng: &mut SmallRng) -> Vec<Planned> {
    let clients = setup.clients();
    let mut schedule = Vec::new();
    // Some seeds are calm, so that what is found without faults is found without them.
    let rate = pick(rng, &[300, 1_000, 3_000, 12_000]);
    let mut at = millis(rng, 100, 2_000);
    while at < setup.chaos {
        let longest = pick(rng, &[500, 4_000, 12_000]);
        let lasts = millis(rng, 50, longest);
        let client = pick(rng, &clients);
        let fault = match rng.random_range(0..100) {
            0..8 => Fault::Crash(BUS.into()),
            8..10 => Fault::Crash(API.into()),
            10..13 => Fault::Stop,
            13..28 => Fault::Crash(client),
            28..40 => Fault::Partition(client),
            40..46 => Fault::OneWay(client, BUS.into()),
            46..52 => Fault::OneWay(BUS.into(), client),
            52..62 => Fault::Hold(client),
            62..68 => Fault::Delay(client, millis(rng, 50, 1_500)),
            68..80 => Fault::Reset(client),
            80..88 => Fault::Relabel(setup.agents[0].name.clone(), pick(rng, &ZONES)),
            88..94 => Fault::Jump(if rng.random_bool(0.3) { BUS.into() } else { client }, millis(rng, 500, 40_000)),
            _ => Fault::Stall(pick(rng, &setup.readers).name.clone()),
        };
        schedule.push(Planned { number: schedule.len(), at, lasts, fault });
        at += millis(rng, rate / 10, rate * 2);
    }
    schedule
}

// === impl Fault ===

impl Fault {
    /// What sort of fault it is.
    pub(crate) fn sort(&self) -> &'static str {
        match self {
            Self::Crash(_) => "crash",
            Self::Stop => "stop",
            Self::Partition(_) => "partition",
            Self::OneWay(..) => "one-way",
            Self::Hold(_) => "hold",
            Self::Delay(..) => "delay",
            Self::Reset(_) => "reset",
            Self::Relabel(..) => "relabel",
            Self::Jump(..) => "jump",
            Self::Stall(_) => "stall",
        }
    }

    /// Whose fault it is: of two hosts, the client.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Stop => BUS,
            Self::OneWay(from, to) if from == BUS => to,
            Self::Crash(host)
            | Self::Partition(host)
            | Self::OneWay(host, _)
            | Self::Hold(host)
            | Self::Delay(host, _)
            | Self::Reset(host)
            | Self::Relabel(host, _)
            | Self::Jump(host, _)
            | Self::Stall(host) => host,
        }
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, lasts, fault } = self;
        write!(f, "{number:4}: {:8.3} s for {:6.3} s: {fault}", at.as_secs_f64(), lasts.as_secs_f64())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(host) => write!(f, "{host} dies"),
            Self::Stop => write!(f, "the bus is stopped"),
            Self::Partition(host) => write!(f, "nothing gets through between {host} and the bus"),
            Self::OneWay(from, to) => write!(f, "nothing gets from {from} to {to}"),
            Self::Hold(host) => write!(f, "everything between {host} and the bus waits"),
            Self::Delay(host, delay) => {
                write!(f, "between {host} and the bus everything takes {} ms", delay.as_millis())
            }
            Self::Reset(host) => write!(f, "connections of {host} break"),
            Self::Relabel(host, zone) => write!(f, "{host} moves to zone {zone}"),
            Self::Jump(host, by) => write!(f, "the clock of {host} jumps by {:.1} s", by.as_secs_f64()),
            Self::Stall(host) => write!(f, "{host} does not read"),
        }
    }
}
