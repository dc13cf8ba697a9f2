//! Connections that say nothing of use.

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng};
use tokio::task::JoinSet;

use crate::hostile::{
    sorts::Assault,
    wire::{PREFACE, settings},
};

const ATTACKERS: usize = 16;

/// Random bytes; every other time they come after a preface, and are read as frames.
pub(crate) fn garbage(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, at| async move {
        let mut wire = assault.silent().await?;
        let bytes = {
            let mut rng =
                SmallRng::seed_from_u64(at as u64 ^ assault.counts.sent.load(std::sync::atomic::Ordering::Relaxed));
            let noise: Vec<u8> = (0..4096).map(|_| rng.random()).collect();
            if rng.random() { [PREFACE, &settings(&[]), &noise].concat() } else { noise }
        };
        wire.write(&bytes).await?;
        assault.sent(1);
        wire.until_closed().await;
        assault.refused();
        Ok::<_, std::io::Error>(())
    })
}

/// Opens and closes, in turn with nothing said, a preface, and half of one.
pub(crate) fn churn(assault: &Assault) -> JoinSet<()> {
    assault.again(ATTACKERS, |assault, at| async move {
        let mut wire = assault.silent().await?;
        wire.write(&PREFACE[..PREFACE.len() * (at % 3) / 2]).await?;
        assault.sent(1);
        Ok::<_, std::io::Error>(())
    })
}
