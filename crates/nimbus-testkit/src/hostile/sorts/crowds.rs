//! Many connections, or subscriptions, that are held for as long as the bus lets them.

use std::{sync::Arc, time::Duration};

use nimbus_wire::v1::{self, bus_client::BusClient};
use tokio::{
    io::AsyncReadExt as _,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, sleep_until},
};
use tonic::transport::Endpoint;

use crate::hostile::{
    beat::BEAT,
    sorts::Assault,
    wire::{self, unary},
};

const SUBSCRIBE: &str = "/nimbus.v1.Bus/Subscribe";

/// On one connection.
const SUBSCRIPTIONS: usize = 1_000;

/// A listener has room for so many that it has not accepted yet, nearly; more would be the kernel's problem.
const AT_ONCE: usize = 100;

pub(crate) fn silence(assault: &Assault, held: usize) -> JoinSet<()> {
    assault.again(held, |assault, _| async move {
        let mut wire = assault.silent().await?;
        let _held = assault.hold();
        wire.until_closed().await;
        assault.refused();
        Ok::<_, std::io::Error>(())
    })
}

pub(crate) fn idle(assault: &Assault, held: usize) -> JoinSet<()> {
    let opening = Arc::new(Semaphore::new(AT_ONCE));
    assault.again(held, move |assault, _| {
        let opening = opening.clone();
        async move {
            let turn = opening.acquire().await;
            let mut wire = assault.open(&[]).await?;
            // It is taken when the bus says hello, too.
            wire::next_frame(&mut wire.reading).await?;
            assault.sent(1);
            let _held = assault.hold();
            drop(turn);
            wire.until_closed().await;
            assault.refused();
            Ok::<_, std::io::Error>(())
        }
    })
}

/// Subscribes to everything, and reads nothing.
pub(crate) fn unread(assault: &Assault, held: usize) -> JoinSet<()> {
    assault.again(held, |assault, _| async move {
        let mut wire = assault.open(&[]).await?;
        wire.write(&unary(1, SUBSCRIBE, &v1::SubscribeRequest::default())).await?;
        assault.sent(1);
        let _held = assault.hold();
        sleep_until(assault.deadline).await;
        Ok::<_, std::io::Error>(())
    })
}

/// Subscribes to everything, and reads a byte each second.
pub(crate) fn trickle(assault: &Assault, held: usize) -> JoinSet<()> {
    assault.again(held, |assault, _| async move {
        let mut wire = assault.open(&[]).await?;
        wire.write(&unary(1, SUBSCRIBE, &v1::SubscribeRequest::default())).await?;
        assault.sent(1);
        let _held = assault.hold();
        loop {
            wire.reading.read_u8().await?;
            sleep(Duration::from_secs(1)).await;
        }
        #[allow(unreachable_code, reason = "it says what the error is")]
        Ok::<_, std::io::Error>(())
    })
}

/// Subscribes very often, reads everything, and makes up names of agents.
pub(crate) fn subscriptions(assault: &Assault, held: usize) -> JoinSet<()> {
    let connections = held.div_ceil(SUBSCRIPTIONS);
    assault.again(connections, move |assault, at| async move {
        let count = held.div_ceil(connections);
        let channel = Endpoint::from_shared(format!("http://{}", assault.address))?.connect().await?;
        assault.opened();
        let (mut readers, opening) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
        for number in 0..count {
            let (mut client, opening, assault) = (BusClient::new(channel.clone()), opening.clone(), assault.clone());
            readers.spawn(async move {
                let request = v1::SubscribeRequest {
                    agent: format!("mallory-{at}-{number}"),
                    kinds: vec![BEAT.to_owned()],
                    ..v1::SubscribeRequest::default()
                };
                let turn = opening.acquire().await;
                let frames = client.subscribe(request).await;
                drop(turn);
                match frames {
                    Ok(frames) => {
                        assault.sent(1);
                        let _held = assault.hold();
                        let mut frames = frames.into_inner();
                        while let Ok(Some(_)) = frames.message().await {}
                    }
                    Err(_) => assault.refused(),
                }
            });
        }
        while readers.join_next().await.is_some() {}
        Ok::<_, anyhow::Error>(())
    })
}
